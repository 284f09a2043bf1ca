//! Checks every input in `fuzz/corpus` with its target.

use std::fs;
use std::path::Path;

use goondan_fuzz_targets::TARGETS;

#[test]
fn every_input_in_the_corpus_passes_its_target() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in TARGETS {
        let mut inputs: Vec<_> = fs::read_dir(corpus.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "no corpus for {name}");
        for input in inputs {
            let data = fs::read(&input).unwrap();
            let passed = std::panic::catch_unwind(|| target(&data));
            assert!(passed.is_ok(), "{name} fails on {}", input.display());
        }
    }
}
