//! The budgets of many conversations in one process: memory and file handles, counted. The test has a process for
//! itself, because the file handles of other tests would be counted too.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use allocation_counter::measure;
use goondan::agent::TurnStream;
use goondan::{Agent, Instance};
use goondan_benches::instances::{self, CLEANED_UP, EXTENSIONS, HISTORY, INPUT, key};
use goondan_benches::runtime;
use tempfile::TempDir;

/// The number of instances: enough that what is kept once for all does not matter.
const INSTANCES: usize = 320;
/// The bytes that an open instance with five extensions may keep beside its messages.
const OPEN: u64 = 16_384;
/// The bytes that an idle instance may keep while a handle exists.
const IDLE: u64 = 512;
/// The bytes that an instance may keep of which no handle exists.
const GONE: u64 = 64;
/// The file handles that an open instance may hold: the lock, the events, the runtime events.
const HANDLES: usize = 3;
/// The file handles that it may hold besides once a turn has run: the base.
const MORE_HANDLES: usize = 2;

fn handles() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Opens all instances. Each gets a stream of a turn, which keeps it open however long this takes.
async fn open_all(agent: &Agent) -> (Vec<Instance>, Vec<TurnStream>) {
    let (mut open, mut streams) = (Vec::with_capacity(INSTANCES), Vec::with_capacity(INSTANCES));
    for number in 0..INSTANCES {
        let instance = agent.instance(&key(number)).await.unwrap();
        streams.push(instance.run_stream("never"));
        open.push(instance);
    }
    (open, streams)
}

/// Waits until all instances are closed.
async fn until_idle(agent: &Agent) {
    let extensions = u32::try_from(INSTANCES * EXTENSIONS.len()).unwrap();
    CLEANED_UP.acquire_many(extensions).await.unwrap().forget();
    // The last instance is still closing after its clean-up; this waits for it.
    agent.close().await.unwrap();
}

#[test]
fn idle_conversations_cost_next_to_nothing() {
    let (dir, runtime) = (TempDir::new().unwrap(), runtime());
    let per = |bytes: i64| bytes.unsigned_abs() / INSTANCES as u64;
    let store = runtime.block_on(instances::stored(dir.path(), INSTANCES)).unwrap();
    CLEANED_UP.forget_permits(EXTENSIONS.len());
    let agent = instances::builder(Duration::ZERO).store(store.clone()).idle_after(Duration::from_millis(50));
    let agent = agent.build().unwrap();
    // Makes what the agent itself keeps.
    runtime.block_on(async { agent.instance("first").await.unwrap().close().await.unwrap() });
    CLEANED_UP.forget_permits(EXTENSIONS.len());
    let (mut messages, mut held) = (Vec::new(), (Vec::new(), Vec::new()));
    let history = measure(|| messages = runtime.block_on(instances::messages(&store)).unwrap()).bytes_current;
    let history = history.unsigned_abs();
    assert_eq!(messages.len(), HISTORY);
    let before = handles();
    let opened = measure(|| held = runtime.block_on(open_all(&agent))).bytes_current;
    let (mut held, streams) = held;
    let open_handles = handles() - before;
    let mut more_handles = 0;
    let of_turn = measure(|| {
        runtime.block_on(held[0].run(INPUT)).unwrap();
        more_handles = handles() - before - open_handles;
        drop(streams);
    });
    let opened = opened + of_turn.bytes_current;
    let closed = measure(|| runtime.block_on(until_idle(&agent))).bytes_current;
    let idle_handles = handles() - before;
    let dropped = measure(|| {
        held.clear();
        runtime.block_on(async { tokio::task::yield_now().await });
    })
    .bytes_current;
    let (open, idle, gone) = (per(opened), per(opened + closed), per(opened + closed + dropped));
    println!("a history of {HISTORY} messages: {history} bytes");
    println!("a conversation: {open} bytes open, {idle} bytes idle, {gone} bytes without a handle");
    println!("{open_handles} file handles open, {more_handles} more once a turn has run, {idle_handles} idle");
    assert!(open <= history + OPEN, "{open}");
    assert!(idle <= IDLE, "{idle}");
    assert!(gone <= GONE, "{gone}");
    assert!(open_handles <= HANDLES * INSTANCES, "{open_handles}");
    assert!(more_handles <= MORE_HANDLES, "{more_handles}");
    assert_eq!(idle_handles, 0);
}
