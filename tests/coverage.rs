//! Checks that each requirement is proved by a test, or not offered for a reason.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use goondan_mutations::marks::Marks;

const REQUIREMENTS: &str = "docs/requirements.md";
const NOT_OFFERED: &str = "## Not offered";

#[test]
fn every_row_is_proved_or_not_offered() {
    let document = fs::read_to_string(REQUIREMENTS).unwrap();
    let (promises, not_offered) = document.split_once(NOT_OFFERED).unwrap();
    let (not_offered, _facts) = not_offered.split_once("\n### ").unwrap();
    let levels: BTreeMap<_, _> = rows(promises)
        .filter(|(_, rest)| ["MUST", "SHOULD", "MAY"].iter().any(|level| rest.starts_with(level)))
        .collect();
    let marks = Marks::read().unwrap();
    let is_covered = |id: &str| !marks.of(id).is_empty();
    let mut not_offered_ids = BTreeSet::new();
    for (id, reason) in rows(not_offered).skip_while(|(id, _)| *id != "---").skip(1) {
        assert!(not_offered_ids.insert(id), "{id} is not offered for two reasons");
        let level = levels.get(id).unwrap_or_else(|| panic!("{NOT_OFFERED}: there is no row {id}"));
        assert!(!level.starts_with("MUST"), "{id} must be offered");
        assert!(reason.trim_end_matches('|').trim().len() > 20, "{id} needs a reason why it is not offered");
        assert!(!is_covered(id), "{id} is covered by a test, so it is offered");
    }
    let unproved: Vec<_> = levels.keys().filter(|id| !is_covered(id) && !not_offered_ids.contains(*id)).collect();
    assert!(unproved.is_empty(), "no test covers these (any more), and {NOT_OFFERED} has no reason: {unproved:?}");
    println!("{} rows, {} not offered", levels.len(), not_offered_ids.len());
}

#[test]
fn every_fact_names_what_proves_or_decided_it() {
    let document = fs::read_to_string(REQUIREMENTS).unwrap();
    let known: BTreeSet<_> = rows(&document).map(|(id, _)| id).collect();
    let (_, facts) = document.split_once("\n## Facts\n").unwrap();
    let (facts, _) = facts.split_once(NOT_OFFERED).unwrap();
    let facts: Vec<_> = facts.split("\n- ").skip(1).map(|fact| fact.split("\n\n").next().unwrap()).collect();
    for fact in &facts {
        let sources = fact.strip_suffix(']').and_then(|fact| Some(fact.rsplit_once('[')?.1));
        let sources = sources.unwrap_or_else(|| panic!("no source in brackets: {fact}"));
        for id in sources.split(',').map(str::trim) {
            assert!(known.contains(id), "there is no row {id}: {fact}");
        }
    }
    println!("{} facts", facts.len());
}

/// Returns the rows of tables: the first column, and the rest.
fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
}
