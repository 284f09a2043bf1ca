//! Limits on what a turn syncs and writes.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::Result;
use std::iter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goondan_core::{AgentName, Conversation, ExtensionName, InstanceKey, Message, MessageEvent, MessageId, TurnId};
use goondan_covers::covers;
use goondan_file_store::{Disk, DiskFile, FileStore, Fsync, OpenMode, RealDisk, StorePath};
use goondan_runtime::store::{Commit, TurnStart};
use goondan_runtime::{InstanceId, ScriptItem, ScriptedModel, Store};
use serde_json::{Value, json};

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

/// Runs turns with inputs and responses of the same length, and returns the cost of each. The first word of an input
/// says what the turn does beside appending two messages.
async fn costs(workspace: &Path, fsync: Fsync, inputs: impl IntoIterator<Item = &str>) -> Vec<Cost> {
    let recorder = Recorder::new(workspace);
    let store = FileStore::open(workspace).unwrap().fsync(fsync).on_disk(recorder.clone());
    let agent = agent(store, &recorder, ScriptedModel::new([ScriptItem::say("y".repeat(1000)).repeat()])).await;
    let instance = agent.instance("k").await.unwrap();
    recorder.take();
    let mut costs = Vec::new();
    for input in inputs {
        instance.run(format!("{input:x<1000}")).await.unwrap();
        costs.push(Cost::of(&recorder.take()));
    }
    costs
}

#[tokio::test]
#[covers("JOURNAL-01")]
async fn a_turn_syncs_once() {
    let workspace = scratch();
    let kinds = ["", "count", "replace", "remove", "truncate", "truncate count", "", "remove count"];
    let costs = costs(workspace.path(), Fsync::Turn, kinds.repeat(4)).await;
    assert!(costs.iter().all(|cost| cost.syncs == 1), "{costs:?}");
}

fn id() -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new("k").unwrap() }
}

/// Opens a conversation, runs a turn in which one of three extensions sets another state, and closes it.
async fn one_turn(store: &FileStore, number: usize, state: &BTreeMap<ExtensionName, Value>) {
    let mut opened = store.open(&id()).await.unwrap();
    let (mut conversation, _) = Conversation::from_base(opened.base);
    let turn = TurnId::from(format!("t{number}"));
    opened.journal.begin(TurnStart::new(&turn)).unwrap();
    let event = MessageEvent::append(Message::user(format!("hello {number}")));
    conversation.apply(event.clone()).unwrap();
    opened.journal.record(&event, None).unwrap();
    opened.journal.commit(Commit::new(&turn, &conversation, state)).await.unwrap();
    opened.journal.close().await.unwrap();
}

/// `goondan run --input` is a turn of a conversation that is opened for it.
#[tokio::test]
#[covers("JOURNAL-01")]
async fn a_conversation_that_is_opened_for_one_turn_syncs_as_often_as_the_turn_needs() {
    let set = |names: &[&str], number: usize| {
        names.iter().map(|name| (ExtensionName::new(name).unwrap(), json!({ "turns": number }))).collect()
    };
    // The turn and one sync for each state file that changes. A new conversation has directories and metadata too.
    for (names, syncs) in [(&[][..], [10, 1, 1]), (&["one", "two", "three"], [14, 2, 2])] {
        let workspace = scratch();
        let recorder = Recorder::new(workspace.path());
        let store = FileStore::open(workspace.path()).unwrap().on_disk(recorder.clone());
        for (number, syncs) in syncs.into_iter().enumerate() {
            let state = if number == 0 { set(names, 0) } else { set(&names[..names.len().min(1)], number) };
            one_turn(&store, number, &state).await;
            assert_eq!(Cost::of(&recorder.take()).syncs, syncs, "turn {number} with state of {names:?}");
        }
    }
}

#[tokio::test]
async fn a_turn_writes_what_it_adds_however_long_the_history_is() {
    let workspace = scratch();
    let costs = costs(workspace.path(), Fsync::Turn, iter::repeat_n("", 400).chain(["remove"])).await;
    let (first, last) = (costs[1].written, costs[399].written);
    // Two messages of 1,000 characters, once as events and once in the base, the input in the first record of the turn,
    // and the JSON around them.
    assert!(first < 5 * 1000 + 2500, "{first}");
    assert!(last < first + 50, "{first} bytes for the second turn, {last} for the last");
    // It has two lines more, and is not shown in the base yet.
    assert!(costs[400].written < first, "{first} bytes for the second turn, {:?} for one that removes", costs[400]);
}

#[tokio::test]
async fn each_level_syncs_as_often_as_documented() {
    for (fsync, syncs) in [(Fsync::Never, 0), (Fsync::Turn, 1), (Fsync::Always, 4)] {
        let workspace = scratch();
        assert_eq!(costs(workspace.path(), fsync, [""; 3]).await[2].syncs, syncs, "{fsync:?}");
    }
}

/// Counts the bytes that are written. Syncs cost nothing, so that many turns are fast.
#[derive(Clone, Debug, Default)]
struct CountingDisk(Arc<AtomicUsize>);

#[derive(Debug)]
struct CountedFile(Box<dyn DiskFile>, CountingDisk);

impl Disk for CountingDisk {
    fn open(&self, path: &StorePath, mode: OpenMode) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(CountedFile(RealDisk.open(path, mode)?, self.clone())))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &StorePath) -> Result<()> {
        RealDisk.remove(path)
    }

    fn create_dir(&self, path: &StorePath) -> Result<()> {
        RealDisk.create_dir(path)
    }

    fn sync_dir(&self, _: &StorePath) -> Result<()> {
        Ok(())
    }
}

impl DiskFile for CountedFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.1.0.fetch_add(bytes.len(), Ordering::Relaxed);
        self.0.write_at(at, bytes)
    }

    fn metadata(&self) -> Result<Metadata> {
        self.0.metadata()
    }

    fn set_len(&mut self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Runs `turns` turns in a new conversation, each of which appends two messages. If it has a window, it also removes
/// those beyond it, and state changes. Returns how many bytes are written for each byte of an event, the last
/// checkpoint included.
async fn written_for_each_byte(turns: usize, window: Option<usize>) -> f64 {
    let (workspace, disk) = (scratch(), CountingDisk::default());
    let store = FileStore::open(workspace.path()).unwrap().on_disk(disk.clone());
    let mut opened = store.open(&id()).await.unwrap();
    let (mut conversation, mut said, mut state) = (Conversation::default(), 0, BTreeMap::new());
    for turn in 0..turns {
        let id = TurnId::from(format!("t{turn}"));
        opened.journal.begin(TurnStart::new(&id)).unwrap();
        let mut events: Vec<_> = (0..2)
            .map(|it| MessageEvent::append(Message::user("x".repeat(500)).with_id(format!("{turn}-{it}"))))
            .collect();
        if let Some(window) = window.filter(|window| turn >= *window) {
            events.extend((0..2).map(|it| MessageEvent::remove(MessageId::from(format!("{}-{it}", turn - window)))));
            state.insert(ExtensionName::new("counter").unwrap(), json!({ "turns": turn }));
        }
        for event in events {
            said += serde_json::to_vec(&event).unwrap().len();
            conversation.apply(event.clone()).unwrap();
            opened.journal.record(&event, None).unwrap();
        }
        opened.journal.commit(Commit::new(&id, &conversation, &state)).await.unwrap();
        conversation.fold();
    }
    opened.journal.close().await.unwrap();
    disk.0.load(Ordering::Relaxed) as f64 / said as f64
}

#[tokio::test]
#[covers("JOURNAL-01")]
async fn what_is_written_for_each_byte_said_is_bounded() {
    // The first turns cost more: what a conversation is made of, and no long history.
    let turns = if std::env::var_os("GOONDAN_RUNS").is_some() { 10_000 } else { 2_000 };
    let appending = written_for_each_byte(turns, None).await;
    assert!(appending <= 3.0, "{appending}");
    for window in [1, 10, 100, 500] {
        let rewriting = written_for_each_byte(turns, Some(window)).await;
        println!("{rewriting:.2} with a window of {window} turns, {appending:.2} appending");
        assert!(rewriting <= 6.0, "{rewriting} with a window of {window} turns");
    }
}
