//! Kills processes that change the shared state of an extension.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use goondan::store::{FileStore, Store};
use goondan_covers::covers;

const WRITERS: [&str; 3] = ["a", "b", "c"];
const ROUNDS: u64 = 30;

fn writer(dir: &Path, name: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_goondan-crash"));
    command.args([Path::new("sharing"), dir, Path::new(name)]).stdin(Stdio::null()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// Kills `child` after some of its changes, and returns the last one that it has printed.
fn kill(mut child: Child, changes: u64) -> u64 {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut printed = String::new();
    for _ in 0..changes {
        output.read_line(&mut printed).unwrap();
    }
    for _ in 0..fastrand::u32(..200_000) {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    output.read_to_string(&mut printed).unwrap();
    assert_eq!(child.wait().unwrap().code(), None, "it was killed by the signal: {printed}");
    printed.lines().last().unwrap().parse().unwrap()
}

#[test]
#[covers("D-42")]
fn a_change_that_returned_outlives_a_kill_and_no_change_is_half_made() {
    let dir = tempfile::tempdir().unwrap();
    let mut before = BTreeMap::<String, u64>::new();
    for round in 0..ROUNDS {
        let children = WRITERS.map(|name| (name, writer(dir.path(), name)));
        let returned = children.map(|(name, child)| (name, kill(child, 1 + round % 3)));
        let stored = FileStore::open(dir.path()).unwrap().shared_state(&"counting".parse().unwrap()).unwrap();
        let stored: BTreeMap<String, u64> = serde_json::from_value(stored.unwrap()).unwrap();
        for (name, returned) in returned {
            let stored = stored[name];
            assert!(returned > before.get(name).copied().unwrap_or_default(), "{name} went on from what was stored");
            assert!(stored == returned || stored == returned + 1, "{name}: {returned} returned, {stored} is stored");
        }
        before = stored;
    }
}
