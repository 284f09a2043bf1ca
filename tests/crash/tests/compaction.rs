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

const TURNS: u64 = 12;

/// Returns what the models were sent in one process, in which turns that hang were cancelled.
fn cancelled(dir: &Path, seed: u64) -> Vec<String> {
    let output = playing(dir, seed, "cancelled", TURNS).stderr(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "seed {seed}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Returns what the models were sent in a process for each turn, of which those that hung were killed.
fn killed(dir: &Path, seed: u64) -> Vec<String> {
    let mut lines = Vec::new();
    for turn in 0..TURNS {
        let mut process =
            playing(dir, seed, "killed", turn).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        for line in BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap) {
            let hangs = line == "hang";
            lines.push(line);
            if hangs {
                process.kill().unwrap();
            }
        }
        process.wait().unwrap();
    }
    lines
}

fn playing(dir: &Path, seed: u64, how: &str, turns: u64) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goondan-crash"));
    command.arg("compacting").arg(dir).args([&seed.to_string(), how, &turns.to_string()]).stdout(Stdio::piped());
    command
}

#[test]
#[covers("PATTERN-COMPACT-01", "CRASH-01")]
fn a_conversation_goes_on_after_kills_as_after_cancellations() {
    let (mut kills, mut summaries) = (0, 0);
    for seed in 0..12 {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let lines = killed(dirs[0].path(), seed);
        assert_eq!(lines, cancelled(dirs[1].path(), seed), "seed {seed}");
        kills += lines.iter().filter(|line| *line == "hang").count();
        for line in lines.iter().filter(|line| line.starts_with("answer: ")) {
            let count = line.matches("[message-compaction]").count();
            assert!(count <= 1, "seed {seed}: {line}");
            summaries += count;
        }
    }
    assert!(kills > 20 && summaries > 50, "{kills} kills, {summaries} requests with a summary");
}
