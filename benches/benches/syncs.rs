//! Turns of many conversations whose commits wait for the disk, on two threads: with syncs on these threads, and in
//! place (`Syncs`). The second table is of a disk whose every sync takes 2 ms.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::fs::Metadata;
use std::io::Result;
use std::thread::sleep;
use std::time::{Duration, Instant};

use goondan::Instance;
use goondan::store::{Disk, DiskFile, FileStore, OpenMode, RealDisk, StorePath, Syncs};
use goondan_benches::instances::{self, INPUT, key};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const ROUNDS: usize = 5;
/// The number of turns of all conversations in a round.
const TURNS: usize = 1_024;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.expect("a runtime");
    table(&runtime, "Turns a second that are synced to this disk", |store| store);
    table(&runtime, "… to a disk whose every sync takes 2 ms", |store| store.on_disk(SlowDisk));
}

fn table(runtime: &Runtime, title: &str, disk: impl Fn(FileStore) -> FileStore) {
    println!("\n{title}\n{:<24} {:>44} {:>44} {:>8}", "conversations at once", "on the threads", "in place", "ratio");
    for number in [1, 64, 512] {
        let [mut on_thread, mut in_place] = [Syncs::OnThread, Syncs::InPlace].map(|syncs| {
            let dir = tempfile::tempdir().expect("a directory");
            let store = disk(FileStore::open(dir.path()).expect("a store").syncs(syncs));
            let open = runtime.block_on(filled(store, number));
            (dir, open, Vec::new())
        });
        for _ in 0..ROUNDS {
            // In turn, so that what else the machine does hits both.
            for (_, open, rounds) in [&mut on_thread, &mut in_place] {
                rounds.push(round(runtime, open));
            }
        }
        let [before, after] = [on_thread.2, in_place.2].map(median);
        let ratio = after.per_second / before.per_second;
        println!("{number:<24} {before:>44} {after:>44} {ratio:>7.1}×");
    }
}

async fn filled(store: FileStore, number: usize) -> Vec<Instance> {
    let agent = instances::builder(Duration::ZERO).store(store).build().expect("the agent is complete");
    let mut open = Vec::with_capacity(number);
    for number in 0..number {
        let instance = agent.instance(&key(number)).await.expect("an instance");
        instance.run(INPUT).await.expect("a turn");
        open.push(instance);
    }
    open
}

/// How fast the turns of a round were.
struct Speed {
    per_second: f64,
    /// The time from the input to the answer that half of the turns took at most, and 99 per cent of them.
    half: Duration,
    most: Duration,
}

impl std::fmt::Display for Speed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { per_second, half, most } = self;
        f.pad(&format!("{per_second:.0}, p50 {half:.1?}, p99 {most:.1?}"))
    }
}

fn median(mut rounds: Vec<Speed>) -> Speed {
    rounds.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    rounds.swap_remove(ROUNDS / 2)
}

/// Runs turns of all conversations at the same time.
fn round(runtime: &Runtime, open: &[Instance]) -> Speed {
    runtime.block_on(async {
        let start = Instant::now();
        let mut running = JoinSet::new();
        for instance in open {
            let (instance, turns) = (instance.clone(), TURNS / open.len());
            running.spawn(async move {
                let mut took = Vec::with_capacity(turns);
                for _ in 0..turns {
                    // The input is there, and waits until the runtime gets to it.
                    let start = Instant::now();
                    tokio::task::yield_now().await;
                    instance.run(INPUT).await.expect("a turn");
                    took.push(start.elapsed());
                }
                took
            });
        }
        let mut took = running.join_all().await.concat();
        let per_second = took.len() as f64 / start.elapsed().as_secs_f64();
        took.sort_unstable();
        Speed { per_second, half: took[took.len() / 2], most: took[took.len() * 99 / 100] }
    })
}

/// The real disk, but that each sync takes 2 ms and reaches no platter.
#[derive(Debug)]
struct SlowDisk;

#[derive(Debug)]
struct SlowFile(Box<dyn DiskFile>);

fn slow_sync() {
    sleep(Duration::from_millis(2));
}

impl Disk for SlowDisk {
    fn open(&self, path: &StorePath, mode: OpenMode) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(SlowFile(RealDisk.open(path, mode)?)))
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
        slow_sync();
        Ok(())
    }
}

impl DiskFile for SlowFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.0.write_at(at, bytes)
    }

    fn metadata(&self) -> Result<Metadata> {
        self.0.metadata()
    }

    fn set_len(&mut self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    fn sync(&mut self) -> Result<()> {
        slow_sync();
        Ok(())
    }
}
