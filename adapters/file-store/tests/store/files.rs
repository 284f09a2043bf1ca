//! The file store through the `Store` trait: what it persists, and the content of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use goondan_core::{
    AgentName, Conversation, Error, ErrorCode, ExtensionName, InstanceKey, Message, MessageEvent, TurnId,
};
use goondan_covers::covers;
use goondan_file_store::{FileStore, Fsync, workspace_id};
use goondan_runtime::store::{Commit, Durability, Interrupted, Journal, Opened, TurnStart};
use goondan_runtime::{InstanceId, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::records::{begin, checkpoint, fold, with_sum};

type State = BTreeMap<ExtensionName, Value>;

/// An open instance, as the agent runtime uses it.
struct Live {
    conversation: Conversation,
    journal: Box<dyn Journal>,
    state: State,
    interrupted: Option<Interrupted>,
}

impl Live {
    async fn open(workspace: &Path, key: &str) -> Result<Self, Error> {
        Self::open_in(&FileStore::open(workspace).unwrap(), key).await
    }

    async fn open_in(store: &FileStore, key: &str) -> Result<Self, Error> {
        let Opened { base, interrupted, state, journal, .. } = store.open(&id(key)).await?;
        let (mut conversation, _) = Conversation::from_base(base);
        for event in interrupted.iter().flat_map(|interrupted| &interrupted.events) {
            conversation.apply(event.clone())?;
        }
        Ok(Self { conversation, journal, state, interrupted })
    }

    fn emit(&mut self, event: MessageEvent) {
        self.conversation.apply(event.clone()).unwrap();
        self.journal.record(&event, None).unwrap();
    }

    async fn commit(&mut self, turn: &str, state: &State) -> Result<(), Error> {
        let turn = TurnId::from(turn);
        self.journal.commit(Commit::new(&turn, &self.conversation, state)).await?;
        self.conversation.fold();
        Ok(())
    }

    async fn turn(&mut self, turn: &str, events: impl IntoIterator<Item = MessageEvent>, state: &State) {
        self.journal.begin(TurnStart::new(&turn.into())).unwrap();
        events.into_iter().for_each(|event| self.emit(event));
        self.journal.flush(Durability::Flushed).await.unwrap();
        self.commit(turn, state).await.unwrap();
    }

    fn texts(&self) -> Vec<String> {
        self.conversation.messages().map(|message| message.text().into_owned()).collect()
    }
}

fn id(key: &str) -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new(key).unwrap() }
}

fn message(id: &str) -> Message {
    Message::user(format!("text of {id}")).with_id(id)
}

fn append(id: &str) -> MessageEvent {
    MessageEvent::append(message(id))
}

fn state(values: &[(&str, Value)]) -> State {
    values.iter().map(|(name, value)| (ExtensionName::new(name).unwrap(), value.clone())).collect()
}

/// Returns a workspace with the instance `bot:k`, whose files are replaced by the given ones.
async fn workspace(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let workspace = tempfile::tempdir().unwrap();
    drop(Live::open(workspace.path(), "k").await.unwrap());
    let dir = workspace.path().join("instances/bot:k");
    fs::create_dir_all(dir.join("extensions")).unwrap();
    for (name, content) in files {
        fs::write(dir.join(name), content).unwrap();
    }
    (workspace, dir)
}

/// Returns the record of an event that appends.
fn event(message: &str) -> String {
    format!("{{\"type\":\"append\",\"message\":{}}}\n", line(message))
}

fn line(message: &str) -> String {
    format!(
        r#"{{"id":"{message}","data":{{"role":"user","content":"text of {message}"}},"metadata":{{}},"createdAt":"2026-01-31T12:00:00.000Z","source":{{"type":"user"}}}}"#
    )
}

async fn refusal(workspace: &Path) -> Error {
    let error = Live::open(workspace, "k").await.err().expect("the instance must not open");
    assert!(error.suggestion().is_some(), "{error:?}");
    error
}

#[tokio::test]
async fn turns_and_state_are_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = Live::open(dir.path(), "k").await.unwrap();
    live.turn("t1", [append("a"), append("b"), append("c")], &state(&[("notes", json!(["x", 1]))])).await;
    live.turn("t2", [append("d")], &State::new()).await;
    assert_eq!(live.texts().len(), 4);
    drop(live);

    let mut live = Live::open(dir.path(), "k").await.unwrap();
    assert_eq!(live.interrupted, None);
    assert_eq!(live.texts(), ["text of a", "text of b", "text of c", "text of d"]);
    assert_eq!(live.state, state(&[("notes", json!(["x", 1]))]));
    let changes = [MessageEvent::replace("b", message("b2")), MessageEvent::remove("a"), append("e")];
    live.turn("t3", changes, &state(&[("counter", json!(3))])).await;
    drop(live);

    let mut live = Live::open(dir.path(), "k").await.unwrap();
    assert_eq!(live.texts(), ["text of b2", "text of c", "text of d", "text of e"]);
    assert_eq!(live.state, state(&[("counter", json!(3)), ("notes", json!(["x", 1]))]));
    live.turn("t4", [MessageEvent::truncate(), append("f")], &state(&[("notes", json!("reset"))])).await;
    live.turn("t5", [append("g")], &State::new()).await;
    drop(live);

    let live = Live::open(dir.path(), "k").await.unwrap();
    assert_eq!(live.texts(), ["text of f", "text of g"]);
    assert_eq!(live.state, state(&[("counter", json!(3)), ("notes", json!("reset"))]));
}

#[tokio::test]
async fn an_interrupted_turn_is_recovered_and_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = Live::open(dir.path(), "k").await.unwrap();
    live.turn("t1", [append("a")], &State::new()).await;
    live.journal.begin(TurnStart::new(&"t2".into())).unwrap();
    live.emit(append("b"));
    live.journal.start_call(&"c1".into()).unwrap();
    live.journal.flush(Durability::Synced).await.unwrap();
    live.emit(MessageEvent::remove("a"));
    drop(live);

    for _ in 0..2 {
        let live = Live::open(dir.path(), "k").await.unwrap();
        let mut expected = Interrupted::new("t2".into());
        expected.events = vec![live.conversation.events()[0].clone(), MessageEvent::remove("a")];
        expected.started = vec!["c1".into()];
        expected.facts.newest = 2;
        assert_eq!(live.interrupted, Some(expected));
        assert_eq!(live.texts(), ["text of b"]);
    }
    let mut live = Live::open(dir.path(), "k").await.unwrap();
    assert!(
        live.journal.begin(TurnStart::new(&"t3".into())).is_err(),
        "another turn cannot begin before this one is closed"
    );
    live.emit(append("c"));
    live.commit("t2", &state(&[("notes", json!(1))])).await.unwrap();
    live.turn("t3", [append("d")], &State::new()).await;
    drop(live);

    let live = Live::open(dir.path(), "k").await.unwrap();
    assert_eq!((live.texts().len(), live.interrupted), (3, None));
    assert_eq!(live.conversation.messages().last().unwrap().id().as_str(), "d");
}

#[tokio::test]
async fn files_have_the_documented_form() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = Live::open(dir.path(), "user:1").await.unwrap();
    let instance = dir.path().join("instances/bot:user:1");
    assert_eq!(FileStore::open(dir.path()).unwrap().instance_dir(&id("user:1")), instance);
    let read = |file: &str| fs::read_to_string(instance.join(file)).unwrap();
    let message: Message = serde_json::from_str(&line("a")).unwrap();

    live.journal.begin(TurnStart::new(&"t1".into())).unwrap();
    live.emit(MessageEvent::append(message));
    live.emit(MessageEvent::remove("x"));
    live.emit(MessageEvent::truncate());
    live.journal.flush(Durability::Flushed).await.unwrap();
    let recorded =
        format!("{}{}{{\"type\":\"remove\",\"targetId\":\"x\"}}\n{{\"type\":\"truncate\"}}\n", begin("t1"), event("a"));
    let before = checkpoint("", &json!({}));
    assert_eq!(read("messages/events.jsonl"), format!("{before}{recorded}"));
    let metadata: Value = serde_json::from_str(&read("metadata.json")).unwrap();
    assert_eq!((&metadata["status"], &metadata["agentName"]), (&json!("processing"), &json!("bot")));
    assert_eq!(metadata["instanceKey"], "user:1");
    assert_eq!(read("lock").trim(), std::process::id().to_string());

    live.emit(MessageEvent::append(serde_json::from_str(&line("b")).unwrap()));
    live.commit("t1", &state(&[("my-notes", json!({"n": [1, "zwei", null]}))])).await.unwrap();
    let state = json!({ "my-notes": { "n": [1, "zwei", null] } });
    let records = format!("{recorded}{}", event("b"));
    let committed = format!("{before}{records}{}", fold("t1", false, &records, &state));
    assert_eq!(read("messages/events.jsonl"), committed);
    assert_eq!(read("messages/base.jsonl"), "", "a turn that does more than append is shown at the end");
    live.turn("t2", [append("c")], &State::new()).await;
    assert!(read("messages/events.jsonl").starts_with(&(committed + "{\"turn\":\"t2\",\"after\":\"t1\",")));
    let idle: Value = serde_json::from_str(&read("metadata.json")).unwrap();
    assert_eq!((&idle["status"], &idle["createdAt"]), (&json!("idle"), &metadata["createdAt"]));
    assert!(idle["updatedAt"].as_str().unwrap() >= metadata["updatedAt"].as_str().unwrap());
    live.journal.close().await.unwrap();
    let base = read("messages/base.jsonl");
    assert!(base.starts_with(&(line("b") + "\n{\"id\":\"c\",")), "{base}");
    assert_eq!(read("extensions/my-notes.json"), "{\"n\":[1,\"zwei\",null]}\n");
    let (bytes, crc) = (base.len(), crc32fast::hash(base.as_bytes()));
    let folded = with_sum(&format!("{{\"folded\":\"t2\",\"baseBytes\":{bytes},\"crc\":{crc}}}"));
    assert!(read("messages/events.jsonl").ends_with(&folded));
    let names: BTreeSet<_> = fs::read_dir(instance.join("messages")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, BTreeSet::from(["base.jsonl".into(), "events.jsonl".into()]));
}

#[tokio::test]
async fn a_full_journal_is_put_into_the_other_files() {
    for rewrites in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = FileStore::open(dir.path()).unwrap().journal_limit(2_000);
        let mut live = Live::open_in(&store, "k").await.unwrap();
        let events = dir.path().join("instances/bot:k/messages/events.jsonl");
        let mut lengths = Vec::new();
        for turn in 0..30 {
            let mut changes = vec![append(&format!("m{turn}"))];
            changes.extend((rewrites && turn > 0).then(|| MessageEvent::remove(format!("m{}", turn - 1))));
            live.turn(&format!("t{turn}"), changes, &state(&[("count", json!(turn))])).await;
            lengths.push(fs::metadata(&events).unwrap().len());
        }
        assert!(lengths.windows(2).filter(|pair| pair[1] < pair[0]).count() > 2, "{lengths:?}");
        assert!(lengths.iter().all(|length| *length < 3_000), "{lengths:?}");
        let texts = live.texts();
        drop(live);
        let live = Live::open(dir.path(), "k").await.unwrap();
        assert_eq!((live.texts(), live.state), (texts, state(&[("count", json!(29))])));
    }
}

#[tokio::test]
async fn a_base_that_cannot_be_written_holds_back_the_next_turn_and_loses_none() {
    let (workspace, dir) = workspace(&[]).await;
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    let base = dir.join("messages/base.jsonl");
    fs::remove_file(&base).unwrap();
    fs::create_dir(&base).unwrap();
    live.turn("t1", [append("a")], &state(&[("notes", json!(1))])).await;

    // The turn is committed; the next one cannot begin while the base is something else.
    let error = live.journal.begin(TurnStart::new(&"t2".into())).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::STORE_IO);
    assert!(error.message().contains("base.jsonl"), "{error:?}");
    fs::remove_dir(&base).unwrap();
    live.turn("t2", [append("b")], &State::new()).await;
    live.journal.close().await.unwrap();
    assert_eq!(fs::read_to_string(&base).unwrap().lines().count(), 2);
    let live = Live::open(workspace.path(), "k").await.unwrap();
    assert_eq!(live.texts(), ["text of a", "text of b"]);
    assert_eq!(live.state, state(&[("notes", json!(1))]));
}

#[tokio::test]
async fn a_checkpoint_that_fails_fails_no_turn() {
    for changes in [vec![append("b")], vec![append("b"), MessageEvent::remove("a")]] {
        let workspace = tempfile::tempdir().unwrap();
        let store = FileStore::open(workspace.path()).unwrap().journal_limit(1);
        let mut live = Live::open_in(&store, "k").await.unwrap();
        live.turn("t1", [append("a")], &State::new()).await;
        let in_the_way = workspace.path().join("instances/bot:k/extensions");
        fs::write(&in_the_way, "in the way").unwrap();
        live.turn("t2", changes, &state(&[("notes", json!(1))])).await;
        let texts = live.texts();
        let error = live.journal.begin(TurnStart::new(&"t3".into())).unwrap_err();
        assert_eq!(error.code(), &ErrorCode::STORE_IO, "{error:?}");
        fs::remove_file(&in_the_way).unwrap();
        live.turn("t3", [], &State::new()).await;
        live.turn("t4", [], &State::new()).await;
        live.journal.close().await.unwrap();
        assert_eq!(fs::read_to_string(in_the_way.join("notes.json")).unwrap(), "1\n");
        let live = Live::open(workspace.path(), "k").await.unwrap();
        assert_eq!((live.texts(), live.interrupted), (texts, None));
        assert_eq!(live.state, state(&[("notes", json!(1))]));
    }
}

#[tokio::test]
async fn different_keys_have_different_directories_and_none_is_outside() {
    let root = tempfile::tempdir().unwrap();
    let workspace = root.path().join("workspaces/w");
    let keys = ["a/b", "a-b", "a%2Fb", "..", "../x", "A/b", "user:1"];
    for key in keys {
        let mut live = Live::open(&workspace, key).await.unwrap();
        live.turn("t", [MessageEvent::append(Message::user(key))], &State::new()).await;
    }
    for key in keys {
        assert_eq!(Live::open(&workspace, key).await.unwrap().texts(), [key]);
    }
    let names = |dir: &Path| -> BTreeSet<String> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let expected = ["a%2Fb", "a-b", "a%252Fb", "..", "..%2Fx", "A%2Fb", "user:1"].map(|key| format!("bot:{key}"));
    assert_eq!(names(&workspace.join("instances")), BTreeSet::from(expected));
    assert_eq!(names(&workspace), BTreeSet::from(["instances".to_owned()]));
    assert_eq!(names(root.path()), BTreeSet::from(["workspaces".to_owned()]));
}

#[tokio::test]
async fn long_keys_get_short_names_that_differ() {
    let dir = tempfile::tempdir().unwrap();
    let long = |end: &str| format!("{}{end}", "é".repeat(500));
    for end in ["1", "2"] {
        Live::open(dir.path(), &long(end)).await.unwrap().turn("t", [append(end)], &State::new()).await;
    }
    assert_eq!(Live::open(dir.path(), &long("2")).await.unwrap().texts(), ["text of 2"]);
    let names: Vec<_> = fs::read_dir(dir.path().join("instances")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2);
    assert!(names.iter().all(|name| name.len() <= 200), "{names:?}");
}

#[tokio::test]
async fn a_directory_of_another_instance_is_refused() {
    let (workspace, dir) = workspace(&[]).await;
    fs::rename(&dir, dir.with_file_name("bot:other")).unwrap();
    let error = Live::open(workspace.path(), "other").await.err().unwrap();
    assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED);
    assert!(error.message().contains("`bot:k`, not `bot:other`"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_instance_is_locked_until_it_is_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::open(dir.path(), "k").await.unwrap();
    let error = refusal(dir.path()).await;
    assert_eq!(error.code(), &ErrorCode::STORE_LOCKED);
    assert!(error.message().contains("in this process"), "{error:?}");
    assert!(Live::open(dir.path(), "other").await.is_ok());
    fs::write(dir.path().join("instances/bot:k/lock"), "4711\n").unwrap();
    assert!(refusal(dir.path()).await.message().contains("in process 4711"));
    drop(live);
    assert!(Live::open(dir.path(), "k").await.is_ok());
}

#[tokio::test]
async fn opening_a_store_creates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let _store = FileStore::in_workspace(dir.path(), "My Swarm").unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(workspace_id("My Swarm"), "my-swarm");
}

#[tokio::test]
async fn a_torn_last_line_is_cut_off_and_kept_aside() {
    let events = format!("{}{}{}", checkpoint("", &json!({})), begin("t"), event("a"));
    let torn = r#"{"type":"append","mess"#;
    let (workspace, dir) = workspace(&[("messages/events.jsonl", &format!("{events}{torn}"))]).await;
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    assert_eq!(live.texts(), ["text of a"]);
    let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap();
    assert_eq!((read("messages/events.jsonl"), read("messages/events.jsonl.corrupt-1")), (events, torn.to_owned()));
    live.commit("t", &State::new()).await.unwrap();
    drop(live);

    // What a turn appends to the base is in the journal too, so nothing of it need be kept.
    let base = read("messages/base.jsonl");
    for torn in [&base[..base.len() / 2], "", &("\0".repeat(9) + &base[9..])] {
        fs::write(dir.join("messages/base.jsonl"), torn).unwrap();
        assert_eq!(Live::open(workspace.path(), "k").await.unwrap().texts(), ["text of a"]);
        assert_eq!(read("messages/base.jsonl"), base);
        assert!(!dir.join("messages/base.jsonl.corrupt-1").exists());
    }
}

#[tokio::test]
async fn a_commit_with_pages_that_were_never_written_does_not_count() {
    let turn = begin("t") + &event("a");
    let fold = fold("t", true, &turn, &json!({}));
    for (before, expected) in [(turn.as_str(), Some(1)), ("", None)] {
        let before = checkpoint("", &json!({})) + before;
        let lost = format!("\0\0\0\n{fold}");
        let (workspace, dir) = workspace(&[("messages/events.jsonl", &format!("{before}{lost}"))]).await;
        let live = Live::open(workspace.path(), "k").await.unwrap();
        assert_eq!(live.interrupted.map(|turn| turn.events.len()), expected);
        assert_eq!(fs::read_to_string(dir.join("messages/events.jsonl.corrupt-1")).unwrap(), lost);
    }
}

/// Each commit syncs everything before it, so pages of zeros before another turn were not left by a crash.
#[tokio::test]
async fn a_zeroed_page_before_the_last_turn_is_damage() {
    let (workspace, dir) = workspace(&[]).await;
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    for turn in ["t1", "t2", "t3"] {
        live.turn(turn, [append(turn)], &State::new()).await;
    }
    drop(live);
    let events = dir.join("messages/events.jsonl");
    let mut bytes = fs::read(&events).unwrap();
    let at = bytes.windows(10).position(|bytes| bytes == b"text of t1").unwrap();
    bytes[at..at + 60].fill(0);
    fs::write(&events, &bytes).unwrap();
    let error = refusal(workspace.path()).await;
    assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED);
    assert!(error.message().contains("events.jsonl, line 3:"), "{error:?}");
    assert_eq!(fs::read(&events).unwrap(), bytes, "it is left as it is");
}

#[tokio::test]
async fn records_of_a_later_version_are_kept_aside() {
    let before = checkpoint("", &json!({})) + &begin("t");
    let unknown = "{\"type\":\"reorder\"}\n{\"note\":\"x\"}\n";
    let events = format!("{before}{unknown}{}", event("a"));
    let (workspace, dir) = workspace(&[("messages/events.jsonl", &events)]).await;
    let aside = dir.join("messages/events.jsonl.corrupt-1");
    for _ in 0..2 {
        let live = Live::open(workspace.path(), "k").await.unwrap();
        assert_eq!(live.interrupted.unwrap().events.len(), 1);
        assert_eq!(fs::read_to_string(&aside).unwrap(), unknown);
        assert!(!dir.join("messages/events.jsonl.corrupt-2").exists());
    }

    // Those of a committed turn are kept aside when the journal starts anew.
    fs::remove_file(&aside).unwrap();
    let turn = format!("{}{unknown}{}", begin("t"), event("a"));
    let events = format!("{}{turn}{}", checkpoint("", &json!({})), fold("t", true, &turn, &json!({})));
    fs::write(dir.join("messages/events.jsonl"), &events).unwrap();
    assert_eq!(Live::open(workspace.path(), "k").await.unwrap().texts(), ["text of a"]);
    assert!(!aside.exists());
    let store = FileStore::open(workspace.path()).unwrap().journal_limit(1);
    let mut live = Live::open_in(&store, "k").await.unwrap();
    live.turn("t2", [append("b")], &State::new()).await;
    assert_eq!(fs::read_to_string(&aside).unwrap(), unknown);
    drop(live);
    assert_eq!(Live::open(workspace.path(), "k").await.unwrap().texts(), ["text of a", "text of b"]);
}

#[tokio::test]
async fn damage_in_the_middle_stops_with_file_and_line() {
    let (first, turn) = (checkpoint("", &json!({})), begin("t"));
    let a = event("a");
    let whole = format!("{turn}{a}");
    let fold_of = |turn: &str, records: &str| fold(turn, true, records, &json!({}));
    for (content, number) in [
        (format!("{first}{turn}rubbish\n{a}"), 3),
        (format!("{first}{turn}{{\"type\":\"append\"}}\n"), 3),
        (format!("{first}{turn}7\n"), 3),
        (format!("{first}{turn}{a}{}", begin("t2")), 4),
        (format!("{first}{whole}{}{a}", fold_of("t", &whole)), 5),
        (format!("{first}{a}"), 2),
        (format!("{first}{whole}{}", fold_of("other", &whole)), 4),
        (format!("{first}{whole}{}", fold_of("t", &turn)), 4),
        (format!("{first}{whole}{}{}", fold_of("t", &whole), begin("t2")), 5),
        (format!("{first}{whole}{first}"), 4),
        (format!("{first}{}", with_sum("{\"folded\":\"t\",\"baseBytes\":0,\"crc\":0}")), 2),
        (with_sum("{\"folded\":\"t\",\"baseBytes\":0,\"crc\":0}"), 1),
        (first.replace(":0,", ":1,"), 1),
    ] {
        let (workspace, dir) = workspace(&[("messages/events.jsonl", &content)]).await;
        let error = refusal(workspace.path()).await;
        assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED, "{content}");
        assert!(error.message().contains(&format!("events.jsonl, line {number}:")), "{error:?}\n{content}");
        assert_eq!(fs::read_to_string(dir.join("messages/events.jsonl")).unwrap(), content, "it is left as it is");
    }
    let (a, b) = (line("a"), line("b"));
    for (base, number) in [(format!("{a}\n{{\"id\n{b}\n"), 2), (format!("{a}\n\n{{\"id\":\"b\"}}\n"), 3)] {
        let events = checkpoint(&format!("{a}\n{b}\n"), &json!({}));
        let (workspace, dir) = workspace(&[("messages/base.jsonl", &base), ("messages/events.jsonl", &events)]).await;
        let error = refusal(workspace.path()).await;
        assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED, "{base}");
        assert!(error.message().contains(&format!("base.jsonl, line {number}:")), "{error:?}\n{base}");
        assert_eq!(fs::read_to_string(dir.join("messages/base.jsonl")).unwrap(), base, "it is left as it is");
    }
}

#[tokio::test]
#[covers("D-34")]
async fn a_directory_of_another_version_is_refused_with_what_to_do() {
    let base = line("a") + "\n";
    let earlier = with_sum(r#"{"committed":"t","baseBytes":0,"crc":0,"state":{}}"#);
    let later = checkpoint("", &json!({})).replace("\"format\":1", "\"format\":2");
    let later = with_sum(later.split(",\"sum\"").next().map(|text| format!("{text}}}")).unwrap().as_str());
    for (events, base) in
        [(earlier, ""), (begin("t"), ""), (event("a"), ""), (later, ""), (String::new(), base.as_str())]
    {
        let (workspace, dir) = workspace(&[("messages/events.jsonl", &events), ("messages/base.jsonl", base)]).await;
        let before = fs::read_dir(dir.join("messages")).unwrap().count();
        let error = refusal(workspace.path()).await;
        assert_eq!(error.code(), &ErrorCode::STORE_VERSION, "{error:?}");
        assert!(error.suggestion().unwrap().contains("export the instance with the version"), "{error:?}");
        assert_eq!(fs::read_to_string(dir.join("messages/events.jsonl")).unwrap(), events);
        assert_eq!(fs::read_dir(dir.join("messages")).unwrap().count(), before);
    }
}

#[tokio::test]
async fn a_base_that_lost_bytes_or_was_replaced_is_refused() {
    let (a, b) = (line("a") + "\n", line("b") + "\n");
    let events = checkpoint(&format!("{a}{b}"), &json!({}));
    for (base, what) in [(&a, "bytes, and had"), (&format!("{b}{a}"), "are not those of the last checkpoint")] {
        let (workspace, _) = workspace(&[("messages/events.jsonl", &events), ("messages/base.jsonl", base)]).await;
        let error = refusal(workspace.path()).await;
        assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED);
        assert!(error.message().contains("base.jsonl") && error.message().contains(what), "{error:?}");
    }
}

#[tokio::test]
async fn a_base_that_has_more_than_the_journal_is_refused() {
    let a = line("a") + "\n";
    let events = checkpoint(&a, &json!({}));
    let foreign = a.clone() + &line("foreign");
    let (workspace, dir) = workspace(&[("messages/events.jsonl", &events), ("messages/base.jsonl", &foreign)]).await;
    let error = refusal(workspace.path()).await;
    assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED);
    let what = format!("what follows the first {} bytes is not what the turns", a.len());
    assert!(error.message().contains("base.jsonl") && error.message().contains(&what), "{error:?}");
    assert_eq!(fs::read_to_string(dir.join("messages/base.jsonl")).unwrap(), foreign, "it is left as it is");
    // Without syncs, a machine that stopped may have kept more of the base than of the journal.
    let store = FileStore::open(workspace.path()).unwrap().fsync(Fsync::Never);
    assert_eq!(store.open(&id("k")).await.unwrap().base.len(), 1);
    assert_eq!(fs::read_to_string(dir.join("messages/base.jsonl.corrupt-1")).unwrap(), line("foreign"));
}

#[tokio::test]
async fn what_another_program_does_to_the_base_of_an_open_instance_holds_back_the_next_turn() {
    let (workspace, dir) = workspace(&[]).await;
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    live.turn("t1", [append("a")], &State::new()).await;
    let base = dir.join("messages/base.jsonl");
    let foreign = fs::read_to_string(&base).unwrap() + &line("foreign") + "\n";
    fs::write(&base, &foreign).unwrap();
    live.turn("t2", [append("b")], &State::new()).await;
    let error = live.journal.begin(TurnStart::new(&"t3".into())).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED, "{error:?}");
    assert_eq!(fs::read_to_string(&base).unwrap(), foreign, "nothing is written over it");
    drop(live);
    let store = FileStore::open(workspace.path()).unwrap();
    assert_eq!(store.repair(&id("k")).unwrap().len(), 1);
    let live = Live::open(workspace.path(), "k").await.unwrap();
    assert_eq!(live.texts(), ["text of a", "text of foreign", "text of b"]);
}

/// No turn is lost that is committed after another program took the file away.
#[cfg(unix)]
#[tokio::test]
#[covers("BITS-01")]
async fn a_base_that_is_replaced_while_its_instance_is_open_costs_no_turn() {
    let replace = |base: &Path, content: &str| {
        let other = base.with_extension("other");
        fs::write(&other, content).unwrap();
        fs::rename(other, base).unwrap();
    };
    for how in ["removed", "replaced by a copy", "replaced by an empty one", "a link", "edited"] {
        for limit in [1, 1_500, u64::MAX] {
            let (workspace, dir) = workspace(&[]).await;
            let (base, moved) = (dir.join("messages/base.jsonl"), dir.join("messages/moved"));
            let store = FileStore::open(workspace.path()).unwrap().journal_limit(limit);
            let mut live = Live::open_in(&store, "k").await.unwrap();
            live.turn("t1", [append("a")], &State::new()).await;
            live.turn("t2", [append("b")], &State::new()).await;
            let known = fs::read_to_string(&base).unwrap();
            match how {
                "removed" => fs::remove_file(&base).unwrap(),
                "replaced by a copy" => replace(&base, &known),
                "replaced by an empty one" => replace(&base, ""),
                "a link" => {
                    fs::rename(&base, &moved).unwrap();
                    std::os::unix::fs::symlink("moved", &base).unwrap();
                }
                _ => fs::write(&base, known.replace("text of b", "text of x")).unwrap(),
            }
            let mut committed = Vec::new();
            for number in 3..12 {
                let (turn, id) = (format!("t{number}"), format!("m{number}"));
                if live.journal.begin(TurnStart::new(&turn.as_str().into())).is_err() {
                    break;
                }
                live.emit(append(&id));
                live.commit(&turn, &State::new()).await.unwrap();
                committed.push(format!("text of {id}"));
            }
            drop(live);
            if how == "a link" {
                fs::rename(&moved, &base).unwrap();
            }
            if store.open(&id("k")).await.is_err() {
                store.repair(&id("k")).unwrap();
            }
            let texts = Live::open_in(&store, "k").await.unwrap().texts();
            assert!(texts.ends_with(&committed) && !committed.is_empty(), "{how}, {limit}: {texts:?}, {committed:?}");
        }
    }
}

#[tokio::test]
async fn an_unreadable_state_file_is_not_reset() {
    let events = checkpoint("", &json!({}));
    let files = [
        ("messages/events.jsonl", events.as_str()),
        ("extensions/notes.json", "{\"n\":"),
        ("extensions/Other One.json", "?"),
    ];
    let (workspace, dir) = workspace(&files).await;
    let error = refusal(workspace.path()).await;
    assert_eq!(error.code(), &ErrorCode::from("E_EXT_STATE"));
    assert!(error.message().contains("extensions/notes.json"), "{error:?}");
    assert_eq!(fs::read_to_string(dir.join("extensions/notes.json")).unwrap(), "{\"n\":");
    fs::write(dir.join("extensions/notes.json"), "[1]").unwrap();
    assert_eq!(Live::open(workspace.path(), "k").await.unwrap().state, state(&[("notes", json!([1]))]));
}

#[tokio::test]
async fn a_base_that_was_accepted_without_its_last_line_end_is_added_to() {
    let edited = format!("{}\r\n\r\n\n{}", line("a"), line("b"));
    let (workspace, dir) = workspace(&[("messages/base.jsonl", &edited)]).await;
    FileStore::open(workspace.path()).unwrap().repair(&id("k")).unwrap();
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    assert_eq!(live.texts(), ["text of a", "text of b"]);
    live.turn("t0", [], &State::new()).await;
    live.turn("t1", [append("c")], &State::new()).await;
    live.turn("t2", [append("d")], &State::new()).await;
    drop(live);
    let base = fs::read_to_string(dir.join("messages/base.jsonl")).unwrap();
    assert!(base.starts_with(&format!("{edited}\n{{\"id\":\"c\"")), "{base}");
    assert_eq!(Live::open(workspace.path(), "k").await.unwrap().texts().len(), 4);
}

#[tokio::test]
async fn missing_files_are_a_fresh_instance() {
    let (workspace, dir) = workspace(&[("metadata.json", "")]).await;
    fs::remove_dir_all(dir.join("messages")).unwrap();
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    live.turn("t", [append("a")], &State::new()).await;
    drop(live);
    fs::remove_file(dir.join("messages/base.jsonl")).unwrap();
    fs::remove_file(dir.join("metadata.json")).unwrap();
    assert_eq!(Live::open(workspace.path(), "k").await.unwrap().texts(), ["text of a"], "the journal has all of it");
    let metadata: Value = serde_json::from_slice(&fs::read(dir.join("metadata.json")).unwrap()).unwrap();
    assert_eq!(metadata["instanceKey"], "k");
}

#[tokio::test]
async fn unknown_members_of_metadata_are_kept() {
    let foreign = r#"{"status":"processing","agentName":"bot","instanceKey":"k","createdAt":"2020-01-01T00:00:00.000Z","updatedAt":"2020-01-01T00:00:00.000Z","color":"red"}"#;
    let (workspace, dir) = workspace(&[("metadata.json", foreign)]).await;
    drop(Live::open(workspace.path(), "k").await.unwrap());
    let text = fs::read_to_string(dir.join("metadata.json")).unwrap();
    let metadata: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&metadata["color"], &metadata["createdAt"]), (&json!("red"), &json!("2020-01-01T00:00:00.000Z")));
    assert_eq!(text.matches("\"status\":\"idle\"").count(), 1, "{text}");
}

#[tokio::test]
async fn calls_out_of_order_are_refused_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = Live::open(dir.path(), "k").await.unwrap();
    assert!(live.journal.record(&append("a"), None).is_err());
    assert!(live.commit("t1", &State::new()).await.is_err());
    live.journal.begin(TurnStart::new(&"t1".into())).unwrap();
    assert!(live.journal.begin(TurnStart::new(&"t2".into())).is_err());
    assert!(live.commit("t2", &State::new()).await.is_err());
    live.conversation.apply(append("a")).unwrap();
    assert!(live.commit("t1", &State::new()).await.is_err(), "`a` is not recorded");
    live.journal.record(&append("a"), None).unwrap();
    live.commit("t1", &State::new()).await.unwrap();
    drop(live);
    assert_eq!(Live::open(dir.path(), "k").await.unwrap().texts(), ["text of a"]);
}
