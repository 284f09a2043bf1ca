//! How much memory `goondan run` takes over a long history. A test program of its own, because the system counts the most
//! memory over all children of a process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use goondan::store::FileStore;
use goondan::{AgentName, InstanceId, InstanceKey, Message};
use nix::sys::resource::{UsageWho, getrusage};

const BUNDLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/quickstart");
const MESSAGES: usize = 10_000;

/// The most memory, in bytes, that a child of this process took until now.
fn most() -> u64 {
    let kilobytes = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    u64::try_from(kilobytes).unwrap() * 1024
}

fn run(state: &Path, instance: &str) {
    let mut goondan = Command::new(env!("CARGO_BIN_EXE_goondan"));
    goondan.args(["run", BUNDLE, "--input", "hello", "--instance", instance, "--state-root"]).arg(state);
    assert!(goondan.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success());
}

/// Stores the conversation `long`, and says how large it is.
fn store(state: &Path) -> u64 {
    let store = FileStore::in_workspace(state, "quickstart").unwrap();
    let id = InstanceId { agent: AgentName::new("guide").unwrap(), key: InstanceKey::new("long").unwrap() };
    let base = store.instance_dir(&id).join("messages/base.jsonl");
    let line = |number: usize| {
        let message = Message::user("x".repeat(500)).with_id(format!("m{number}"));
        serde_json::to_string(&message).unwrap() + "\n"
    };
    fs::create_dir_all(base.parent().unwrap()).unwrap();
    fs::write(&base, (0..MESSAGES).map(line).collect::<String>()).unwrap();
    fs::metadata(&base).unwrap().len()
}

#[test]
fn a_long_history_takes_less_than_three_times_its_size_in_memory() {
    let state = tempfile::tempdir().unwrap();
    run(state.path(), "short");
    let short = most();
    let size = store(state.path());
    run(state.path(), "long");
    let long = most() - short;
    println!("{MESSAGES} messages: {long} bytes of memory more than none, {size} on the disk");
    assert!(long <= 3 * size, "{long} bytes of memory for {size} on the disk");
}
