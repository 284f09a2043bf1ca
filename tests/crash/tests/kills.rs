//! Kills real processes and checks what they leave.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use goondan_covers::covers;

const PROGRAM: &str = env!("CARGO_BIN_EXE_goondan-crash");

#[test]
#[covers("CRASH-01")]
fn whenever_a_process_is_killed_no_turn_is_lost_or_stored_twice() {
    let output = Command::new(PROGRAM).arg("100").output().unwrap();
    let (output_text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(output_text.starts_with("100 kills, "), "{output_text}");
}

#[test]
#[covers("RESUME-01", "ONCE-01")]
fn whenever_a_process_is_killed_the_next_one_goes_on_with_its_turn() {
    let output = Command::new(PROGRAM).args(["resume", "75"]).output().unwrap();
    let (output_text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(output_text.starts_with("75 kills, "), "{output_text}");
}

#[test]
#[covers("STEER-01", "ONCE-01")]
fn whenever_a_process_is_killed_an_input_that_joins_its_turn_is_there_once_and_answered_once() {
    let output = Command::new(PROGRAM).args(["steer", "200"]).output().unwrap();
    let (output_text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(output_text.starts_with("200 kills, "), "{output_text}");
}

#[test]
#[covers("ASK-01", "ASK-02", "PAIR-01")]
fn whenever_a_process_is_killed_no_call_runs_without_its_decision_or_twice() {
    let output = Command::new(PROGRAM).args(["decide", "150"]).output().unwrap();
    let (output_text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert!(output_text.starts_with("150 kills, "), "{output_text}");
}

#[test]
#[covers("EFFECT-01", "PAIR-01")]
fn a_call_that_is_killed_is_not_run_again_and_the_model_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(PROGRAM)
        .args([Path::new("stuck"), dir.path(), Path::new("act")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "in the tool\n");
    child.kill().unwrap();
    child.wait().unwrap();

    let next = Command::new(PROGRAM)
        .args([Path::new("stuck"), dir.path(), Path::new("and now?")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stderr));
    assert_eq!(fs::read_to_string(dir.path().join("ledger")).unwrap(), "acted\n", "EFFECT-01: once");
    let requests = fs::read_to_string(dir.path().join("requests.jsonl")).unwrap();
    let request: serde_json::Value = serde_json::from_str(requests.lines().last().unwrap()).unwrap();
    let roles: Vec<_> = request["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    let result = request["messages"][2]["content"][0]["output"]["value"].as_str().unwrap();
    assert!(result.starts_with("error E_TOOL_OUTCOME_UNKNOWN: the turn ended while `stuck__act` ran"), "{result}");
}
