//! Kills a process while a model answers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use goondan_covers::covers;

fn child(dir: &Path, input: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goondan-crash"));
    command.args([Path::new("answering"), dir, Path::new(input)]).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Runs a turn to its end, and returns what the model was sent.
fn turn(dir: &Path, input: &str) -> String {
    let output = child(dir, input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[covers("CRASH-01")]
fn half_an_answer_is_lost_with_its_process_and_the_next_turn_asks_again() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(turn(dir.path(), "hi"), "hi\n");
    let messages = dir.path().join("instances/answering:one/messages");
    let read = |file: &str| fs::read_to_string(messages.join(file)).unwrap();
    let base = read("base.jsonl");

    let mut killed = child(dir.path(), "stall").stdin(Stdio::piped()).spawn().unwrap();
    let lines: Vec<_> = BufReader::new(killed.stdout.take().unwrap()).lines().take(2).map(Result::unwrap).collect();
    assert_eq!(lines, ["hi, fine, stall", "half an answer"]);
    killed.kill().unwrap();
    assert_eq!(killed.wait().unwrap().code(), None, "it was killed by the signal");

    assert_eq!(read("base.jsonl"), base, "the base is untouched");
    let events = read("events.jsonl");
    assert!(events.contains("\"stall\"") && !events.contains("half"), "the question without the answer: {events}");

    assert_eq!(turn(dir.path(), "and now?"), "hi, fine, stall, and now?\n");
    let (after, events) = (read("base.jsonl"), read("events.jsonl"));
    assert!(after.starts_with(&base) && after.lines().count() == 5, "{after}");
    assert!(!after.contains("half") && !after.contains("partial"), "{after}");
    assert!(events.lines().last().unwrap().starts_with("{\"fold"), "no turn is open: {events}");
}
