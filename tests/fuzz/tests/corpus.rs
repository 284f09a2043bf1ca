//! Checks every input in `fuzz/corpus` with its target.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use goondan_fuzz_targets::{TARGETS, request};

/// Returns the inputs of a target, in order.
fn inputs(name: &str) -> Vec<PathBuf> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut inputs: Vec<_> = fs::read_dir(corpus.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "no corpus for {name}");
    inputs
}

#[test]
fn every_input_in_the_corpus_passes_its_target() {
    for (name, target) in TARGETS {
        for input in inputs(name) {
            let data = fs::read(&input).unwrap();
            let passed = std::panic::catch_unwind(|| target(&data));
            assert!(passed.is_ok(), "{name} fails on {}", input.display());
        }
    }
}

/// Where no fuzzer runs: inputs of the corpus whose bytes are changed, doubled, left out, or those of another one.
/// `GOONDAN_RUNS` is how many.
#[test]
fn bodies_that_are_changed_at_random_are_no_fault_of_the_server() {
    let runs: u64 = std::env::var("GOONDAN_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(500);
    let corpus: Vec<_> = inputs("request").iter().map(|input| fs::read(input).unwrap()).collect();
    for seed in 0..runs {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut data = random.choice(&corpus).unwrap().clone();
        for _ in 0..random.usize(1..8) {
            let (from, to) = (random.usize(..data.len()), random.usize(..data.len()));
            let (from, to) = (from.min(to), from.max(to));
            match random.u8(..5) {
                0 => data[from] = random.u8(..),
                1 => data[from] = *random.choice(b"{}[]\",:\\0\n").unwrap(),
                2 => drop(data.drain(from..to)),
                3 => data.splice(from..from, data[from..to].to_vec()).for_each(drop),
                _ => {
                    let other = random.choice(&corpus).unwrap();
                    let at = random.usize(..other.len());
                    data.splice(from..to, other[at..].iter().copied().take(40)).for_each(drop);
                }
            }
            if data.is_empty() {
                break;
            }
        }
        let passed = std::panic::catch_unwind(|| request(&data));
        assert!(passed.is_ok(), "seed {seed}: {}", String::from_utf8_lossy(&data));
    }
}
