//! Kills a process while a model answers a request that was edited.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use goondan_covers::covers;

fn child(dir: &Path, input: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goondan-crash"));
    command.args([Path::new("projecting"), dir, Path::new(input)]).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Runs a turn to its end, and returns what the model was sent.
fn turn(dir: &Path, input: &str) -> String {
    let output = child(dir, input).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns what all files below `path` hold.
fn everything(path: &Path) -> String {
    if !path.is_dir() {
        return String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    }
    fs::read_dir(path).unwrap().map(|entry| everything(&entry.unwrap().path())).collect()
}

#[test]
#[covers("PROJ-01")]
fn a_killed_process_leaves_nothing_of_its_edits() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(turn(dir.path(), "hi"), "hi\n");

    let mut killed = child(dir.path(), "stall").stdin(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(killed.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "replaced, fine, stall, projected\n");
    killed.kill().unwrap();
    assert_eq!(killed.wait().unwrap().code(), None, "it was killed by the signal");
    let left = everything(dir.path());
    assert!(left.contains("\"stall\""), "the input is there: {left}");
    assert!(!left.contains("projected") && !left.contains("replaced"), "{left}");

    assert_eq!(turn(dir.path(), "and now?"), "hi, fine, stall, and now?\n");
    let left = everything(dir.path());
    assert!(!left.contains("projected") && !left.contains("replaced"), "{left}");
}
