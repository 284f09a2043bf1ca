//! The inputs that are checked in, fed to their targets: those that the fuzzers found worth keeping, and those that once
//! broke something.

use std::fs;
use std::path::Path;

use goondan_fuzz_targets::TARGETS;

#[test]
fn every_input_that_is_checked_in_is_taken() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in TARGETS {
        let mut inputs: Vec<_> = fs::read_dir(corpus.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "no corpus for {name}");
        for input in inputs {
            let data = fs::read(&input).unwrap();
            let taken = std::panic::catch_unwind(|| target(&data));
            assert!(taken.is_ok(), "{name} does not take {}", input.display());
        }
    }
}
