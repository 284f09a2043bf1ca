//! The cost of opening a stored conversation, beside parsing its lines with serde_json.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use goondan::Value;
use goondan::conversation::{Conversation, Message, MessageEvent};
use goondan::name::TurnId;
use goondan::store::{Commit, FileStore, Opened, Store, TurnStart};
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
    full_journal();
}

/// Measures a conversation whose newest turns are in a journal that is nearly full, beside one whose base has all.
fn full_journal() {
    let [ours, yardstick] = [(); 2].map(|()| {
        let workspace = tempfile::tempdir().expect("a directory");
        let store = FileStore::open(workspace.path()).expect("a store");
        drop(open(&store));
        (workspace, store)
    });
    let base = stored::write(&ours.1, &stored::id(), 10_000);
    let turns = fill(&ours.1, &base);
    stored::write(&yardstick.1, &stored::id(), 10_000 + 2 * turns);
    let opening = |store: &FileStore| time_without_drop(|| open(store));
    let pair = side_by_side(40, || opening(&ours.1), || opening(&yardstick.1));
    row(&format!("… and {turns} turns in the journal, to a base with all"), 1, pair);
}

/// Runs turns of two messages until the journal is nearly full, and returns how many.
fn fill(store: &FileStore, base: &Path) -> usize {
    let size = |path: &Path| fs::metadata(path).expect("a file").len();
    let (events, full) = (base.with_file_name("events.jsonl"), size(base) / 8);
    let Opened { base: messages, mut journal, .. } = open(store);
    let (mut conversation, _) = Conversation::from_base(messages);
    let (mut turns, start, state) = (0, size(&events), BTreeMap::new());
    let runtime = runtime();
    while turns == 0 || size(&events) + 2 * (size(&events) - start) / turns as u64 <= full {
        turns += 1;
        let turn = TurnId::from(format!("t{turns}"));
        journal.begin(TurnStart::new(&turn)).expect("a turn");
        for message in 0..2 {
            let event = MessageEvent::append(stored::message(&format!("new-{turns}-{message}")));
            conversation.apply(event.clone()).expect("the event applies");
            journal.record(&event, None).expect("a line");
        }
        runtime.block_on(journal.commit(Commit::new(&turn, &conversation, &state))).expect("a commit");
        conversation.fold();
    }
    turns
}

fn open(store: &FileStore) -> Opened {
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
