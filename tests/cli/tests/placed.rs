//! What an extension in a bundle learns from `run` and `order` about where it runs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

const BUNDLE: &str = r#"
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: here }
spec: { entry: "linked:placed" }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { model: Model/main, extensions: [ { ref: Extension/here } ] }
"#;

/// Runs the command in `directory`, and returns what it logged.
fn goondan(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goondan-under-test"));
    let output = command.current_dir(directory).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn extensions_find_the_bundle_and_their_files_and_order_tells_them_to_start_nothing() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("bot")).unwrap();
    fs::write(directory.path().join("bot/goondan.yaml"), BUNDLE).unwrap();
    fs::write(directory.path().join("bot/script.yaml"), "- say: hi\n").unwrap();
    let root = directory.path().canonicalize().unwrap();

    let log = goondan(&root, &["run", "bot/goondan.yaml", "--input", "hello", "--state-root", "state"]);
    let dir = root.join("state/workspaces/main/extensions/here");
    assert!(log.contains(&format!("root=Some({:?}) dir={dir:?} inspect=false", root.join("bot"))), "{log}");
    assert!(dir.is_dir());

    fs::remove_dir_all(root.join("state")).unwrap();
    let log = goondan(&root, &["order", "bot/goondan.yaml"]);
    assert!(log.contains(&format!("root=Some({:?})", root.join("bot"))) && log.contains("inspect=true"), "{log}");
    assert!(!root.join("state").exists(), "its directory is a temporary one");
}
