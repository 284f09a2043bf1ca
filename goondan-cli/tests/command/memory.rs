//! The memory that `goondan run` uses for a long history.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use goondan::conversation::Message;
use goondan::name::{AgentName, InstanceKey};
use goondan::store::FileStore;
use goondan::store::InstanceId;
use nix::sys::resource::{UsageWho, getrusage};

use crate::support::{MODEL, goondan, printed};

/// Its agent removes all but the newest twenty messages.
const QUICKSTART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/quickstart");
/// Its agent removes no messages. The document after the model.
const UNLIMITED: &str = "apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: guide }
spec: { model: Model/main }
";
const MESSAGES: usize = 10_000;

/// The maximum memory, in bytes, of any child of this process so far.
fn max_rss() -> u64 {
    let kilobytes = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    u64::try_from(kilobytes).unwrap() * 1024
}

fn run(bundle: &Path, state: &Path, instance: &str) {
    let mut goondan = goondan();
    goondan.arg("run").arg(bundle).args(["--input", "hello", "--instance", instance, "--state-root"]).arg(state);
    assert!(goondan.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success());
}

/// Stores the conversation `long`. Returns its size on the disk.
fn store(state: &Path, workspace: &str) -> u64 {
    let store = FileStore::in_workspace(state, workspace).unwrap();
    let id = InstanceId { agent: AgentName::new("guide").unwrap(), key: InstanceKey::new("long").unwrap() };
    let base = store.instance_dir(&id).join("messages/base.jsonl");
    let line = |number: usize| {
        let message = Message::user("x".repeat(500)).with_id(format!("m{number}"));
        serde_json::to_string(&message).unwrap() + "\n"
    };
    fs::create_dir_all(base.parent().unwrap()).unwrap();
    fs::write(&base, (0..MESSAGES).map(line).collect::<String>()).unwrap();
    store.repair(&id).unwrap();
    fs::metadata(&base).unwrap().len()
}

/// Set in the process that measures.
const MEASURES: &str = "GOONDAN_TEST_MEASURES_MEMORY";

#[test]
fn a_long_history_takes_less_than_three_times_its_size_in_memory() {
    // The system reports the maximum over all children of a process, so this one is measured by a process of its own.
    if env::var_os(MEASURES).is_none() {
        let mut own = Command::new(env::current_exe().unwrap());
        own.args(["--exact", "--nocapture", "memory::a_long_history_takes_less_than_three_times_its_size_in_memory"]);
        own.env(MEASURES, "1");
        let printed = printed(&mut own);
        assert!(printed.contains("1 passed"), "{printed}");
        return print!("{printed}");
    }
    let dir = tempfile::tempdir().unwrap();
    let (unlimited, state) = (dir.path().join("unlimited"), dir.path().join("state"));
    fs::create_dir(&unlimited).unwrap();
    fs::write(unlimited.join("goondan.yaml"), format!("{MODEL}{UNLIMITED}")).unwrap();
    fs::write(unlimited.join("script.yaml"), "- { say: fine }").unwrap();
    let bundles = [(unlimited.as_path(), "guide"), (Path::new(QUICKSTART), "quickstart")];
    bundles.iter().for_each(|(bundle, _)| run(bundle, &state, "short"));
    let short = max_rss();
    for (bundle, workspace) in bundles {
        let size = store(&state, workspace);
        run(bundle, &state, "long");
        let long = max_rss() - short;
        println!("{workspace}: {long} more bytes of memory than without messages, {size} on the disk");
        assert!(long <= 3 * size, "{workspace}: {long} bytes of memory for {size} on the disk");
    }
}
