//! The cost of a layer in a library, the slope between 16 and 64 layers, beside layers by hand and linked ones; and
//! the cost of loading a library.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use abi_fixture::{Light, Noop};
use goondan::extension::{Extension, ExtensionDescriptor};
use goondan::plugin::Library;
use goondan_benches::by_hand::{self, NoopLayer};
use goondan_benches::step::{IdleStep, LightLayer, chain, idle_step};
use goondan_benches::{Pair, head, row, runtime, side_by_side, time};
use goondan_libraries::Build;

/// The runs of a sample. A sample is short, so that some samples are not interrupted.
const RUNS: u32 = 20;
const ROUNDS: usize = 1_500;

/// A layer by hand.
type HandLayer = Arc<dyn by_hand::Layer<IdleStep>>;

fn main() {
    let path = Build::new("abi-fixture").profile("release").run(env!("CARGO_TARGET_TMPDIR"));
    load(&path);
    let library = Library::inspect(&path).and_then(goondan::plugin::Inspected::load).expect("a library");
    head("One more layer (slope between 16 and 64)", "by hand");
    type Row = (&'static str, &'static ExtensionDescriptor, fn() -> HandLayer);
    let layers: [Row; 2] =
        [("noop", Noop::DESCRIPTOR, || Arc::new(NoopLayer)), ("light", Light::DESCRIPTOR, || Arc::new(LightLayer))];
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

/// The number of builds of the library that are loaded.
const BUILDS: usize = 20;

/// Prints how long it takes to load a library that this process has not loaded yet, and how long to inspect its file.
fn load(path: &Path) {
    let inspect = (0..BUILDS).map(|_| time(|| drop(black_box(Library::inspect(path).expect("a library"))))).min();
    let runtime = runtime();
    let directory = tempfile::tempdir().expect("a directory");
    let mut times: Vec<_> = (0..BUILDS)
        .map(|number| {
            // Bytes after the end make it another library. Their number differs from build to build, so that files
            // differ by their length already, as real builds do.
            let build = directory.path().join("lib.so");
            let mut bytes = std::fs::read(path).expect("the library");
            bytes.resize(bytes.len() + number + 1, 0);
            std::fs::write(&build, bytes).expect("a copy");
            time(|| {
                let loaded = Library::inspect(&build).and_then(goondan::plugin::Inspected::load).expect("a library");
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

/// Runs a chain of `depth` layers, beside one by hand.
fn measure(extension: &ExtensionDescriptor, layer: fn() -> HandLayer, messages: usize, depth: usize) -> Pair {
    let runtime = runtime();
    let (chain, mut ours) = (runtime.block_on(chain(extension, depth)), idle_step(messages));
    let (by_hand, mut yardstick): (Vec<_>, _) = ((0..depth).map(|_| layer()).collect(), idle_step(messages));
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
                black_box(by_hand::Next::new(&by_hand).run(&mut yardstick).await).expect("a run");
            }
        };
        time(|| runtime.block_on(runs))
    };
    side_by_side(ROUNDS, run, run_by_hand)
}
