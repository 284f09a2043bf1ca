//! Kills a process that has replaced messages by a summary.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use goondan_covers::covers;

const SUMMARY: &str = "[message-compaction] Summary of 4 earlier messages:  summary";

fn child(dir: &Path, input: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goondan-crash"));
    command.args([Path::new("compacting"), dir, Path::new(input)]).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Runs a turn to its end, and returns what the models were sent.
fn turn(dir: &Path, input: &str) -> String {
    let output = child(dir, input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[covers("PATTERN-COMPACT-01", "CRASH-01")]
fn a_killed_process_leaves_its_summary_and_no_model_is_asked_for_it_again() {
    let dir = tempfile::tempdir().unwrap();
    turn(dir.path(), "one");
    assert_eq!(turn(dir.path(), "two"), "answer: one, answer, two\n");

    let mut killed = child(dir.path(), "stall").stdin(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(killed.stdout.take().unwrap()).lines();
    let lines: Vec<_> = lines.map(Result::unwrap).take(2).collect();
    assert!(lines[0].starts_with("summary: <conversation> user: one "), "{lines:?}");
    assert_eq!(lines[1], format!("answer: {SUMMARY}, stall"));
    killed.kill().unwrap();
    assert_eq!(killed.wait().unwrap().code(), None, "it was killed by the signal");

    assert_eq!(turn(dir.path(), "go"), format!("answer: {SUMMARY}, stall, go\n"));
}
