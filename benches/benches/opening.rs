//! The cost of opening a stored conversation, beside parsing its lines with serde_json.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use goondan::Value;
use goondan::conversation::Message;
use goondan::store::FileStore;
use goondan::store::Store;
use goondan_benches::{head, row, runtime, side_by_side, stored, time};
use serde::de::DeserializeOwned;

fn main() {
    head("Opening a conversation", "serde_json");
    for (messages, rounds) in [(100, 200), (10_000, 20), (100_000, 7)] {
        let workspace = tempfile::tempdir().expect("a directory");
        let store = FileStore::open(workspace.path()).expect("a store");
        // The first opening creates the directories of the instance; the others find them.
        drop(open(&store));
        let base = stored::write(&store, &stored::id(), messages);
        let ours = || time_without_drop(|| open(&store));
        row(
            &format!("{messages} messages, to their lines as values"),
            1,
            side_by_side(rounds, ours, || time_without_drop(|| parsed::<Value>(&base))),
        );
        row(
            &format!("{messages} messages, to their lines as messages"),
            1,
            side_by_side(rounds, ours, || time_without_drop(|| parsed::<Message>(&base))),
        );
    }
}

fn open(store: &FileStore) -> goondan::store::Opened {
    runtime().block_on(store.open(&stored::id())).expect("a stored conversation")
}

fn parsed<T: DeserializeOwned>(base: &Path) -> Vec<T> {
    let bytes = fs::read(base).expect("a file");
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("a line")).collect()
}

/// Returns how long it takes to make a value, without the time to drop it.
fn time_without_drop<T>(make: impl FnOnce() -> T) -> Duration {
    let mut made = None;
    let elapsed = time(|| made = Some(black_box(make())));
    drop(made);
    elapsed
}
