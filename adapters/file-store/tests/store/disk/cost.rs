//! Limits on what a turn syncs and writes.

use std::path::Path;

use goondan_covers::covers;
use goondan_file_store::{FileStore, Fsync};
use goondan_runtime::ScriptItem;
use goondan_runtime::ScriptedModel;

use super::agents::agent;
use super::crashes::scratch;
use super::recorder::{Op, Recorder};

/// What one turn synced and wrote.
#[derive(Debug, PartialEq)]
struct Cost {
    syncs: usize,
    written: usize,
}

impl Cost {
    fn of(ops: &[Op]) -> Self {
        let syncs = ops.iter().filter(|op| matches!(op, Op::Sync { .. } | Op::SyncDir { .. })).count();
        let written = ops.iter().map(|op| if let Op::Write { bytes, .. } = op { bytes.len() } else { 0 }).sum();
        Self { syncs, written }
    }
}

/// Runs `turns` turns with inputs and responses of the same length, and returns the cost of each.
async fn costs(workspace: &Path, fsync: Fsync, turns: usize) -> Vec<Cost> {
    let recorder = Recorder::new(workspace);
    let store = FileStore::open(workspace).unwrap().fsync(fsync).on_disk(recorder.clone());
    let agent = agent(store, &recorder, ScriptedModel::new([ScriptItem::say("y".repeat(1000)).repeat()])).await;
    let instance = agent.instance("k").await.unwrap();
    recorder.take();
    let mut costs = Vec::new();
    for _ in 0..turns {
        instance.run("x".repeat(1000)).await.unwrap();
        costs.push(Cost::of(&recorder.take()));
    }
    costs
}

#[tokio::test]
#[covers("JOURNAL-01")]
async fn a_turn_syncs_once() {
    let workspace = scratch();
    let costs = costs(workspace.path(), Fsync::Turn, 20).await;
    assert!(costs.iter().all(|cost| cost.syncs == 1), "{costs:?}");
}

#[tokio::test]
async fn a_turn_writes_what_it_adds_however_long_the_history_is() {
    let workspace = scratch();
    let costs = costs(workspace.path(), Fsync::Turn, 400).await;
    let (first, last) = (costs[1].written, costs[399].written);
    // Two messages of 1,000 characters, once as events and once in the base, the input in the first record of the turn,
    // and the JSON around them.
    assert!(first < 5 * 1000 + 2500, "{first}");
    assert!(last < first + 50, "{first} bytes for the second turn, {last} for the last");
}

#[tokio::test]
async fn each_level_syncs_as_often_as_documented() {
    for (fsync, syncs) in [(Fsync::Never, 0), (Fsync::Turn, 1), (Fsync::Always, 4)] {
        let workspace = scratch();
        assert_eq!(costs(workspace.path(), fsync, 3).await[2].syncs, syncs, "{fsync:?}");
    }
}
