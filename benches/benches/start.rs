//! The cost of `goondan run --input` from its start to the end of the first turn, beside a program that starts a tokio
//! runtime and exits. Each sample is a new process; the files that it reads are in the page cache.
#![allow(clippy::expect_used, clippy::panic, reason = "a bench stops at the first error")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use goondan::name::{AgentName, InstanceKey};
use goondan::store::FileStore;
use goondan::store::InstanceId;
use goondan_benches::{Pair, head, row, stored};

const ROUNDS: usize = 150;
const QUICKSTART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/quickstart");
/// An agent without a window: it keeps all messages.
const WITHOUT_WINDOW: &str = "
apiVersion: goondan.ai/v1
kind: Model
metadata: { name: main }
spec: { provider: scripted, script: ./script.yaml }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: guide }
spec: { model: Model/main }
";

fn main() {
    let goondan = program();
    let disk = tempfile::tempdir().expect("a directory");
    // In memory, the time of the disk is not measured.
    let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let run = |bundle: &Path, instance: &str, state: &Path, fsync: &str| {
        let args = ["--input", "hello", "--instance", instance, "--fsync", fsync, "--state-root"].map(OsStr::new);
        let args = ["run".as_ref(), bundle.as_os_str()].into_iter().chain(args).chain([state.as_os_str()]);
        Sample::of(goondan.as_ref(), args)
    };
    head("From the start to the end of the first turn", "empty tokio");
    let [mut ours, mut synced, mut version, mut empty] = [Sample::MOST; 4];
    for round in 0..ROUNDS {
        let instance = format!("a{round}");
        ours = ours.least(run(QUICKSTART.as_ref(), &instance, memory.path(), "never"));
        synced = synced.least(run(QUICKSTART.as_ref(), &instance, disk.path(), "turn"));
        version = version.least(Sample::of(goondan.as_ref(), ["--version".as_ref()]));
        empty = empty.least(Sample::of(env!("CARGO_BIN_EXE_empty").as_ref(), []));
    }
    row("time", 1, Pair { ours: ours.time, yardstick: empty.time });
    row("time, on the disk, fsync: turn", 1, Pair { ours: synced.time, yardstick: empty.time });
    row("time of the processors", 1, Pair { ours: ours.processors, yardstick: empty.processors });
    row("time of the processors, goondan --version", 1, Pair { ours: version.processors, yardstick: empty.processors });
    let ratio = ours.memory as f64 / empty.memory as f64;
    println!("{:<52} {:>10.1}MB {:>10.1}MB {ratio:>8.2}×", "most memory", mega(ours.memory), mega(empty.memory));

    println!("\nThe most memory over 10,000 messages of 500 characters");
    let keeps = tempfile::tempdir().expect("a directory");
    fs::write(keeps.path().join("goondan.yaml"), WITHOUT_WINDOW).expect("a file");
    fs::write(keeps.path().join("script.yaml"), "- { say: fine }").expect("a file");
    for (what, bundle, workspace) in [
        ("all are kept", keeps.path(), "guide"),
        ("a window removes all but twenty", QUICKSTART.as_ref(), "quickstart"),
    ] {
        let size = fs::metadata(long(memory.path(), workspace)).expect("a file").len() / 1024;
        let most_memory = run(bundle, "long", memory.path(), "never").memory;
        let most = mega(3 * size) + 20.0;
        println!("{what:<52} {:>10.1}MB of {most:.1}MB: 3 × {:.1}MB on the disk + 20MB", mega(most_memory), mega(size));
    }
}

/// Builds the command as its users build it, and returns its path.
fn program() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--release", "--package", "goondan-cli", "--target-dir"]).arg(target);
    assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs").success());
    target.join("release/goondan")
}

/// Writes the conversation `long` and returns the file of its messages.
fn long(state: &Path, workspace: &str) -> PathBuf {
    let store = FileStore::in_workspace(state, workspace).expect("a store");
    let agent = AgentName::new("guide").expect("a legal name");
    stored::write(&store, &InstanceId { agent, key: InstanceKey::new("long").expect("a legal key") }, 10_000)
}

/// The time and the memory that one run of a program took.
#[derive(Clone, Copy)]
struct Sample {
    time: Duration,
    processors: Duration,
    /// In kB.
    memory: u64,
}

impl Sample {
    const MOST: Self = Self { time: Duration::MAX, processors: Duration::MAX, memory: u64::MAX };

    fn of<'a>(program: &OsStr, args: impl IntoIterator<Item = &'a OsStr>) -> Self {
        let output = Command::new(env!("CARGO_BIN_EXE_sample")).arg(program).args(args).output();
        let output = output.expect("the sample runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let numbers = String::from_utf8(output.stdout).expect("numbers");
        let numbers: Vec<u64> = numbers.split_whitespace().map(|it| it.parse().expect("a number")).collect();
        let [time, processors, memory] = numbers[..] else { panic!("three numbers: {numbers:?}") };
        Self { time: Duration::from_micros(time), processors: Duration::from_micros(processors), memory }
    }

    /// Returns the smaller of the two, field by field.
    fn least(self, other: Self) -> Self {
        Self {
            time: self.time.min(other.time),
            processors: self.processors.min(other.processors),
            memory: self.memory.min(other.memory),
        }
    }
}

fn mega(kilobytes: u64) -> f64 {
    kilobytes as f64 / 1024.0
}
