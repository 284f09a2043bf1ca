//! KEEP: conversations that were stored by the first version, or with all that this one knows and members of later
//! ones, open, take another turn, and are rewritten without loss. They are in the folder `workspaces`:
//!
//! - `first_version` was written by the version that knew only texts, tool calls and their results. Its conversation
//!   `killed` is as a kill left it, in a tool call that must not run twice.
//! - `all_parts` has each kind of part, output and source, and unknown members in each object.

use std::fs;
use std::path::{Path, PathBuf};

use conformance_extensions::kept::{Copying, Retelling};
use goondan::extension::Extension;
use goondan::model::ScriptItem;
use goondan::store::{FileStore, InstanceId};
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::agent;

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &to) } else { fs::copy(path, to).map(drop).unwrap() }
    }
}

fn lines(path: PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn json_file(path: PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The messages of a stored conversation: its base, and what its open turn added.
fn messages(instance: &Path) -> Vec<Value> {
    let mut messages = lines(instance.join("messages/base.jsonl"));
    let events = lines(instance.join("messages/events.jsonl"));
    messages.extend(events.into_iter().filter(|event| event["type"] == "append").map(|event| event["message"].clone()));
    messages
}

/// Opens a copy of a conversation with the extension `E`, which rewrites it, runs a turn, and compares.
async fn rewrite<E: Extension>(workspace: &str, key: &str) {
    let what = format!("{workspace}, {key}, {}", E::DESCRIPTOR.name);
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/workspaces").join(workspace).join(key);
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).unwrap();
    let at = store.instance_dir(&InstanceId { agent: "assistant".parse().unwrap(), key: key.parse().unwrap() });
    copy(&written, &at);

    let agent = agent([ScriptItem::say("ok").repeat()]).with::<E>(json!({})).store(store).build().unwrap();
    let turn = agent.instance(key).await.unwrap().run("hello").await.unwrap();
    assert_eq!(turn.text(), "ok", "{what}");
    agent.close().await.unwrap();

    let (mut before, after) = (messages(&written), lines(at.join("messages/base.jsonl")));
    for (before, after) in before.iter_mut().zip(&after) {
        // It has replaced the message, or appended it.
        before["source"] = json!({ "type": "extension", "extensionName": E::DESCRIPTOR.name });
        if E::DESCRIPTOR.name == Retelling::DESCRIPTOR.name {
            before["turn"] = turn.turn_id().as_str().into();
        }
        assert_eq!(after, before, "{what}");
    }
    let added: Vec<_> = after[before.len()..].iter().map(|message| &message["data"]["role"]).collect();
    let closed = (workspace, key) == ("first_version", "killed");
    assert_eq!(added, if closed { &["tool", "user", "assistant"][..] } else { &["user", "assistant"] }, "{what}");
    if closed {
        let result = &after[before.len()]["data"]["content"][0];
        assert_eq!(result["toolCallId"], "call-2");
        assert!(result["output"]["value"].as_str().unwrap().contains("E_TOOL_OUTCOME_UNKNOWN"), "{result}");
    }
    // Opened once more, from what this version has written.
    let opened = agent.instance(key).await.unwrap().messages().await.unwrap();
    let opened: Vec<_> = opened.iter().map(|message| json!(message)).collect();
    assert_eq!(opened, after, "{what}");

    let [was, is] = [&written, &at].map(|instance| json_file(instance.join("metadata.json")));
    for (name, value) in was.as_object().unwrap() {
        assert!(is[name] == *value || ["status", "updatedAt"].contains(&&**name), "{what}: {name}");
    }
    let [was, is] = [&written, &at].map(|instance| lines(instance.join("messages/runtime-events.jsonl")));
    assert!(is.starts_with(&was) && is.len() > was.len(), "{what}: {is:?}");
    let state = "extensions/notes.json";
    if written.join(state).exists() {
        assert_eq!(json_file(at.join(state)), json_file(written.join(state)), "the state of an extension that is gone");
    }
}

#[both_linkages]
#[covers("KEEP-01")]
async fn stored_conversations_open_and_are_rewritten_without_loss() {
    for workspace in ["first_version", "all_parts"] {
        for key in ["idle", "killed"] {
            rewrite::<Copying>(workspace, key).await;
            rewrite::<Retelling>(workspace, key).await;
        }
    }
}
