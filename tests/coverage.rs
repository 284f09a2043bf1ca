//! Compares the requirements that no test proves with the list of those that are known to be unproved.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const UNCOVERED: &str = "tests/conformance/uncovered.txt";

#[test]
fn every_must_row_is_proved_or_known_not_to_be() {
    let required = must_rows(&fs::read_to_string("docs/requirements.md").unwrap());
    let mut covered = BTreeSet::new();
    let roots = [
        "tests",
        "plugins",
        "examples",
        "goondan-core",
        "goondan-abi",
        "goondan-bundle",
        "goondan-cli",
        "goondan-macros",
        "adapters",
    ];
    for root in roots {
        collect_marks(Path::new(root), &mut covered);
    }
    let uncovered: BTreeSet<_> = required.difference(&covered).cloned().collect();

    let list = fs::read_to_string(UNCOVERED).unwrap();
    let known: BTreeSet<_> =
        list.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(str::to_owned).collect();
    println!("{} of {} MUST rows are covered", required.len() - uncovered.len(), required.len());

    let lost: Vec<_> = uncovered.difference(&known).collect();
    assert!(lost.is_empty(), "no test covers these rows any more, and the list may only get shorter: {lost:?}");
    let proved: Vec<_> = known.difference(&uncovered).collect();
    assert!(proved.is_empty(), "these rows are covered now; take them out of {UNCOVERED}: {proved:?}");
}

/// The ids of rows whose level starts with MUST.
fn must_rows(document: &str) -> BTreeSet<String> {
    let rows = document.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "));
    rows.filter(|(_, rest)| rest.starts_with("MUST")).map(|(id, _)| id.to_owned()).collect()
}

/// Adds the ids of all `#[covers(…)]` attributes in the Rust files below `directory` to `covered`.
fn collect_marks(directory: &Path, covered: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            collect_marks(&path, covered);
        } else if path.extension().is_some_and(|extension| extension == "rs") && path != Path::new(file!()) {
            let text = fs::read_to_string(&path).unwrap();
            // An attribute starts its line; what is in a comment does not count.
            for (before, ids) in text.match_indices("#[covers(").map(|(at, _)| (&text[..at], &text[at..])) {
                if before.lines().last().is_none_or(|line| line.trim().is_empty()) || before.ends_with('\n') {
                    let ids = ids.split(")]").next().unwrap_or_default();
                    covered.extend(ids.split('"').skip(1).step_by(2).map(str::to_owned));
                }
            }
        }
    }
}
