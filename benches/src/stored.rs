//! Stored conversations, written without running turns.

use std::fs;
use std::path::{Path, PathBuf};

use goondan::conversation::Message;
use goondan::name::{AgentName, InstanceKey};
use goondan::store::FileStore;
use goondan::store::InstanceId;

/// Returns the id of an instance.
///
/// # Panics
/// Never: the names are legal.
pub fn id() -> InstanceId {
    let key = InstanceKey::new("bench").expect("a legal key");
    InstanceId { agent: AgentName::new("bench").expect("a legal name"), key }
}

/// Makes a message of 500 characters.
pub fn message(id: &str) -> Message {
    Message::user("x".repeat(500)).with_id(id)
}

/// Stores `messages` messages as the conversation `instance` and returns their file.
///
/// # Panics
/// When they cannot be written.
pub fn write(store: &FileStore, instance: &InstanceId, messages: usize) -> PathBuf {
    let base = store.instance_dir(instance).join("messages/base.jsonl");
    let mut bytes = Vec::new();
    for number in 0..messages {
        serde_json::to_writer(&mut bytes, &message(&format!("m{number}"))).expect("a message is JSON");
        bytes.push(b'\n');
    }
    fs::create_dir_all(base.parent().unwrap_or(Path::new("."))).expect("a directory");
    fs::write(&base, bytes).expect("a file");
    // It is accepted as it is.
    store.repair(instance).expect("a journal");
    base
}
