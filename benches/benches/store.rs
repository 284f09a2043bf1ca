//! The cost of storing a turn on the disk, beside the shortest way to write the same bytes.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use goondan::conversation::{Conversation, MessageEvent};
use goondan::name::TurnId;
use goondan::store::Store;
use goondan::store::{Commit, Durability, FileStore, Fsync, Opened, TurnStart};
use goondan_benches::agents::{self, Layers};
use goondan_benches::{head, row, runtime, side_by_side, stored, time};

fn main() {
    head("A turn on the disk", "bare");
    appending("fsync: turn, to append and sync", Fsync::Turn, |file| file.sync_data().expect("a sync"));
    appending("fsync: never, to append", Fsync::Never, |_| {});
    rewriting();
}

/// Measures whole turns of an agent that only appends messages, beside appending as many bytes to a file.
fn appending(what: &str, fsync: Fsync, sync: fn(&File)) {
    let (ours, bare) = (tempfile::tempdir().expect("a directory"), tempfile::tempfile().expect("a file"));
    let store = FileStore::open(ours.path()).expect("a store").fsync(fsync);
    let runtime = runtime();
    let instance = runtime.block_on(async {
        let agent = agents::builder(Layers::default(), 0).store(store).build().expect("the agent is complete");
        agent.instance("bench").await.expect("an instance")
    });
    let turn = || {
        runtime.block_on(instance.run("hi")).expect("a turn");
    };
    turn();
    let before = bytes_written();
    turn();
    let bytes = vec![b'x'; bytes_written() - before];
    let append = || {
        (&bare).write_all(&bytes).expect("a write");
        sync(&bare);
    };
    row(&format!("{what} its {} bytes", bytes.len()), 1, side_by_side(100, || time(turn), || time(append)));
}

/// Returns how many bytes this process has written.
fn bytes_written() -> usize {
    let counted = fs::read_to_string("/proc/self/io").expect("Linux counts them");
    let written = counted.lines().find_map(|line| line.strip_prefix("wchar: "));
    written.and_then(|number| number.parse().ok()).expect("Linux counts them")
}

/// Measures turns of a full window over 10,000 messages: each appends two and removes two. The yardstick writes the
/// same bytes in the shortest way that a crash cannot tear.
fn rewriting() {
    let workspace = tempfile::tempdir().expect("a directory");
    let store = FileStore::open(workspace.path()).expect("a store");
    let runtime = runtime();
    drop(runtime.block_on(store.open(&stored::id())).expect("a new conversation"));
    let base = stored::write(&store, &stored::id(), 10_000);
    let opened = runtime.block_on(store.open(&stored::id())).expect("a stored conversation");
    let Opened { base: messages, mut journal, .. } = opened;
    let mut ids: VecDeque<_> = messages.iter().map(|message| message.id().clone()).collect();
    let (mut conversation, _) = Conversation::from_base(messages);
    let (mut number, state) = (0, BTreeMap::new());
    let mut turn = || {
        number += 1;
        let turn = TurnId::from(format!("t{number}"));
        let new: Vec<_> = (0..2).map(|it| stored::message(&format!("new-{number}-{it}"))).collect();
        let gone = ids.drain(..2).map(MessageEvent::remove).collect::<Vec<_>>();
        ids.extend(new.iter().map(|message| message.id().clone()));
        time(|| {
            journal.begin(TurnStart::new(&turn)).expect("a turn");
            for event in gone.into_iter().chain(new.into_iter().map(MessageEvent::append)) {
                conversation.apply(event.clone()).expect("the event applies");
                journal.record(&event, None).expect("a line");
            }
            runtime.block_on(journal.flush(Durability::Flushed)).expect("a write");
            let commit = journal.commit(Commit::new(&turn, &conversation, &state));
            runtime.block_on(commit).expect("a commit");
            conversation.fold();
        })
    };
    let bare = || rewrite(workspace.path(), &fs::read(&base).expect("a file"));
    row("rewriting 10,000 messages, to write, sync, rename", 1, side_by_side(40, &mut turn, bare));
}

fn rewrite(workspace: &Path, bytes: &[u8]) -> Duration {
    time(|| {
        let temporary = workspace.join("bare.tmp");
        let mut file = File::create(&temporary).expect("a file");
        file.write_all(bytes).expect("a write");
        file.sync_data().expect("a sync");
        fs::rename(&temporary, workspace.join("bare")).expect("a rename");
    })
}
