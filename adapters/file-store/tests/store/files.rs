//! The file store through the `Store` trait: what it persists, the content of its files, and how it reads the files of
//! other implementations.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use goondan_core::{
    AgentName, Conversation, Error, ErrorCode, ExtensionName, InstanceKey, Message, MessageEvent, TurnId,
};
use goondan_file_store::{FileStore, workspace_id};
use goondan_runtime::store::{Commit, Durability, Interrupted, Journal, Opened, TurnStart};
use goondan_runtime::{InstanceId, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

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
        let Opened { base, interrupted, state, journal, .. } =
            FileStore::open(workspace).unwrap().open(&id(key)).await?;
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

/// Returns a record with the checksum that ends its line.
fn with_sum(record: &str) -> String {
    let text = record.strip_suffix('}').unwrap();
    format!("{text},\"sum\":{}}}\n", crc32fast::hash(text.as_bytes()))
}

/// Returns the record that a commit leaves.
fn committed(turn: &str, base: &str, state: &Value) -> String {
    let (bytes, crc) = (base.len(), crc32fast::hash(base.as_bytes()));
    with_sum(&format!("{{\"committed\":\"{turn}\",\"baseBytes\":{bytes},\"crc\":{crc},\"state\":{state}}}"))
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
    let recorded = format!(
        "{{\"type\":\"append\",\"message\":{}}}\n\
         {{\"type\":\"remove\",\"targetId\":\"x\"}}\n{{\"type\":\"truncate\"}}\n",
        line("a")
    );
    let begin = with_sum(r#"{"turn":"t1","baseBytes":0}"#);
    assert_eq!(read("messages/events.jsonl"), begin + &recorded);
    let metadata: Value = serde_json::from_str(&read("metadata.json")).unwrap();
    assert_eq!((&metadata["status"], &metadata["agentName"]), (&json!("processing"), &json!("bot")));
    assert_eq!(metadata["instanceKey"], "user:1");
    assert_eq!(read("lock").trim(), std::process::id().to_string());

    live.emit(MessageEvent::append(serde_json::from_str(&line("b")).unwrap()));
    live.commit("t1", &state(&[("my-notes", json!({"n": [1, "zwei", null]}))])).await.unwrap();
    assert_eq!(read("messages/base.jsonl"), line("b") + "\n");
    let state = "{\"n\":[1,\"zwei\",null]}\n";
    assert_eq!(read("extensions/my-notes.json"), state);
    let state = json!({ "my-notes": crc32fast::hash(state.as_bytes()) });
    assert_eq!(read("messages/events.jsonl"), committed("t1", &read("messages/base.jsonl"), &state));
    let idle: Value = serde_json::from_str(&read("metadata.json")).unwrap();
    assert_eq!((&idle["status"], &idle["createdAt"]), (&json!("idle"), &metadata["createdAt"]));
    assert!(idle["updatedAt"].as_str().unwrap() >= metadata["updatedAt"].as_str().unwrap());
    let names: BTreeSet<_> = fs::read_dir(instance.join("messages")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, BTreeSet::from(["base.jsonl".into(), "events.jsonl".into()]));
}

#[tokio::test]
async fn the_record_of_a_commit_holds_what_folding_again_needs() {
    // The base cannot be written, so the fold record stays in the events.
    let (workspace, dir) = workspace(&[]).await;
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    fs::remove_file(dir.join("messages/base.jsonl")).unwrap();
    fs::create_dir(dir.join("messages/base.jsonl")).unwrap();
    let message: Message = serde_json::from_str(&line("a")).unwrap();
    live.turn("t1", [MessageEvent::append(message)], &state(&[("notes", json!(1))])).await;
    let base = line("a") + "\n";
    let begin = with_sum(r#"{"turn":"t1","baseBytes":0}"#);
    let before = format!("{begin}{{\"type\":\"append\",\"message\":{}}}\n", line("a"));
    let record = with_sum(&format!(
        "{{\"fold\":\"t1\",\"pure\":true,\"baseBytesAfter\":{},\"crc\":{},\"eventsCrc\":{},\"state\":{{\"notes\":1}}}}",
        base.len(),
        crc32fast::hash(base.as_bytes()),
        crc32fast::hash(before.as_bytes())
    ));
    let events = fs::read_to_string(dir.join("messages/events.jsonl")).unwrap();
    assert!(events.ends_with(&record), "{events}");

    // The turn is committed; the next one cannot begin until its files are written.
    let error = live.journal.begin(TurnStart::new(&"t2".into())).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::STORE_IO);
    assert!(error.message().contains("base.jsonl"), "{error:?}");
    fs::remove_dir(dir.join("messages/base.jsonl")).unwrap();
    live.turn("t2", [append("b")], &State::new()).await;
    drop(live);
    let live = Live::open(workspace.path(), "k").await.unwrap();
    assert_eq!(live.texts(), ["text of a", "text of b"]);
    assert_eq!(live.state, state(&[("notes", json!(1))]));
}

#[tokio::test]
async fn a_commit_that_is_left_unfinished_is_finished_by_the_next_opening() {
    for changes in [vec![append("b")], vec![append("b"), MessageEvent::remove("a")]] {
        let (workspace, dir) = workspace(&[]).await;
        let mut live = Live::open(workspace.path(), "k").await.unwrap();
        live.turn("t1", [append("a")], &State::new()).await;
        fs::remove_dir(dir.join("extensions")).unwrap();
        fs::write(dir.join("extensions"), "in the way").unwrap();
        live.turn("t2", changes, &state(&[("notes", json!(1))])).await;
        let texts = live.texts();
        drop(live);
        assert_eq!(refusal(workspace.path()).await.code(), &ErrorCode::STORE_IO);
        fs::remove_file(dir.join("extensions")).unwrap();
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
    let events = format!("{{\"turn\":\"t\",\"baseBytes\":0}}\n{{\"type\":\"append\",\"message\":{}}}\n", line("a"));
    let torn = r#"{"type":"append","mess"#;
    let (workspace, dir) = workspace(&[("messages/events.jsonl", &format!("{events}{torn}"))]).await;
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    assert_eq!(live.texts(), ["text of a"]);
    let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap();
    assert_eq!((read("messages/events.jsonl"), read("messages/events.jsonl.corrupt-1")), (events, torn.to_owned()));
    live.commit("t", &State::new()).await.unwrap();
    drop(live);

    let base = read("messages/base.jsonl");
    for n in 1..=2 {
        fs::write(dir.join("messages/base.jsonl"), format!("{base}{{\"id")).unwrap();
        assert_eq!(Live::open(workspace.path(), "k").await.unwrap().texts(), ["text of a"]);
        assert_eq!(read("messages/base.jsonl"), base);
        assert_eq!(read(&format!("messages/base.jsonl.corrupt-{n}")), "{\"id");
    }
}

#[tokio::test]
async fn a_commit_with_pages_that_were_never_written_does_not_count() {
    let begin = r#"{"turn":"t","baseBytes":0}"#;
    let event = format!("{{\"type\":\"append\",\"message\":{}}}", line("a"));
    let fold = r#"{"fold":"t","pure":true,"baseBytesAfter":9,"crc":1,"state":{}}"#;
    for (before, expected) in [(format!("{begin}\n{event}\n"), Some(1)), (String::new(), None)] {
        let lost = format!("\0\0\0\n{fold}\n");
        let (workspace, dir) = workspace(&[("messages/events.jsonl", &format!("{before}{lost}"))]).await;
        let live = Live::open(workspace.path(), "k").await.unwrap();
        assert_eq!(live.interrupted.map(|turn| turn.events.len()), expected);
        assert_eq!(fs::read_to_string(dir.join("messages/events.jsonl.corrupt-1")).unwrap(), lost);
    }
}

#[tokio::test]
async fn records_of_a_later_version_are_kept_aside() {
    let begin = r#"{"turn":"t","baseBytes":0}"#;
    let event = format!("{{\"type\":\"append\",\"message\":{}}}", line("a"));
    let unknown = "{\"type\":\"reorder\"}\n{\"note\":\"x\"}\n";
    let events = format!("{begin}\n{unknown}{event}\n");
    let (workspace, dir) = workspace(&[("messages/events.jsonl", &events)]).await;
    for _ in 0..2 {
        let live = Live::open(workspace.path(), "k").await.unwrap();
        assert_eq!(live.interrupted.unwrap().events.len(), 1);
        assert_eq!(fs::read_to_string(dir.join("messages/events.jsonl.corrupt-1")).unwrap(), unknown);
        assert!(!dir.join("messages/events.jsonl.corrupt-2").exists());
    }
}

#[tokio::test]
async fn damage_in_the_middle_stops_with_file_and_line() {
    let begin = r#"{"turn":"t","baseBytes":0}"#;
    let event = format!("{{\"type\":\"append\",\"message\":{}}}", line("a"));
    let fold = r#"{"fold":"t","pure":true,"baseBytesAfter":0,"crc":0,"state":{}}"#;
    let (a, b) = (line("a"), line("b"));
    for (file, content, number) in [
        ("base.jsonl", format!("{a}\n{{\"id\n{b}\n"), 2),
        ("base.jsonl", format!("{a}\n\n{{\"id\":\"b\"}}\n"), 3),
        ("base.jsonl", format!("{a}\n{{\"id\":\"b\"}}"), 2),
        ("base.jsonl", format!("{a}\nrubbish\n"), 2),
        ("events.jsonl", format!("{begin}\nrubbish\n{event}\n"), 2),
        ("events.jsonl", format!("{begin}\n{{\"type\":\"append\"}}\n"), 2),
        ("events.jsonl", format!("{begin}\n7\n"), 2),
        ("events.jsonl", format!("{begin}\n{event}\n{begin}\n"), 3),
        ("events.jsonl", format!("{begin}\n{fold}\n{event}\n"), 3),
        ("events.jsonl", format!("{event}\n{fold}\n"), 2),
        ("events.jsonl", format!("{begin}\n{{\"fold\":\"other\",\"pure\":true}}\n"), 2),
    ] {
        let (workspace, dir) = workspace(&[(&format!("messages/{file}"), &content)]).await;
        let error = refusal(workspace.path()).await;
        assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED, "{content}");
        assert!(error.message().contains(&format!("{file}, line {number}:")), "{error:?}\n{content}");
        assert_eq!(fs::read_to_string(dir.join("messages").join(file)).unwrap(), content, "it is left as it is");
    }
}

#[tokio::test]
async fn a_base_that_lost_bytes_or_was_replaced_is_refused() {
    let base = line("a") + "\n";
    let fold = r#"{"fold":"t","pure":false,"baseBytesAfter":1,"crc":7,"state":{}}"#;
    let longer = format!("{{\"turn\":\"t\",\"baseBytes\":{}}}\n", base.len() + 1);
    let shorter = format!("{{\"turn\":\"t\",\"baseBytes\":{}}}\n{fold}\n", base.len() - 1);
    for (events, what) in [(longer, "has lost bytes"), (shorter, "neither the one before")] {
        let (workspace, _) = workspace(&[("messages/events.jsonl", &events), ("messages/base.jsonl", &base)]).await;
        let error = refusal(workspace.path()).await;
        assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED);
        assert!(error.message().contains("base.jsonl") && error.message().contains(what), "{error:?}");
    }
}

#[tokio::test]
async fn what_another_program_adds_to_the_base_during_a_turn_is_kept_aside() {
    let (a, foreign) = (line("a") + "\n", line("foreign").repeat(9) + "\n");
    let begin = format!("{{\"turn\":\"t\",\"baseBytes\":{}}}\n", a.len());
    let (workspace, dir) = workspace(&[("messages/events.jsonl", &begin), ("messages/base.jsonl", &a)]).await;
    let add = || fs::write(dir.join("messages/base.jsonl"), format!("{a}{foreign}")).unwrap();
    let kept = |n| fs::read_to_string(dir.join(format!("messages/base.jsonl.corrupt-{n}"))).unwrap();
    add();
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    assert_eq!((live.texts(), kept(1)), (vec!["text of a".to_owned()], foreign.clone()));

    add();
    live.emit(append("b"));
    live.commit("t", &State::new()).await.unwrap();
    live.turn("t2", [append("c")], &State::new()).await;
    assert_eq!(kept(2), foreign);
    drop(live);
    let live = Live::open(workspace.path(), "k").await.unwrap();
    assert_eq!(live.texts(), ["text of a", "text of b", "text of c"]);
}

#[tokio::test]
async fn an_unreadable_state_file_is_not_reset() {
    let (workspace, dir) = workspace(&[("extensions/notes.json", "{\"n\":"), ("extensions/Other One.json", "?")]).await;
    let error = refusal(workspace.path()).await;
    assert_eq!(error.code(), &ErrorCode::from("E_EXT_STATE"));
    assert!(error.message().contains("extensions/notes.json"), "{error:?}");
    assert_eq!(fs::read_to_string(dir.join("extensions/notes.json")).unwrap(), "{\"n\":");
    fs::write(dir.join("extensions/notes.json"), "[1]").unwrap();
    assert_eq!(Live::open(workspace.path(), "k").await.unwrap().state, state(&[("notes", json!([1]))]));
}

#[tokio::test]
async fn a_base_of_another_implementation_loads_and_is_added_to() {
    let foreign = format!("{}\r\n\r\n\n{}", line("a"), line("b"));
    let (workspace, dir) = workspace(&[("messages/base.jsonl", &foreign)]).await;
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    assert_eq!(live.texts(), ["text of a", "text of b"]);
    live.turn("t0", [], &State::new()).await;
    live.turn("t1", [append("c")], &State::new()).await;
    live.turn("t2", [append("d")], &State::new()).await;
    drop(live);
    let base = fs::read_to_string(dir.join("messages/base.jsonl")).unwrap();
    assert!(base.starts_with(&format!("{foreign}\n{{\"id\":\"c\"")), "{base}");
    assert_eq!(Live::open(workspace.path(), "k").await.unwrap().texts().len(), 4);
}

#[tokio::test]
async fn events_of_another_implementation_are_an_interrupted_turn() {
    let (a, b) = (line("a"), line("b"));
    // `a` was already in the base when the other implementation crashed (F-CONV: applied once).
    let foreign = format!(
        "{{\"type\":\"append\",\"message\":{a}}}\r\n\n{{\"type\":\"append\",\"message\":{b}}}\n{{\"type\":\"remove\",\"targetId\":\"a\"}}"
    );
    let (workspace, _) = workspace(&[("messages/events.jsonl", &foreign), ("messages/base.jsonl", &a)]).await;
    for _ in 0..2 {
        let live = Live::open(workspace.path(), "k").await.unwrap();
        let interrupted = live.interrupted.as_ref().unwrap();
        assert_eq!((interrupted.turn.as_str(), interrupted.events.len()), ("recovered", 2));
        assert_eq!(live.texts(), ["text of b"]);
    }
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    live.emit(append("c"));
    live.commit("recovered", &State::new()).await.unwrap();
    drop(live);
    let live = Live::open(workspace.path(), "k").await.unwrap();
    assert_eq!((live.texts().len(), live.interrupted), (2, None));
}

#[tokio::test]
async fn missing_files_are_a_fresh_instance() {
    let (workspace, dir) = workspace(&[("metadata.json", "")]).await;
    fs::remove_dir_all(dir.join("messages")).unwrap();
    let mut live = Live::open(workspace.path(), "k").await.unwrap();
    live.turn("t", [append("a")], &State::new()).await;
    drop(live);
    fs::remove_file(dir.join("messages/events.jsonl")).unwrap();
    fs::remove_file(dir.join("metadata.json")).unwrap();
    assert_eq!(Live::open(workspace.path(), "k").await.unwrap().texts(), ["text of a"]);
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
