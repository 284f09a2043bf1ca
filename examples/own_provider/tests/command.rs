//! Runs the program with its bundle.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// Runs the command on `bundle`, and writes `input` to it.
fn goondan(command: &str, bundle: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_goondan-own-provider"))
        .arg(command)
        .arg(bundle)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

const BUNDLE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn the_bundle_is_checked_and_run() {
    let checked = goondan("check", BUNDLE.as_ref(), &[], "");
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(text(&checked.stdout).lines().last(), Some("no faults: Agents 1, Extensions 0, Models 1"));

    let state = tempfile::tempdir().unwrap();
    let arguments = ["--state-root", state.path().to_str().unwrap()];
    let run = goondan("run", BUNDLE.as_ref(), &arguments, "hello\nand bye\n");
    assert!(run.status.success(), "{run:?}");
    let answers: Vec<_> = text(&run.stdout).lines().filter(|line| line.contains("You said")).collect();
    assert_eq!(answers, ["You said: hello", "You said: and bye"]);
}

#[test]
fn mistakes_in_its_settings_have_a_place() {
    let directory = tempfile::tempdir().unwrap();
    let bundle = fs::read_to_string(Path::new(BUNDLE).join("goondan.yaml")).unwrap();
    fs::write(directory.path().join("goondan.yaml"), bundle.replace("prefix:", "prefx:")).unwrap();
    for command in ["check", "run"] {
        let refused = goondan(command, directory.path(), &[], "");
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let output = format!("{}{}", text(&refused.stdout), text(&refused.stderr));
        assert!(output.contains("goondan.yaml:8:3"), "{output}");
        assert!(output.contains("unknown field `prefx` in `spec` of the provider `echo`"), "{output}");
        assert!(output.contains("write `prefix`"), "{output}");
    }
}

#[test]
fn editors_know_its_settings() {
    let printed = Command::new(env!("CARGO_BIN_EXE_goondan-own-provider")).arg("schema").output().unwrap();
    let schema: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let setting = &schema["$defs"]["provider:echo"]["properties"]["prefix"];
    assert_eq!(setting["description"], "What every answer begins with.");
    let providers = schema["$defs"]["Model"]["properties"]["spec"]["properties"]["provider"]["enum"].as_array();
    assert!(providers.unwrap().contains(&"echo".into()), "{providers:?}");
}
