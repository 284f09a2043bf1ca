//! `goondan order`, and its output in the README.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn order(arguments: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let command = Command::new(env!("CARGO_BIN_EXE_goondan")).arg("order").args(arguments).current_dir(root).output();
    let output = command.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_readme_shows_what_the_command_prints() {
    let page = order(&["examples/quickstart"]);
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    assert!(readme.contains(&page), "the README must show:\n{page}");
}

#[test]
fn json_has_a_list_for_each_kind() {
    let object: Value = serde_json::from_str(&order(&["examples/quickstart", "--json"])).unwrap();
    assert_eq!(object["turn"][0]["extension"], "logging");
    assert_eq!(object["turn"][1]["function"], "trim");
    assert!(object["turn"][1]["why"].as_str().unwrap().contains("-1000"), "{object}");
    assert!(object["toolCall"].is_array());
}
