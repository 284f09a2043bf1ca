//! Repair, export and import of instances.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use goondan_core::{
    AgentEvent, AgentName, Conversation, Error, ErrorCode, ExtensionName, InstanceKey, Message, MessageEvent, TurnId,
};
use goondan_file_store::FileStore;
use goondan_runtime::store::{Commit, Durability, EventDigest, Interrupted, Opened, TurnStart};
use goondan_runtime::{InstanceId, Store};
use serde_json::json;
use tempfile::TempDir;

fn id(key: &str) -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new(key).unwrap() }
}

fn append(id: &str) -> MessageEvent {
    MessageEvent::append(Message::user(format!("text of {id}")).with_id(id).with_metadata("score", 0.1 + 0.2))
}

/// Creates an instance with two committed messages and a state, which are in their files, and a turn that was
/// interrupted after two events.
async fn instance() -> (TempDir, FileStore, PathBuf) {
    let workspace = tempfile::tempdir().unwrap();
    let store = FileStore::open(workspace.path()).unwrap().journal_limit(1);
    let Opened { mut journal, .. } = store.open(&id("k")).await.unwrap();
    let (turn, mut conversation) = (TurnId::from("t1"), Conversation::default());
    journal.begin(TurnStart::new(&turn)).unwrap();
    for event in [append("a"), append("b")] {
        conversation.apply(event.clone()).unwrap();
        journal.record(&event, None).unwrap();
    }
    let state = BTreeMap::from([(ExtensionName::new("notes").unwrap(), json!({ "n": 0.1 }))]);
    journal.commit(Commit::new(&turn, &conversation, &state)).await.unwrap();
    journal.begin(TurnStart::new(&"t2".into())).unwrap();
    [append("c"), MessageEvent::remove("a")].iter().for_each(|event| journal.record(event, None).unwrap());
    journal.flush(Durability::Flushed).await.unwrap();
    drop(journal);
    let dir = store.instance_dir(&id("k"));
    (workspace, store, dir)
}

async fn content(store: &FileStore, key: &str) -> Result<(Vec<String>, Option<Interrupted>, String), Error> {
    let Opened { base, interrupted, state, .. } = store.open(&id(key)).await?;
    let base = base.iter().map(|message| serde_json::to_string(message).unwrap()).collect();
    Ok((base, interrupted, serde_json::to_string(&state).unwrap()))
}

fn files(dir: &Path) -> BTreeSet<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn nothing_is_wrong_with_an_interrupted_turn() {
    let (_workspace, store, dir) = instance().await;
    assert_eq!(store.inspect(&id("k")).unwrap(), []);
    let before = fs::read(dir.join("messages/events.jsonl")).unwrap();
    assert_eq!(store.repair(&id("k")).unwrap(), []);
    assert_eq!(fs::read(dir.join("messages/events.jsonl")).unwrap(), before);
}

#[tokio::test]
async fn damaged_lines_are_moved_aside_and_the_rest_opens() {
    let (_workspace, store, dir) = instance().await;
    let base = dir.join("messages/base.jsonl");
    let text = fs::read_to_string(&base).unwrap();
    let damaged = text.replacen("{\"id\":\"a\"", "{\"id\":\"a", 1);
    fs::write(&base, &damaged).unwrap();
    assert!(content(&store, "k").await.is_err());
    let plan = store.inspect(&id("k")).unwrap();
    assert_eq!((plan[0].line, plan[0].file.as_path()), (Some(1), base.as_path()));
    assert!(plan[0].what.contains("no message") && !plan[0].what.contains("base.jsonl"), "{}", plan[0].what);
    assert_eq!(fs::read_to_string(&base).unwrap(), damaged, "only inspected");

    assert_eq!(store.repair(&id("k")).unwrap(), plan);
    let (messages, interrupted, state) = content(&store, "k").await.unwrap();
    assert!(messages.len() == 1 && messages[0].contains("text of b"), "{messages:?}");
    assert_eq!(interrupted.unwrap().events.len(), 2);
    assert_eq!(state, r#"{"notes":{"n":0.1}}"#);
    let first = damaged.lines().next().unwrap().to_owned() + "\n";
    assert_eq!(fs::read_to_string(dir.join("messages/base.jsonl.corrupt-1")).unwrap(), first);
    assert_eq!(store.inspect(&id("k")).unwrap(), []);
}

#[tokio::test]
async fn rubbish_between_events_and_in_a_state_is_moved_aside() {
    let (_workspace, store, dir) = instance().await;
    let (events, state) = (dir.join("messages/events.jsonl"), dir.join("extensions/notes.json"));
    let text = fs::read_to_string(&events).unwrap().replacen('\n', "\nrubbish\n", 1);
    fs::write(&events, text).unwrap();
    fs::write(&state, "{\"n\":").unwrap();
    let plan = store.repair(&id("k")).unwrap();
    assert_eq!(plan.iter().map(|fault| fault.line).collect::<Vec<_>>(), [Some(2), None]);
    let (messages, interrupted, state) = content(&store, "k").await.unwrap();
    assert_eq!((messages.len(), interrupted.unwrap().events.len(), state.as_str()), (2, 2, "{}"));
    assert_eq!(fs::read_to_string(dir.join("messages/events.jsonl.corrupt-1")).unwrap(), "rubbish\n");
    assert_eq!(fs::read_to_string(dir.join("extensions/notes.json.corrupt-1")).unwrap(), "{\"n\":");
}

#[tokio::test]
async fn events_of_a_base_that_lost_bytes_are_applied_to_what_is_left() {
    let (_workspace, store, dir) = instance().await;
    let base = dir.join("messages/base.jsonl");
    let first = fs::read_to_string(&base).unwrap().lines().next().unwrap().to_owned() + "\n";
    fs::write(&base, &first).unwrap();
    assert_eq!(content(&store, "k").await.unwrap_err().code(), &ErrorCode::STORE_DAMAGED);
    store.repair(&id("k")).unwrap();
    let (messages, interrupted, _) = content(&store, "k").await.unwrap();
    assert_eq!((messages.len(), interrupted.unwrap().events.len()), (1, 2));
}

#[tokio::test]
async fn a_file_of_events_that_is_too_long_is_moved_aside() {
    let (_workspace, store, dir) = instance().await;
    let events = dir.join("messages/events.jsonl");
    fs::OpenOptions::new().write(true).open(&events).unwrap().set_len(2 << 30).unwrap();
    let error = content(&store, "k").await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED);
    assert!(error.message().contains("2147483648 bytes") && error.suggestion().is_some(), "{error:?}");
    store.repair(&id("k")).unwrap();
    let (messages, interrupted, _) = content(&store, "k").await.unwrap();
    assert_eq!((messages.len(), interrupted), (2, None));
    assert_eq!(fs::metadata(dir.join("messages/events.jsonl.corrupt-1")).unwrap().len(), 2 << 30);
}

#[tokio::test]
async fn an_export_holds_all_of_an_instance() {
    let (workspace, store, _) = instance().await;
    let mut export = Vec::new();
    store.export(&id("k"), &mut export).unwrap();
    let expected = content(&store, "k").await.unwrap();
    assert_eq!(expected.1.as_ref().unwrap().events.len(), 2);

    let error = store.import(&*export, None).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::STORE_EXISTS);
    assert_eq!(store.import(&*export, Some(id("copy"))).unwrap(), id("copy"));
    assert_eq!(content(&store, "copy").await.unwrap(), expected);

    let elsewhere = FileStore::open(workspace.path().join("elsewhere")).unwrap();
    assert_eq!(elsewhere.import(&*export, None).unwrap(), id("k"));
    assert_eq!(content(&elsewhere, "k").await.unwrap(), expected);
    let mut again = Vec::new();
    elsewhere.export(&id("k"), &mut again).unwrap();
    let stored = |export: &[u8]| {
        String::from_utf8(export.to_vec()).unwrap().lines().skip(1).take(5).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(stored(&again), stored(&export));
}

#[tokio::test]
async fn an_export_that_is_not_whole_makes_no_instance() {
    let (_workspace, store, _) = instance().await;
    let mut export = Vec::new();
    store.export(&id("k"), &mut export).unwrap();
    let text = String::from_utf8(export.clone()).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let other = FileStore::open(elsewhere.path()).unwrap();
    // Without the last byte, the end of the last line, an export is whole.
    let mut wrong: Vec<Vec<u8>> = (0..export.len() - 1).step_by(7).map(|cut| export[..cut].to_vec()).collect();
    wrong.push(text.replacen("text of b", "text of B", 1).into());
    assert!(text.contains("\"version\":1"));
    wrong.push(text.replacen("\"version\":1", "\"version\":2", 1).into());
    for bytes in wrong {
        let error = other.import(&*bytes, None).unwrap_err();
        assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED, "{error:?}");
        assert_eq!(other.instances().unwrap(), []);
        assert_eq!(files(elsewhere.path()), BTreeSet::new(), "nothing is left");
    }
}

/// Creates an instance with three committed messages and a state, and no open turn.
async fn closed_instance() -> (TempDir, FileStore, PathBuf) {
    let (workspace, store, dir) = instance().await;
    let Opened { base, interrupted, mut journal, .. } = store.open(&id("k")).await.unwrap();
    let (mut conversation, _) = Conversation::from_base(base);
    let turn = interrupted.unwrap();
    turn.events.into_iter().for_each(|event| _ = conversation.apply(event).unwrap());
    let more = append("d");
    conversation.apply(more.clone()).unwrap();
    journal.record(&more, None).unwrap();
    journal.commit(Commit::new(&turn.turn, &conversation, &BTreeMap::new())).await.unwrap();
    (workspace, store, dir)
}

#[tokio::test]
async fn a_base_that_was_edited_by_hand_is_refused_until_it_is_accepted() {
    type Edit = fn(&str) -> String;
    let edits: [(Edit, &str, usize); 4] = [
        (|text| text.replace("text of c", "TEXT of c"), "are not those of the last checkpoint", 3),
        (|text| text.replacen("text of", "a text of", 1), "it cannot be told which", 3),
        (|text| text.lines().take(2).map(|line| line.to_owned() + "\n").collect(), "bytes, and had", 2),
        (
            |text| text.to_owned() + text.lines().next().unwrap() + "\n",
            "what follows the first 3 messages is not what",
            4,
        ),
    ];
    for (edit, what, kept) in edits {
        let (_workspace, store, dir) = closed_instance().await;
        let base = dir.join("messages/base.jsonl");
        let text = fs::read_to_string(&base).unwrap();
        let edited = edit(&text);
        fs::write(&base, &edited).unwrap();
        let error = content(&store, "k").await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED);
        assert!(error.message().contains("base.jsonl"), "{error:?}");
        assert!(error.suggestion().unwrap().contains("goondan instance repair --yes"), "{error:?}");
        assert_eq!(store.read(&id("k")).unwrap_err().code(), &ErrorCode::STORE_DAMAGED);
        assert_eq!(store.export(&id("k"), Vec::new()).unwrap_err().code(), &ErrorCode::STORE_DAMAGED);
        let plan = store.inspect(&id("k")).unwrap();
        assert!(plan.len() == 1 && plan[0].what.contains(what), "{plan:?}");
        assert!(plan[0].remedy.contains(&format!("with its {kept} messages")), "{plan:?}");
        assert_eq!(store.repair(&id("k")).unwrap(), plan);
        assert_eq!(fs::read_to_string(&base).unwrap(), edited, "it is kept as it is");
        assert_eq!(content(&store, "k").await.unwrap().0.len(), kept);
        fs::write(&base, &text).unwrap();
        assert!(content(&store, "k").await.is_err(), "it has a new checksum");
    }
}

#[tokio::test]
async fn a_state_that_was_changed_or_is_gone_is_refused_until_it_is_accepted() {
    for (state, what) in [(Some("{\"n\":2}\n"), "was changed by another program"), (None, "is missing")] {
        let (_workspace, store, dir) = closed_instance().await;
        let file = dir.join("extensions/notes.json");
        state.map_or_else(|| fs::remove_file(&file), |state| fs::write(&file, state)).unwrap();
        let error = content(&store, "k").await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::EXT_STATE);
        assert!(error.message().contains("notes.json") && error.message().contains(what), "{error:?}");
        let plan = store.repair(&id("k")).unwrap();
        assert!(plan.len() == 1 && plan[0].file == file && plan[0].what.contains(what), "{plan:?}");
        let expected = if state.is_some() { "{\"notes\":{\"n\":2}}" } else { "{}" };
        assert_eq!(content(&store, "k").await.unwrap().2, expected);
    }
}

#[tokio::test]
async fn a_base_that_is_gone_is_not_a_fresh_instance() {
    let (_workspace, store, dir) = closed_instance().await;
    let base = dir.join("messages/base.jsonl");
    fs::remove_file(&base).unwrap();
    assert_eq!(content(&store, "k").await.unwrap_err().code(), &ErrorCode::STORE_DAMAGED);
    assert!(!base.exists(), "refusing creates nothing");
    assert!(store.repair(&id("k")).unwrap()[0].remedy.contains("0 messages"));
    assert_eq!(content(&store, "k").await.unwrap().0.len(), 0);
}

#[tokio::test]
async fn a_journal_that_was_emptied_is_refused_until_the_other_files_are_accepted() {
    let (_workspace, store, dir) = closed_instance().await;
    fs::write(dir.join("messages/events.jsonl"), "").unwrap();
    let error = content(&store, "k").await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::STORE_VERSION);
    let plan = store.inspect(&id("k")).unwrap();
    assert!(plan.len() == 1 && plan[0].remedy.contains("keep the 3 messages of the base and 1 states"), "{plan:?}");
    assert_eq!(store.repair(&id("k")).unwrap(), plan);
    let (messages, interrupted, state) = content(&store, "k").await.unwrap();
    assert_eq!((messages.len(), interrupted, state.as_str()), (3, None, r#"{"notes":{"n":0.1}}"#));
}

/// Returns an instance whose turns are all in its journal: two append, the second also sets state.
async fn journal_of_two_turns() -> (TempDir, FileStore, PathBuf) {
    let workspace = tempfile::tempdir().unwrap();
    let store = FileStore::open(workspace.path()).unwrap();
    let Opened { mut journal, .. } = store.open(&id("k")).await.unwrap();
    let mut conversation = Conversation::default();
    for (turn, messages, n) in [("t1", ["a", "b"], 1), ("t2", ["c", "d"], 2)] {
        let turn = TurnId::from(turn);
        journal.begin(TurnStart::new(&turn)).unwrap();
        for event in messages.map(append) {
            conversation.apply(event.clone()).unwrap();
            journal.record(&event, None).unwrap();
        }
        let state = BTreeMap::from([(ExtensionName::new("notes").unwrap(), json!(n))]);
        journal.commit(Commit::new(&turn, &conversation, &state)).await.unwrap();
        conversation.fold();
    }
    journal.close().await.unwrap();
    let dir = store.instance_dir(&id("k"));
    (workspace, store, dir)
}

#[tokio::test]
async fn a_damaged_journal_loses_nothing_that_the_other_files_have() {
    type Damage = fn(&str) -> String;
    let damages: [(&str, Damage); 6] = [
        ("a text", |text| text.replacen("text of b", "text of B", 1)),
        ("an event", |text| text.replacen("{\"type\":\"append\",\"message\":{\"id\":\"b\"", "{\"type\":\"append\"", 1)),
        ("a commit", |text| text.replacen("{\"fold\":\"t1\"", "{\"fold\":\"t7\"", 1)),
        ("a begin", |text| text.replacen("{\"turn\":\"t2\"", "{\"turn\":\"t7\"", 1)),
        ("a checkpoint", |text| text.replacen("\"baseBytes\":0", "\"baseBytes\":1", 1)),
        ("a whole turn", |text| {
            let (before, after) = text.split_once("{\"turn\":\"t2\"").unwrap();
            let first = before.find("{\"turn\"").unwrap();
            before[..first].to_owned() + "{\"turn\":\"t2\"" + after
        }),
    ];
    for (what, damage) in damages {
        let (_workspace, store, dir) = journal_of_two_turns().await;
        let events = dir.join("messages/events.jsonl");
        let expected = content(&store, "k").await.unwrap();
        assert_eq!(expected.0.len(), 4);
        let text = fs::read_to_string(&events).unwrap();
        let damaged = damage(&text);
        assert_ne!(text, damaged, "{what}");
        fs::write(&events, damaged).unwrap();
        let error = content(&store, "k").await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED, "{what}: {error:?}");
        let plan = store.repair(&id("k")).unwrap();
        assert!(!plan.is_empty() && plan.iter().all(|fault| fault.file == events), "{what}: {plan:?}");
        let repaired = content(&store, "k").await.unwrap();
        assert_eq!((repaired.0, repaired.2), (expected.0, expected.2), "{what}");
        assert_eq!(store.inspect(&id("k")).unwrap(), [], "{what}");
    }
}

/// Returns an export with another body, whose checksum is right.
fn export_of(header: &str, body: &[String]) -> Vec<u8> {
    let lines: String = [&[header.to_owned()], body].concat().iter().map(|line| line.clone() + "\n").collect();
    let end = json!({ "end": { "lines": body.len() + 1, "crc": crc32fast::hash(lines.as_bytes()) } });
    format!("{lines}{end}\n").into_bytes()
}

#[tokio::test]
async fn an_export_that_would_not_open_with_all_it_contains_makes_no_instance() {
    let (workspace, store, _) = instance().await;
    let mut export = Vec::new();
    store.export(&id("k"), &mut export).unwrap();
    let lines: Vec<_> = String::from_utf8(export).unwrap().lines().map(str::to_owned).collect();
    let (header, body) = (&lines[0], &lines[1..lines.len() - 1]);
    let at = |start: &str| body.iter().position(|line| line.starts_with(start)).unwrap();
    let (state, message, turn) = (at("{\"state\""), at("{\"message\""), at("{\"turn\""));
    let other = FileStore::open(workspace.path().join("other")).unwrap();
    other.import(&*export_of(header, body), Some(id("whole"))).unwrap();

    let inserted = |at: usize, line: &str| {
        let mut body = body.to_vec();
        body.insert(at, line.to_owned());
        body
    };
    let end = body.len();
    for (what, line, body) in [
        ("a message behind the turn", end + 2, inserted(end, &body[message])),
        ("a state behind the turn", end + 2, inserted(end, &body[state])),
        ("a state twice", state + 3, inserted(state + 1, &body[state])),
        ("a turn twice", turn + 3, inserted(turn + 1, &body[turn])),
        ("a record without a turn", turn + 2, inserted(turn, body.last().unwrap())),
        ("a record that is none", end + 2, inserted(end, "{\"record\":{\"note\":1}}")),
        ("an event that is none", end + 2, inserted(end, "{\"record\":{\"type\":\"append\"}}")),
        ("a commit", end + 2, inserted(end, "{\"record\":{\"fold\":\"t2\",\"pure\":true}}")),
    ] {
        let error = other.import(&*export_of(header, &body), None).unwrap_err();
        assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED, "{what}: {error:?}");
        assert!(error.message().contains(&format!("the export, line {line}:")), "{what}: {error:?}");
        assert!(other.instances().unwrap().len() == 1, "{what}");
        assert_eq!(files(&workspace.path().join("other")), BTreeSet::from(["instances".to_owned()]), "{what}");
    }
}

/// An imported instance has a checksum from the start.
#[tokio::test]
async fn damage_to_an_imported_instance_is_found() {
    let (_workspace, store, _) = instance().await;
    let mut export = Vec::new();
    store.export(&id("k"), &mut export).unwrap();
    store.import(&*export, Some(id("copy"))).unwrap();
    let base = store.instance_dir(&id("copy")).join("messages/base.jsonl");
    let text = fs::read_to_string(&base).unwrap();
    fs::write(&base, text.replace("text of b", "text of B")).unwrap();
    assert_eq!(content(&store, "copy").await.unwrap_err().code(), &ErrorCode::STORE_DAMAGED);
}

/// The lines of the open turn have an order.
#[tokio::test]
async fn an_export_in_which_a_line_of_the_turn_comes_again_or_late_is_refused() {
    let (_workspace, store, _) = instance().await;
    let mut export = Vec::new();
    store.export(&id("k"), &mut export).unwrap();
    let export = String::from_utf8(export).unwrap();
    let mut whole: Vec<_> = export.lines().map(str::to_owned).collect();
    whole.pop();
    let (event, begin) = (AgentEvent::input("hello"), whole.iter().position(|line| line.contains("\"turn\"")).unwrap());
    let digest = json!({ "digest": EventDigest::of(&event) }).to_string();
    let event = json!({ "event": event }).to_string();
    whole.splice(begin + 1..begin + 1, [event.clone(), digest.clone()]);
    let import = |lines: &[String], key: &str| {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let end = json!({ "end": { "lines": lines.len(), "crc": crc32fast::hash(text.as_bytes()) } });
        store.import(format!("{text}{end}\n").as_bytes(), Some(id(key)))
    };
    import(&whole, "whole").unwrap();
    for line in [event, digest] {
        // Twice, and after the first record.
        for place in [begin + 3, begin + 4] {
            let mut lines = whole.clone();
            if place > begin + 3 {
                lines.retain(|other| *other != line);
            }
            lines.insert(place.min(lines.len()), line.clone());
            let error = import(&lines, "refused").unwrap_err();
            assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED);
            assert!(error.message().contains("does not belong here"), "{}", error.message());
        }
    }
}
