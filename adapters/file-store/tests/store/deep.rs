//! Files with values of any depth, as other implementations may write them: they open, or are refused as damaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::{AgentName, Error, ErrorCode, ExtensionName, InstanceKey, Message, Part, ToolOutput};
use goondan_covers::covers;
use goondan_file_store::FileStore;
use goondan_file_store::Fsync;
use goondan_runtime::store::Opened;
use goondan_runtime::{Agent, InstanceId, ScriptItem, ScriptedModel, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::records::{begin, checkpoint, fold};

/// How many levels a record may have.
const MAX_STORED: usize = 112;

/// Below and at the limits of what comes in and of what opens, and what the stack of a process does not hold.
fn depths() -> impl Iterator<Item = usize> {
    [1, 64, 65].into_iter().chain(100..=129).chain([200, 2_000, 20_000])
}

fn id(key: &str) -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new(key).unwrap() }
}

fn store(workspace: &Path) -> FileStore {
    FileStore::open(workspace).unwrap().fsync(Fsync::Never)
}

fn nested(levels: usize) -> String {
    // A bracket in a string is none.
    format!("{}\"co]re\"{}", "[".repeat(levels), "]".repeat(levels))
}

/// Whether `value` is [`nested`].
fn is_nested(value: &Value, levels: usize) -> bool {
    let text = value.to_string();
    text == nested(levels)
}

const MEMBERS: &str = r#""createdAt":"2026-01-31T12:00:00.000Z","source":{"type":"system"}"#;

/// Returns the lines of a call and its result, with values of `levels` levels in all places.
fn messages(levels: usize) -> [String; 2] {
    let deep = nested(levels);
    let call = format!(
        r#"{{"id":"c{levels}","data":{{"role":"assistant","content":[{{"type":"tool-call","toolCallId":"t{levels}","toolName":"a__b","input":{deep}}},{{"type":"image","deep":{deep}}}]}},"metadata":{{"deep":{deep}}},"other":{deep},{MEMBERS}}}"#
    );
    let result = format!(
        r#"{{"id":"r{levels}","data":{{"role":"tool","content":[{{"type":"tool-result","toolCallId":"t{levels}","toolName":"a__b","output":{{"type":"json","value":{deep}}}}}]}},"metadata":{{}},{MEMBERS}}}"#
    );
    [call, result]
}

/// Asserts that the values in a call and its result are those of [`messages`].
fn assert_values(levels: usize, call: &Message, result: &Message) {
    let [Part::ToolCall(asked), Part::Other(image)] = call.content().parts() else { panic!("{call:?}") };
    let [Part::ToolResult(answered)] = result.content().parts() else { panic!("{result:?}") };
    let ToolOutput::Json(output) = &answered.output else { panic!("{answered:?}") };
    for value in [&asked.input, &image["deep"], &call.metadata()["deep"], output] {
        assert!(is_nested(value, levels), "{levels}");
    }
}

/// Asserts that the instance is refused as damaged, and opens when it was repaired.
async fn is_damaged(workspace: &Path, code: ErrorCode) {
    let error = store(workspace).open(&id("k")).await.map(drop).unwrap_err();
    assert_eq!(error.code(), &code, "{error:?}");
    store(workspace).repair(&id("k")).unwrap();
    store(workspace).open(&id("k")).await.map(drop).unwrap();
}

/// Creates the files of an instance, whose journal has the records `events` after its checkpoint.
fn instance(base: &[String], events: &str, state: Option<usize>) -> (TempDir, PathBuf) {
    let workspace = tempfile::tempdir().unwrap();
    let dir = store(workspace.path()).instance_dir(&id("k"));
    for folder in ["messages", "extensions"] {
        fs::create_dir_all(dir.join(folder)).unwrap();
    }
    let base: String = base.iter().map(|line| format!("{line}\n")).collect();
    fs::write(dir.join("messages/base.jsonl"), &base).unwrap();
    fs::write(dir.join("messages/events.jsonl"), checkpoint(&base, &json!({})) + events).unwrap();
    if let Some(levels) = state {
        fs::write(dir.join("extensions/tree.json"), nested(levels) + "\n").unwrap();
    }
    (workspace, dir)
}

/// Runs a turn in a program's conversation, and returns its messages before.
async fn one_turn(workspace: &Path, key: &str) -> Vec<Arc<Message>> {
    let model = ScriptedModel::new([ScriptItem::say("fine").repeat()]);
    let agent = Agent::builder("bot").model(model).store(store(workspace)).build().unwrap();
    let instance = agent.instance(key).await.unwrap();
    let messages = instance.messages().await.unwrap();
    assert_eq!(instance.run("hello").await.unwrap().text(), "fine");
    instance.close().await.unwrap();
    messages
}

/// Opens the instance, shows, exports and imports it, and runs turns in both.
async fn opens_and_goes_on(levels: usize, workspace: &Path) {
    let shown = store(workspace).read(&id("k")).unwrap().messages;
    let opened = one_turn(workspace, "k").await;
    assert_eq!(opened[..2], shown[..2]);
    assert_values(levels, &opened[0], &opened[1]);
    let mut export = Vec::new();
    store(workspace).export(&id("k"), &mut export).unwrap();
    store(workspace).import(&*export, Some(id("copy"))).unwrap();
    let copied = one_turn(workspace, "copy").await;
    assert_eq!(copied, one_turn(workspace, "k").await, "{levels}: the copy");
    assert_eq!(copied[..opened.len()], opened);
    assert!(store(workspace).inspect(&id("k")).unwrap().is_empty());
}

#[tokio::test]
#[covers("DEPTH-01")]
async fn committed_messages_up_to_the_limit_open_and_deeper_ones_are_damaged() {
    for levels in depths() {
        let base = messages(levels);
        let (workspace, dir) = instance(&base, "", None);
        // The output of the tool is inside of five levels.
        if levels + 5 > MAX_STORED {
            is_damaged(workspace.path(), ErrorCode::STORE_DAMAGED).await;
            continue;
        }
        opens_and_goes_on(levels, workspace.path()).await;
        let stored = fs::read_to_string(dir.join("messages/base.jsonl")).unwrap();
        assert!(stored.starts_with(&base.join("\n")), "the file keeps its lines");
    }
}

#[tokio::test]
#[covers("DEPTH-01")]
async fn an_interrupted_turn_with_values_up_to_the_limit_is_closed() {
    for levels in depths() {
        let appended = messages(levels).map(|message| format!(r#"{{"type":"append","message":{message}}}"#));
        let (workspace, _) = instance(&[], &format!("{}{}\n{}\n", begin("t"), appended[0], appended[1]), None);
        // A line of an event is one level more.
        if levels + 6 > MAX_STORED {
            is_damaged(workspace.path(), ErrorCode::STORE_DAMAGED).await;
            continue;
        }
        let shown = store(workspace.path()).read(&id("k")).unwrap().messages;
        let opened = one_turn(workspace.path(), "k").await;
        assert_eq!(opened, shown);
        assert!(is_nested(&opened[0].metadata()["deep"], levels));
        assert_eq!(one_turn(workspace.path(), "k").await[..2], opened[..2]);
    }
}

async fn open(workspace: &Path) -> Opened {
    store(workspace).open(&id("k")).await.unwrap()
}

#[tokio::test]
#[covers("DEPTH-01")]
async fn state_up_to_the_limit_is_read_from_its_file_and_from_a_commit() {
    let tree = ExtensionName::new("tree").unwrap();
    for levels in depths() {
        let (workspace, _) = instance(&[], "", Some(levels));
        if levels > MAX_STORED {
            is_damaged(workspace.path(), ErrorCode::EXT_STATE).await;
        } else {
            assert!(is_nested(&open(workspace.path()).await.state[&tree], levels));
        }

        // The process died between the commit and the state file.
        let state = format!("{{\"tree\":{}}}", nested(levels));
        let events = begin("t") + &fold("t", true, &begin("t"), &state);
        let (workspace, dir) = instance(&[], &events, None);
        if levels + 2 > MAX_STORED {
            is_damaged(workspace.path(), ErrorCode::STORE_DAMAGED).await;
            continue;
        }
        let first = open(workspace.path()).await.state;
        assert!(is_nested(&first[&tree], levels));
        let again = open(workspace.path()).await;
        assert_eq!(again.state, first);
        again.journal.close().await.unwrap();
        assert!(dir.join("extensions/tree.json").exists());
        let mut export = Vec::new();
        store(workspace.path()).export(&id("k"), &mut export).unwrap();
        store(workspace.path()).import(&*export, Some(id("copy"))).unwrap();
        assert_eq!(store(workspace.path()).open(&id("copy")).await.unwrap().state, first);
    }
}

/// Imports an export with one message, whose lines are as deep as a value makes them.
fn import(levels: usize) -> (TempDir, Result<InstanceId, Error>) {
    let lines = [
        r#"{"goondan":"instance","version":1,"agent":"bot","key":"k","metadata":{"createdAt":"2026-01-31T12:00:00.000Z","updatedAt":"2026-01-31T12:00:00.000Z"}}"#.to_owned(),
        format!(r#"{{"message":{{"id":"m","data":{{"role":"user","content":"hi"}},"metadata":{{"deep":{}}},{MEMBERS}}}}}"#, nested(levels)),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let crc = crc32fast::hash(text.as_bytes());
    let export = format!("{text}{{\"end\":{{\"lines\":2,\"crc\":{crc}}}}}\n");
    let workspace = tempfile::tempdir().unwrap();
    let imported = store(workspace.path()).import(export.as_bytes(), None);
    (workspace, imported)
}

#[tokio::test]
#[covers("DEPTH-01")]
async fn an_import_takes_what_can_be_exported_and_refuses_deeper_values() {
    // The line adds the object of the export, the message and its metadata.
    for levels in depths().chain([100_000]) {
        let (workspace, imported) = import(levels);
        if levels + 3 <= MAX_STORED + 1 {
            assert_eq!(imported.unwrap(), id("k"));
            let opened = one_turn(workspace.path(), "k").await;
            assert!(is_nested(&opened[0].metadata()["deep"], levels));
            assert_eq!(one_turn(workspace.path(), "k").await[0], opened[0]);
        } else {
            let error = imported.unwrap_err();
            assert_eq!(error.code(), &ErrorCode::VALUE_DEPTH);
            let message = error.message();
            assert!(
                message.starts_with(
                    "line 2 of the export is nested more than 64 levels deep, at `/message/metadata/deep/0"
                ),
                "{message}"
            );
            assert_eq!(fs::read_dir(workspace.path()).unwrap().count(), 0, "nothing is left of it");
        }
    }
}
