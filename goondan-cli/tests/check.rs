//! `goondan check` and `goondan schema`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use goondan_covers::covers;
use serde_json::Value;
use tempfile::TempDir;

fn goondan(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    Command::new(env!("CARGO_BIN_EXE_goondan")).args(arguments).current_dir(root).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn a_right_bundle_has_no_faults() {
    let output = goondan(&["check", "examples/quickstart"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).ends_with("no faults: Agents 1, Extensions 2, Models 1\n"), "{}", stdout(&output));
}

#[test]
#[covers("RULE-02")]
fn all_faults_are_told_at_once_with_their_places() {
    let bundle = TempDir::new().unwrap();
    fs::write(
        bundle.path().join("goondan.yaml"),
        r#"apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec: { modle: Model/main, policy: { maxStepsPerTurn: none } }
---
apiVersion: goondan.ai/v1
kind: Extension
metadata: { name: window }
spec: { entry: "linked:message-window", config: { maxMessages: 0 } }
---
apiVersion: goondan.ai/v2
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml }
---
apiVersion: goondan.ai/v1
kind: Swarm
metadata: { name: swarm }
spec: { agents: [ { ref: Agent/mian } ], entryAgent: Agent/main }
"#,
    )
    .unwrap();
    fs::write(bundle.path().join("script.yaml"), "- say: hi\n").unwrap();
    let path = bundle.path().to_str().unwrap();
    let output = goondan(&["check", path]);
    assert_eq!(output.status.code(), Some(2));
    let text = stdout(&output);
    for part in ["goondan.yaml:4:", "`modle`", "maxStepsPerTurn", "goondan.yaml:9:", "E_EXT_CONFIG", "goondan.ai/v2"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let output = goondan(&["check", path, "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let object: Value = serde_json::from_str(stdout(&output)).unwrap();
    let faults = object["faults"].as_array().unwrap();
    assert!(faults.len() >= 4 && faults.iter().all(|fault| fault["code"].is_string() && fault["file"].is_string()));
}

#[test]
#[covers("SCHEMA-01")]
fn the_schema_knows_the_configs_of_linked_extensions() {
    let output = goondan(&["schema"]);
    let schema: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert!(schema["$schema"].is_string());
    assert!(stdout(&output).contains("maxMessages"), "the config of message-window is part of it");
}
