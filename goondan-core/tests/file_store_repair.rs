//! Repair, export and import of instances.
#![cfg(feature = "runtime")]
// clippy.toml allows these in test functions only, not in their helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use goondan_core::store::{Commit, Durability, Interrupted, Opened};
use goondan_core::{
    AgentName, Conversation, Error, ErrorCode, ExtensionName, FileStore, InstanceId, InstanceKey, Message,
    MessageEvent, Store, TurnId,
};
use serde_json::json;
use tempfile::TempDir;

fn id(key: &str) -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new(key).unwrap() }
}

fn append(id: &str) -> MessageEvent {
    MessageEvent::append(Message::user(format!("text of {id}")).with_id(id).with_metadata("score", 0.1 + 0.2))
}

/// Creates an instance with two committed messages and a state, and a turn that was interrupted after two events.
async fn instance() -> (TempDir, FileStore, PathBuf) {
    let workspace = tempfile::tempdir().unwrap();
    let store = FileStore::open(workspace.path()).unwrap();
    let Opened { mut journal, .. } = store.open(&id("k")).await.unwrap();
    let (turn, mut conversation) = (TurnId::from("t1"), Conversation::default());
    journal.begin(&turn).unwrap();
    for event in [append("a"), append("b")] {
        conversation.apply(event.clone()).unwrap();
        journal.record(&event).unwrap();
    }
    let state = BTreeMap::from([(ExtensionName::new("notes").unwrap(), json!({ "n": 0.1 }))]);
    journal.commit(Commit::new(&turn, &conversation, &state)).await.unwrap();
    journal.begin(&"t2".into()).unwrap();
    [append("c"), MessageEvent::remove("a")].iter().for_each(|event| journal.record(event).unwrap());
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
    assert!(fs::read_to_string(dir.join("messages/events.jsonl.corrupt-1")).unwrap().starts_with("{\"turn\":\"t2\""));
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
    wrong.push(text.replacen("\"version\":1", "\"version\":2", 1).into());
    for bytes in wrong {
        let error = other.import(&*bytes, None).unwrap_err();
        assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED, "{error:?}");
        assert_eq!(other.instances().unwrap(), []);
        assert_eq!(files(elsewhere.path()), BTreeSet::new(), "nothing is left");
    }
}
