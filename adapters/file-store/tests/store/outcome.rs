//! What a store keeps of the event that a turn answers, and of how the turn ended.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use goondan_core::{
    AgentEvent, AgentName, Auth, Conversation, Error, ErrorCode, FinishReason, InstanceKey, Principal, Secret, TurnId,
};
use goondan_covers::covers;
use goondan_file_store::FileStore;
use goondan_runtime::store::InstanceStatus;
use goondan_runtime::store::{Commit, Durability, EndedTurn, EventDigest, Opened, TurnOutcome, TurnStart};
use goondan_runtime::{InstanceId, Store};
use serde_json::json;
use tempfile::TempDir;

use super::records::{checkpoint, with_sum};

fn id() -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new("k").unwrap() }
}

fn store() -> (TempDir, FileStore, PathBuf) {
    let workspace = tempfile::tempdir().unwrap();
    let store = FileStore::open(workspace.path()).unwrap();
    let dir = store.instance_dir(&id());
    (workspace, store, dir)
}

async fn open(store: &FileStore) -> Opened {
    store.open(&id()).await.unwrap()
}

/// Begins a turn, and leaves it open.
async fn interrupted(store: &FileStore, event: &AgentEvent) {
    let mut opened = open(store).await;
    opened.journal.begin(TurnStart::new(&"t".into()).event(event, EventDigest::of(event))).unwrap();
    opened.journal.flush(Durability::Synced).await.unwrap();
}

/// Commits a turn without messages.
async fn commit(store: &FileStore, turn: &str, outcome: Option<&TurnOutcome>) {
    let mut opened = open(store).await;
    let (turn, state, conversation) = (TurnId::from(turn), BTreeMap::new(), Conversation::default());
    opened.journal.begin(TurnStart::new(&turn)).unwrap();
    let mut commit = Commit::new(&turn, &conversation, &state);
    commit.outcome = outcome;
    opened.journal.commit(commit).await.unwrap();
}

#[tokio::test]
async fn an_interrupted_turn_knows_the_event_that_it_answers() {
    let (_workspace, store, dir) = store();
    let mut event = AgentEvent::input("what now?");
    event.metadata.insert("color".to_owned(), json!({ "r": 1 }));
    event.auth = Some(Auth::new(Principal::new("user", "u1")));
    interrupted(&store, &event).await;
    for _ in 0..2 {
        assert_eq!(open(&store).await.interrupted.unwrap().input, Some(event.clone()));
    }
    let mut export = Vec::new();
    store.export(&id(), &mut export).unwrap();
    let copy = InstanceId { key: InstanceKey::new("copy").unwrap(), ..id() };
    store.import(&*export, Some(copy.clone())).unwrap();
    assert_eq!(store.open(&copy).await.unwrap().interrupted.unwrap().input, Some(event));

    // A later version may record the event in another form.
    let (first, begin) = (checkpoint("", &json!({})), with_sum(r#"{"turn":"t","event":{"id":7}}"#));
    fs::write(dir.join("messages/events.jsonl"), first + &begin).unwrap();
    let interrupted = open(&store).await.interrupted.unwrap();
    assert_eq!((interrupted.turn.as_str(), interrupted.event), ("t", None));
}

#[tokio::test]
async fn no_secret_of_an_event_is_written() {
    let (_workspace, store, dir) = store();
    let secret = Secret::new("s3cr3t-of-the-event");
    let mut event = AgentEvent::input("the text is a message, in which nothing is masked");
    event.metadata.insert("key".to_owned(), json!([format!("Bearer {}", secret.expose())]));
    event.source.other.insert("token".to_owned(), json!(secret.expose()));
    let mut auth = Auth::new(Principal::new("user", secret.expose()));
    // No secret knows this one.
    auth.other.insert("cookie".to_owned(), json!("chocolate"));
    event.auth = Some(auth);
    interrupted(&store, &event).await;
    let written = fs::read_to_string(dir.join("messages/events.jsonl")).unwrap();
    assert!(!written.contains("s3cr3t") && !written.contains("chocolate"), "{written}");
    let recorded = open(&store).await.interrupted.unwrap().input.unwrap();
    assert_eq!((recorded.id, recorded.input), (event.id, event.input));
    assert_eq!(recorded.metadata["key"], json!(["Bearer ***"]));
    assert_eq!(recorded.auth, Some(Auth::new(Principal::new("user", "***"))));
}

#[tokio::test]
async fn the_outcome_of_the_last_turn_is_kept_until_the_next_one() {
    let (_workspace, store, dir) = store();
    let failure = Error::new(ErrorCode::MODEL, "overloaded".repeat(200));
    let outcomes = [
        TurnOutcome::answered("e1".into(), FinishReason::TextResponse),
        TurnOutcome::failed("e2".into(), &failure),
        TurnOutcome::interrupted(Some("e3".into())),
        TurnOutcome::interrupted(None),
    ];
    for (number, outcome) in outcomes.iter().enumerate() {
        commit(&store, &format!("t{number}"), Some(outcome)).await;
        assert_eq!(store.read(&id()).unwrap().outcome.as_ref(), Some(outcome));
        // A turn that only stores state has none of its own.
        commit(&store, "state", None).await;
        assert_eq!(store.read(&id()).unwrap().outcome.as_ref(), Some(outcome));
        interrupted(&store, &AgentEvent::input("next")).await;
        let read = store.read(&id()).unwrap();
        assert_eq!((read.outcome.as_ref(), read.open_turn), (Some(outcome), Some("t".into())));
        let events = dir.join("messages/events.jsonl");
        let text = fs::read_to_string(&events).unwrap();
        assert!(text.lines().all(|line| line.len() < 1500), "a long message is cut: {text}");
        let (whole, _) = text.split_once("{\"turn\":\"t\",").unwrap();
        fs::write(&events, whole).unwrap();
    }
    // An outcome of a later version is not known, and stops nothing.
    let later = r#","answered":[{"turn":"t","type":"handed-over","to":[]}]}"#;
    let events = checkpoint("", &json!({}));
    let events = with_sum(&(events.split(",\"sum\"").next().unwrap().to_owned() + later));
    fs::write(dir.join("messages/events.jsonl"), events).unwrap();
    assert_eq!(store.read(&id()).unwrap().outcome, None);
    open(&store).await;
}

#[tokio::test]
#[covers("ONCE-01")]
async fn the_newest_256_events_that_were_answered_are_known() {
    let (_workspace, store, dir) = store();
    let store = store.journal_limit(10_000);
    let event = |number: usize| AgentEvent::input("go").with_id(format!("event-{number}"));
    for number in 0..600 {
        let mut opened = open(&store).await;
        let (turn, event) = (TurnId::from(format!("t{number}").as_str()), event(number));
        let digest = EventDigest::of(&event);
        opened.journal.begin(TurnStart::new(&turn).event(&event, digest)).unwrap();
        let outcome = TurnOutcome::answered(event.id.clone(), FinishReason::TextResponse);
        let (conversation, state) = (Conversation::default(), BTreeMap::new());
        let commit = Commit::new(&turn, &conversation, &state).outcome(&outcome, Some(digest));
        opened.journal.commit(commit).await.unwrap();
        let ended = opened.journal.outcome(&event.id).await.unwrap();
        assert_eq!(ended, Some(EndedTurn::new(turn, Some(digest), outcome)));
    }
    let length = fs::metadata(dir.join("messages/events.jsonl")).unwrap().len();
    assert!(length < 60_000, "it does not grow for ever: {length}");
    let opened = open(&store).await;
    for number in 0..600 {
        let ended = opened.journal.outcome(&event(number).id).await.unwrap();
        assert_eq!(ended.is_some(), number >= 344, "event {number}");
    }
}

#[tokio::test]
#[covers("D-40")]
async fn an_opening_has_the_newest_turn_as_it_was_committed() {
    for limit in [1, 1 << 20] {
        let (_workspace, store, _) = store();
        let store = store.journal_limit(limit);
        for (number, forgets) in [true, false, true].into_iter().enumerate() {
            let mut opened = open(&store).await;
            let (turn, state, conversation) =
                (TurnId::from(format!("t{number}").as_str()), BTreeMap::new(), Conversation::default());
            let event = AgentEvent::input("go").with_id(format!("e{number}"));
            let digest = EventDigest::of(&event);
            opened.journal.begin(TurnStart::new(&turn).event(&event, digest)).unwrap();
            let outcome = TurnOutcome::answered(event.id, FinishReason::TextResponse);
            let committed = Commit::new(&turn, &conversation, &state).outcome(&outcome, Some(digest)).forgets(forgets);
            opened.journal.commit(committed).await.unwrap();
            drop(opened);
            // A turn that only stores state changes nothing of that.
            commit(&store, "state", None).await;
            let ended = EndedTurn::new(turn, Some(digest), outcome).forgets(forgets);
            assert_eq!(open(&store).await.newest, Some(ended), "{limit} {number}");
        }
    }
}

#[tokio::test]
async fn the_status_of_an_instance_is_told_without_opening_it() {
    let (_workspace, store, _) = store();
    let status = |store: &FileStore| {
        let listed = store.instances().unwrap()[0].status;
        assert_eq!(store.status(&id()).unwrap(), listed);
        listed
    };
    commit(&store, "t", None).await;
    assert_eq!(status(&store), InstanceStatus::Idle);
    interrupted(&store, &AgentEvent::input("next")).await;
    assert_eq!(status(&store), InstanceStatus::Interrupted);
    let opened = open(&store).await;
    // Linux tells which locks are held.
    let told = if fs::exists("/proc/locks").unwrap() { InstanceStatus::Open } else { InstanceStatus::Interrupted };
    assert_eq!(status(&store), told);
    drop(opened);
    assert_eq!(status(&store), InstanceStatus::Interrupted);
    assert_eq!(serde_json::to_value(store.instances().unwrap()).unwrap()[0]["status"], "interrupted");
}

#[tokio::test]
async fn an_instance_whose_events_cannot_be_read_hides_no_other() {
    let (_workspace, store, dir) = store();
    commit(&store, "t", None).await;
    let other = InstanceId { key: InstanceKey::new("other").unwrap(), ..id() };
    drop(store.open(&other).await.unwrap());
    let events = dir.join("messages/events.jsonl");
    fs::remove_file(&events).unwrap();
    fs::create_dir(&events).unwrap();
    let listed = store.instances().unwrap().into_iter().map(|instance| (instance.id, instance.status));
    let expected = [(id(), InstanceStatus::Unreadable), (other, InstanceStatus::Idle)];
    assert_eq!(listed.collect::<Vec<_>>(), expected);
    assert_eq!(store.status(&id()).unwrap(), InstanceStatus::Unreadable);
}
