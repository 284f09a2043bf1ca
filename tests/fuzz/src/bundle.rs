//! Target `bundle`: any bytes as `goondan.yaml`.

use std::fs;

use goondan::Bundle;

/// Reads `data` as a bundle. If it is not one, every diagnostic has a message, a remedy, and a position in the file
/// if any.
pub fn bundle(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("goondan.yaml");
    fs::write(&file, data).expect("a file in it");
    match Bundle::check(&file) {
        Ok(bundle) => {
            for agent in bundle.agents() {
                let model = bundle.model_of(agent);
                assert!(bundle.models().any(|other| other.name == model.name), "a reference leads nowhere");
            }
        }
        Err(faults) => {
            let lines = 1 + data.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count() as u64;
            for fault in faults.iter() {
                assert!(!fault.message.is_empty() && !fault.suggestion.is_empty(), "a fault without words: {fault:?}");
                let there = fault.place.is_none_or(|at| (1..=lines).contains(&at.line) && at.column >= 1);
                assert!(there, "a fault beyond the {lines} lines of the file: {fault:?}");
            }
        }
    }
}
