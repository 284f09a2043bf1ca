//! The cost of `goondan run --input` from its start to the end of the first turn, beside a program that starts a tokio
//! runtime and exits. Each sample is a new process; the files that it reads are in the page cache.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::ffi::OsStr;
use std::path::Path;

use goondan_benches::sample::{Sample, command, mega};
use goondan_benches::{Pair, head, row};

const ROUNDS: usize = 150;
const QUICKSTART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/quickstart");

fn main() {
    let goondan = command(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory"));
    let disk = tempfile::tempdir().expect("a directory");
    // In memory, the time of the disk is not measured.
    let memory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory");
    let run = |bundle: &Path, instance: &str, state: &Path, fsync: &str| {
        let args = ["--input", "hello", "--instance", instance, "--fsync", fsync, "--state-root"].map(OsStr::new);
        let args = ["run".as_ref(), bundle.as_os_str()].into_iter().chain(args).chain([state.as_os_str()]);
        sample(goondan.as_ref(), args)
    };
    head("From the start to the end of the first turn", "empty tokio");
    let [mut ours, mut synced, mut version, mut empty] = [Sample::MOST; 4];
    for round in 0..ROUNDS {
        let instance = format!("a{round}");
        ours = ours.least(run(QUICKSTART.as_ref(), &instance, memory.path(), "never"));
        synced = synced.least(run(QUICKSTART.as_ref(), &instance, disk.path(), "turn"));
        version = version.least(sample(goondan.as_ref(), ["--version".as_ref()]));
        empty = empty.least(sample(env!("CARGO_BIN_EXE_empty").as_ref(), []));
    }
    row("time", 1, Pair { ours: ours.time, yardstick: empty.time });
    row("time, on the disk, fsync: turn", 1, Pair { ours: synced.time, yardstick: empty.time });
    row("time of the processors", 1, Pair { ours: ours.processors, yardstick: empty.processors });
    row("time of the processors, goondan --version", 1, Pair { ours: version.processors, yardstick: empty.processors });
    let ratio = ours.memory as f64 / empty.memory as f64;
    println!("{:<52} {:>10.1}MB {:>10.1}MB {ratio:>8.2}×", "most memory", mega(ours.memory), mega(empty.memory));
}

fn sample<'a>(program: &OsStr, args: impl IntoIterator<Item = &'a OsStr>) -> Sample {
    Sample::of(env!("CARGO_BIN_EXE_sample"), program, args)
}
