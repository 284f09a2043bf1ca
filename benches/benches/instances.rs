//! Many conversations in one process, each with 20 messages and five extensions: memory, turns a second, and the
//! latency of a turn beside a thousand others.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use goondan::conversation::Message;
use goondan::store::FileStore;
use goondan::store::Fsync;
use goondan::{Agent, Instance};
use goondan_benches::instances::{self, AnsweringModel, EXTENSIONS, INPUT, key, turn_by_hand};
use goondan_benches::time;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

const INSTANCES: usize = 10_000;
/// The number of instances in files. It is smaller, because the cost of one does not depend on it and disks are slow.
const FILES: usize = 2_000;
/// The number of instances that run turns beside the one that is measured.
const OTHERS: usize = 1_000;
/// The number of turns of the instance that is measured.
const TURNS: usize = 1_000;
const ROUNDS: usize = 3;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.expect("a runtime");
    let dir = TempDir::new().expect("a directory");
    eprintln!("writing {FILES} conversations …");
    let store = runtime.block_on(instances::stored(dir.path(), FILES)).expect("stored conversations");
    memory(&runtime, instances::builder(Duration::ZERO).store(store.clone()));
    let in_memory = runtime.block_on(filled());
    throughput(&runtime, &in_memory, store);
    drop(in_memory);
    latency(&runtime);
}

/// Returns the bytes of the resident pages, by `/proc/self/statm`, and the number of open files.
fn resident() -> (u64, usize) {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number of pages");
    (pages * 4096, std::fs::read_dir("/proc/self/fd").expect("Linux").count())
}

/// Returns how many conversations in files the limit of open files allows, with three handles each.
fn openable() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("Linux");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("the limit");
    let limit = line.split_whitespace().nth(3).and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
    FILES.min(limit.saturating_sub(100) / 3)
}

fn memory(runtime: &Runtime, agent: goondan::agent::AgentBuilder) {
    let number = openable();
    eprintln!("opening {number} conversations …");
    let (before, files_before) = resident();
    let histories = runtime.block_on(histories(number));
    let (yardstick, _) = resident();
    let agent = agent.build().expect("the agent is complete");
    let held = runtime.block_on(opened(&agent, number));
    let (open, files) = resident();
    let per = |bytes: u64| bytes / number as u64;
    println!("\nMemory by resident pages, {number} conversations in files, with {} extensions", EXTENSIONS.len());
    println!("{:<52} {:>12} B", "the messages alone", per(yardstick - before));
    println!("{:<52} {:>12} B", "an open conversation, messages included", per(open - yardstick));
    println!(
        "{:<52} {:>12.1}",
        "open files of a conversation before its first turn",
        (files - files_before) as f64 / number as f64
    );
    drop((histories, held));
    runtime.block_on(agent.close()).expect("the instances close");
}

async fn histories(number: usize) -> Vec<Vec<Arc<Message>>> {
    let mut all = Vec::with_capacity(number);
    for _ in 0..number {
        all.push(history().await);
    }
    all
}

/// Makes the messages of one conversation.
async fn history() -> Vec<Arc<Message>> {
    let mut messages = Vec::new();
    for _ in 0..instances::HISTORY / 2 {
        turn_by_hand(&mut messages, &AnsweringModel(Duration::ZERO)).await.expect("a turn");
    }
    messages
}

async fn opened(agent: &Agent, number: usize) -> Vec<Instance> {
    let mut open = Vec::with_capacity(number);
    for number in 0..number {
        open.push(agent.instance(&key(number)).await.expect("an instance"));
    }
    open
}

/// Opens all instances in memory, each with a history.
async fn filled() -> Vec<Instance> {
    eprintln!("talking to {INSTANCES} conversations in memory …");
    let agent = instances::builder(Duration::ZERO).build().expect("the agent is complete");
    let mut all = JoinSet::new();
    for number in 0..INSTANCES {
        let agent = agent.clone();
        all.spawn(async move { instances::with_history(&agent, &key(number)).await.expect("an instance") });
    }
    all.join_all().await
}

fn throughput(runtime: &Runtime, in_memory: &[Instance], files: FileStore) {
    println!("\nTurns a second over all conversations, on 2 cores");
    let histories = runtime.block_on(histories(INSTANCES)).into_iter().map(|history| Arc::new(Mutex::new(history)));
    let histories: Vec<_> = histories.collect();
    let by_hand = fastest(|| {
        each(runtime, histories.iter().map(Arc::clone), |history| async move {
            turn_by_hand(&mut *history.lock().await, &AnsweringModel(Duration::ZERO)).await
        })
    });
    rate("by hand, without extensions", INSTANCES, by_hand);
    drop(histories);
    let run = |instance: Instance| async move { instance.run(INPUT).await.map(drop) };
    rate("in memory", INSTANCES, fastest(|| each(runtime, in_memory.iter().cloned(), run)));
    for (what, fsync, number) in
        [("in open files, fsync never", Fsync::Never, 1_000), ("in open files, fsync turn", Fsync::Turn, 200)]
    {
        eprintln!("{what} …");
        let agent = instances::builder(Duration::ZERO).store(files.clone().fsync(fsync)).build();
        let agent = agent.expect("the agent is complete");
        let open = runtime.block_on(opened(&agent, number));
        rate(what, number, fastest(|| each(runtime, open.iter().cloned(), run)));
        runtime.block_on(agent.close()).expect("the instances close");
    }
    eprintln!("opening for each turn …");
    let agent = instances::builder(Duration::ZERO).store(files).build().expect("the agent is complete");
    let reopen = |number| {
        let agent = agent.clone();
        async move {
            let instance = agent.instance(&key(number)).await?;
            instance.run(INPUT).await?;
            instance.close().await
        }
    };
    let took = fastest(|| each(runtime, 0..1_000, reopen));
    rate("in files that are opened for each turn, fsync never", 1_000, took);
}

fn rate(what: &str, turns: usize, took: Duration) {
    println!("{what:<52} {:>12.0}", turns as f64 / took.as_secs_f64());
}

fn fastest(work: impl Fn()) -> Duration {
    (0..ROUNDS).map(|_| time(&work)).min().expect("there are rounds")
}

/// Runs `work` for each of `all`, 64 at a time.
fn each<T, F>(runtime: &Runtime, all: impl Iterator<Item = T>, work: impl Fn(T) -> F)
where
    F: Future<Output = goondan::Result<()>> + Send + 'static,
{
    runtime.block_on(async {
        let mut running: JoinSet<goondan::Result<()>> = JoinSet::new();
        for one in all {
            if running.len() == 64 {
                running.join_next().await.expect("a running task").expect("no panic").expect("no error");
            }
            running.spawn(work(one));
        }
        running.join_all().await.into_iter().collect::<goondan::Result<()>>().expect("no error");
    });
}

fn latency(runtime: &Runtime) {
    println!("\nOne turn in memory, with a model that answers at once");
    let agent = instances::builder(Duration::ZERO).build();
    let agent = agent.expect("the agent is complete");
    let probe = runtime.block_on(instances::with_history(&agent, "probe")).expect("an instance");
    percentiles("alone", &mut turns(runtime, &probe));
    for (what, latency) in
        [("beside 1,000 with models that take 50 ms", 50), ("beside 1,000 that want more time than there is", 1)]
    {
        eprintln!("{what} …");
        let others = runtime.block_on(others(Duration::from_millis(latency)));
        percentiles(what, &mut turns(runtime, &probe));
        drop(others);
    }
}

/// Runs turns of other instances until the returned set is dropped.
async fn others(latency: Duration) -> JoinSet<()> {
    let agent = instances::builder(latency).build().expect("the agent is complete");
    let mut others = JoinSet::new();
    for number in 0..OTHERS {
        let instance = agent.instance(&key(number)).await.expect("an instance");
        others.spawn(async move {
            loop {
                instance.run(INPUT).await.expect("a turn");
            }
        });
    }
    others
}

/// Runs [`TURNS`] turns and returns how long each took.
fn turns(runtime: &Runtime, probe: &Instance) -> Vec<Duration> {
    let probe = probe.clone();
    let turns = async move {
        let mut took = Vec::with_capacity(TURNS);
        for _ in 0..TURNS {
            let start = Instant::now();
            probe.run(INPUT).await.expect("a turn");
            took.push(start.elapsed());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        took
    };
    runtime.block_on(runtime.spawn(turns)).expect("no panic")
}

fn percentiles(what: &str, took: &mut [Duration]) {
    took.sort_unstable();
    let at = |percent: usize| took[took.len() * percent / 100];
    println!("{what:<52} p50 {:>9.1?}  p99 {:>9.1?}", at(50), at(99));
}
