//! What a layer in a library costs: the slope between 16 and 64 layers, beside layers by hand and linked ones; and what it
//! costs to load one.
#![allow(clippy::expect_used, reason = "a bench stops at what cannot be")]

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use abi_fixture::{Light, Noop};
use goondan::{Extension, ExtensionDescriptor, Library};
use goondan_benches::step::{ByHand, HandLight, HandNext, HandNoop, chain, idle, library};
use goondan_benches::{Pair, head, row, runtime, side_by_side, time};

/// Short, so that some samples are not interrupted.
const RUNS: u32 = 20;
const ROUNDS: usize = 1_500;

fn main() {
    let path = library(Path::new(env!("CARGO_TARGET_TMPDIR")), &[]);
    load(&path);
    let library = Library::inspect(&path).and_then(goondan::Inspected::load).expect("a library");
    head("One more layer (slope between 16 and 64)", "by hand");
    type Row = (&'static str, &'static ExtensionDescriptor, fn() -> Box<dyn ByHand>);
    let layers: [Row; 2] =
        [("noop", Noop::DESCRIPTOR, || Box::new(HandNoop)), ("light", Light::DESCRIPTOR, || Box::new(HandLight))];
    for (name, linked, by_hand) in layers {
        let loaded = library.extension(Some(name)).expect("the layer");
        for messages in [0, 100] {
            for (linkage, extension) in [("linked", linked), ("loaded", loaded)] {
                let [few, many] = [16, 64].map(|depth| measure(extension, by_hand, messages, depth));
                let slope = |few: Duration, many: Duration| many.saturating_sub(few) / 48;
                let pair = Pair { ours: slope(few.ours, many.ours), yardstick: slope(few.yardstick, many.yardstick) };
                row(&format!("{name}, {linkage}, {messages} messages of 500 characters"), RUNS, pair);
            }
        }
    }
}

/// So many builds of the library are loaded.
const BUILDS: usize = 20;

/// Prints how long a library takes that this process has not loaded yet, and what its file alone takes.
fn load(path: &Path) {
    let inspect = (0..BUILDS).map(|_| time(|| drop(black_box(Library::inspect(path).expect("a library"))))).min();
    let runtime = runtime();
    let directory = tempfile::tempdir().expect("a directory");
    let mut times: Vec<_> = (0..BUILDS)
        .map(|number| {
            // Bytes behind the end make it another library; so many, so that it differs early, as builds do.
            let build = directory.path().join("lib.so");
            let mut bytes = std::fs::read(path).expect("the library");
            bytes.resize(bytes.len() + number + 1, 0);
            std::fs::write(&build, bytes).expect("a copy");
            time(|| {
                let loaded = Library::inspect(&build).and_then(goondan::Inspected::load).expect("a library");
                let noop = loaded.extension(Some("noop")).expect("the layer");
                black_box(runtime.block_on(chain(noop, 1)));
            })
        })
        .collect();
    let first = times[0];
    times.sort_unstable();
    let (least, median) = (times[0], times[BUILDS / 2]);
    println!("\ninspect {:.1?}", inspect.unwrap_or_default());
    println!(
        "inspect, load and register: {first:.1?} the first time; of {BUILDS} builds {least:.1?} at best, {median:.1?} mostly"
    );
}

/// Runs of a chain of so many layers, beside as many by hand.
fn measure(extension: &ExtensionDescriptor, layer: fn() -> Box<dyn ByHand>, messages: usize, depth: usize) -> Pair {
    let runtime = runtime();
    let (chain, mut ours) = (runtime.block_on(chain(extension, depth)), idle(messages));
    let (by_hand, mut yardstick): (Vec<_>, _) = ((0..depth).map(|_| layer()).collect(), idle(messages));
    let run = || {
        let runs = async {
            for _ in 0..RUNS {
                black_box(chain.run(&mut ours).await).expect("a run");
            }
        };
        time(|| runtime.block_on(runs))
    };
    let run_by_hand = || {
        let runs = async {
            for _ in 0..RUNS {
                black_box(HandNext(&by_hand).run(&mut yardstick).await).expect("a run");
            }
        };
        time(|| runtime.block_on(runs))
    };
    side_by_side(ROUNDS, run, run_by_hand)
}
