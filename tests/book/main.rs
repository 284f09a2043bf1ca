//! Tests that the code and the errors in some pages of `docs` are real: every piece of Rust on them is also in a file
//! here or in an example, which is compiled and tested, and every error is in a `.stderr` file of `tests/ui`.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs, unreachable_pub, reason = "pages show what a reader writes")]

mod answers;
mod attributes;
mod call_limit;
mod careful;
mod drawing;
mod first;
mod helpful;
mod judged;
mod order;
mod provider;
mod recipes;
mod store;
mod titles;
mod watching;

#[path = "../../examples/own_model.rs"]
#[expect(dead_code, reason = "the example is a program")]
mod own_model;

use std::fs;
use std::path::{Path, PathBuf};

/// The pages.
const PAGES: [&str; 15] = [
    "docs/writing-extensions.md",
    "docs/attributes.md",
    "docs/recipes/agents.md",
    "docs/recipes/decisions.md",
    "docs/recipes/failures.md",
    "docs/recipes/limits.md",
    "docs/recipes/messages.md",
    "docs/recipes/prepared.md",
    "docs/recipes/teams.md",
    "docs/recipes/time.md",
    "docs/providers.md",
    "docs/stores.md",
    "docs/watching.md",
    "docs/answers.md",
    "docs/embedding.md",
];

/// Returns the code blocks of `page` that are marked with `language`.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let fences = text.split("```").skip(1).step_by(2);
    fences.filter_map(|block| Some(block.strip_prefix(language)?.strip_prefix('\n')?.to_owned())).collect()
}

/// Returns all files below `directory` with this extension.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found
}

/// Removes the indentation: a page shows a function without the block around it.
fn flush_left(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_model_of_the_example_answers() {
    assert_eq!(own_model::ask("one two three").await.unwrap(), "three two one");
}

#[test]
fn every_piece_of_rust_is_compiled() {
    let mut compiled = files(Path::new("tests/book"), "rs");
    // Examples, which have tests of their own.
    compiled.extend(["examples/own_model.rs", "examples/own_provider/src/main.rs"].map(PathBuf::from));
    compiled.extend(["examples/service/src/main.rs", "goondan-serve/tests/serve/embedded.rs"].map(PathBuf::from));
    let compiled: Vec<_> = compiled.iter().map(fs::read_to_string).collect();
    let compiled: Vec<_> = compiled.into_iter().map(|text| flush_left(&text.unwrap())).collect();
    for page in PAGES {
        let blocks = blocks(page, "rust");
        assert!(!blocks.is_empty(), "{page} shows no code");
        for block in blocks {
            assert!(compiled.iter().any(|text| text.contains(&flush_left(&block))), "{page} shows\n{block}");
        }
    }
}

#[test]
fn every_error_is_one_of_the_compiler() {
    let texts: Vec<_> = files(Path::new("tests/ui"), "stderr").iter().map(fs::read_to_string).collect();
    let texts: Vec<_> = texts.into_iter().map(|text| flush_left(&text.unwrap())).collect();
    for page in PAGES {
        let errors = blocks(page, "text").into_iter().filter(|block| block.starts_with("error"));
        for line in errors.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()) {
            assert!(texts.iter().any(|text| text.lines().any(|known| known == line.trim())), "{page} shows\n{line}");
        }
    }
}

/// VALUE-01, D-40: the pages have each program beside that of another framework.
#[test]
fn programs_are_about_as_short_as_those_of_other_frameworks() {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines = |block: &String| block.lines().filter(is_code).count();
    let is_program = |block: &String| !block.lines().all(|line| line.starts_with("use "));
    for (page, language) in [("docs/answers.md", "text"), ("docs/recipes/teams.md", "python")] {
        let (mut own, others) = (blocks(page, "rust"), blocks(page, language));
        own.retain(is_program);
        assert_eq!(own.len(), others.len());
        for (own, other) in own.iter().zip(&others) {
            assert!(2 * lines(own) <= 3 * lines(other), "{} lines beside {}:\n{own}", lines(own), lines(other));
        }
    }
}
