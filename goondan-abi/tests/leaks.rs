//! Ten thousand calls and fifty reloads leak nothing. The test is alone in its process, because it counts the
//! threads, open files and memory of the process.
#![allow(unsafe_code, reason = "the environment is set")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the other items are for the test `library`")]
#[path = "library/support.rs"]
mod support;

use std::fs;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use goondan_abi::{Library, Loaded};
use goondan_covers::covers;
use goondan_runtime::{Agent, Instance, ScriptItem};
use serde_json::json;

use support::{agent, loaded, optimized};

const BATCHES: usize = 100;
/// Calls of each mode in a batch.
const CALLS: usize = 20;
const RELOADS: usize = 50;
/// The memory in use varies with how the allocator keeps and splits pages. An error text that leaked in each call
/// would take more than this.
const TOLERANCE: usize = 2 << 20;

fn entries(directory: &str) -> usize {
    fs::read_dir(directory).unwrap().count()
}

/// Returns the numbers of threads and open files of the process.
fn held() -> (usize, usize) {
    (entries("/proc/self/task"), entries("/proc/self/fd"))
}

/// Returns the bytes of memory in use.
fn memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

async fn described(library: &Loaded, mode: &str) -> Agent {
    let modes = library.extension(Some("modes")).unwrap();
    let script = [ScriptItem::say("hi").repeat()];
    agent(script).described_extension("modes", modes, json!({ "mode": mode })).build().unwrap()
}

/// Polls a turn once and drops it.
async fn cancel(instance: &Instance) {
    let mut turn = pin!(instance.run("hello"));
    poll_fn(|cx| {
        assert!(turn.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

async fn batch() {
    for mode in ["pass-on", "panic", "panic-late", "panic-in-drop", "hang"] {
        let instance = described(loaded(), mode).await.instance("one").await.unwrap();
        for _ in 0..CALLS {
            match mode {
                "pass-on" => assert_eq!(instance.run("hello").await.unwrap().text(), "hi"),
                "panic" | "panic-late" => assert_eq!(*instance.run("hello").await.unwrap_err().code(), *"E_EXT_PANIC"),
                _ => cancel(&instance).await,
            }
        }
        instance.close().await.unwrap();
    }
}

async fn reload(agent: &Agent, instance: &Instance, path: &std::path::Path, number: usize) {
    // Bytes after the end make the file another library.
    let mut bytes = fs::read(optimized()).unwrap();
    bytes.extend(format!("build {number}").bytes());
    fs::write(path, bytes).unwrap();
    let library = Library::inspect(path).unwrap().load().unwrap();
    let reloaded = agent.reload(&described(&library, "runtime").await).await.unwrap();
    assert_eq!(reloaded.changes.len(), 1);
    assert_eq!(instance.run("hello").await.unwrap().text(), "hi");
}

/// Waits until the counts are `at`, because threads that were told to end do so later.
async fn is_back(at: (usize, usize)) -> bool {
    let until = Instant::now() + Duration::from_secs(20);
    while held() != at && Instant::now() < until {
        tokio::task::yield_now().await;
    }
    held() == at
}

#[test]
#[covers("LINK-05")]
fn calls_panics_cancellations_and_reloads_leave_nothing_behind() {
    // SAFETY: No other thread of this process reads the environment.
    unsafe { std::env::set_var("RUST_BACKTRACE", "0") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("libfixture.so");
    // Loaded before counting, because the library and the lock on the directory of copies stay.
    loaded();
    let idle = held();
    runtime.block_on(async {
        for _ in 0..BATCHES / 10 {
            batch().await;
        }
        let before = memory();
        for _ in BATCHES / 10..BATCHES {
            batch().await;
        }
        let grown = memory().saturating_sub(before);
        assert!(grown < TOLERANCE, "{grown} bytes more");
        assert!(is_back(idle).await, "{idle:?} before, {:?} after the calls", held());

        let agent = described(loaded(), "runtime").await;
        let instance = agent.instance("one").await.unwrap();
        for number in 0..RELOADS {
            reload(&agent, &instance, &path, number).await;
        }
        instance.close().await.unwrap();
        drop((agent, instance));
        assert!(is_back(idle).await, "{idle:?} before, {:?} after the reloads", held());
    });
}
