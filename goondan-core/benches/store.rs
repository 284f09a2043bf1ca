//! Owns the measurements of the file store, as ratios to the least that could be done: `cargo bench -p goondan-core`.
#![cfg(feature = "runtime")]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::future::Future;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use goondan_core::store::{Commit, FileStore, Opened, Reach};
use goondan_core::{AgentName, Conversation, InstanceId, InstanceKey, Message, MessageEvent, Store, TurnId};
use serde_json::Value;

fn main() {
    rewriting();
    opening();
}

/// A saturated window over 10,000 messages: each turn brings two and lets two go.
fn rewriting() {
    let workspace = tempfile::tempdir().unwrap();
    let base = stored(workspace.path(), 10_000);
    let Opened { base: messages, mut journal, .. } = open(workspace.path());
    let mut ids: VecDeque<_> = messages.iter().map(|message| message.id().clone()).collect();
    let (mut conversation, _) = Conversation::from_base(messages);
    let (mut turns, mut bare) = (Vec::new(), Vec::new());
    for number in 0..40 {
        let turn = TurnId::from(format!("t{number}"));
        let new: Vec<_> = (0..2).map(|it| message(&format!("new-{number}-{it}"))).collect();
        let started = Instant::now();
        journal.begin(&turn).unwrap();
        let gone = ids.drain(..2).map(MessageEvent::remove).collect::<Vec<_>>();
        for event in gone.into_iter().chain(new.iter().cloned().map(MessageEvent::append)) {
            conversation.apply(event.clone()).unwrap();
            journal.record(&event).unwrap();
        }
        now(journal.flush(Reach::Process)).unwrap();
        let commit = Commit { turn: &turn, conversation: &conversation, state: &BTreeMap::new() };
        now(journal.commit(commit)).unwrap();
        conversation.fold();
        turns.push(started.elapsed());
        ids.extend(new.iter().map(|message| message.id().clone()));
        // The same bytes, by the shortest way that a crash cannot tear.
        let bytes = fs::read(&base).unwrap();
        let started = Instant::now();
        let beside = workspace.path().join("bare.tmp");
        let mut file = File::create(&beside).unwrap();
        file.write_all(&bytes).unwrap();
        file.sync_data().unwrap();
        fs::rename(&beside, workspace.path().join("bare")).unwrap();
        bare.push(started.elapsed());
    }
    let (turn, bare) = (median(turns), median(bare));
    println!(
        "a turn that rewrites 10,000 messages: {turn:?}; bare write, sync and rename: {bare:?}; ratio {:.2}",
        ratio(turn, bare)
    );
}

fn opening() {
    let workspace = tempfile::tempdir().unwrap();
    let base = stored(workspace.path(), 100_000);
    let (mut opened, mut values, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..7 {
        opened.push(timed(|| open(workspace.path()).base));
        values.push(timed(|| parsed::<Value>(&base)));
        messages.push(timed(|| parsed::<Message>(&base)));
    }
    let (open, value, message) = (median(opened), median(values), median(messages));
    println!(
        "opening 100,000 messages: {open:?}; parsing them as values: {value:?}, ratio {:.2}; as messages: {message:?}, ratio {:.2}",
        ratio(open, value),
        ratio(open, message)
    );
}

fn parsed<T: serde::de::DeserializeOwned>(path: &Path) -> Vec<T> {
    let bytes = fs::read(path).unwrap();
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    let made = black_box(work());
    let took = started.elapsed();
    drop(made);
    took
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}

fn message(id: &str) -> Message {
    Message::user("x".repeat(500)).with_id(id)
}

/// Makes an instance with so many messages, and says where its base lies.
fn stored(workspace: &Path, messages: usize) -> std::path::PathBuf {
    drop(open(workspace));
    let base = FileStore::open(workspace).unwrap().instance_dir(&id()).join("messages/base.jsonl");
    let mut bytes = Vec::new();
    for number in 0..messages {
        serde_json::to_writer(&mut bytes, &message(&format!("m{number}"))).unwrap();
        bytes.push(b'\n');
    }
    fs::write(&base, bytes).unwrap();
    base
}

fn open(workspace: &Path) -> Opened {
    now(FileStore::open(workspace).unwrap().open(&id())).unwrap()
}

fn id() -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new("k").unwrap() }
}

/// The file store never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("the file store waits for nothing"),
    }
}
