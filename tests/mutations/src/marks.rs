//! The marks of tests: which of them prove which rows of the requirements.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;

/// The marks `#[covers("…")]`: the names of test functions by the id of the row, each with its file.
#[derive(Debug, Default)]
pub struct Marks(BTreeMap<String, Vec<(PathBuf, String)>>);

impl Marks {
    /// Reads the marks of all Rust files below the current directory.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read() -> Result<Self> {
        let mut marks = Self::default();
        marks.collect(Path::new("."))?;
        Ok(marks)
    }

    /// Returns the tests that are marked as the proof of the row `id`.
    pub fn of(&self, id: &str) -> &[(PathBuf, String)] {
        self.0.get(id).map(Vec::as_slice).unwrap_or_default()
    }

    fn collect(&mut self, directory: &Path) -> Result<()> {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let skipped = ["target", ".git", "node_modules"].iter().any(|name| path.ends_with(name));
            if path.is_dir() && !skipped {
                self.collect(&path)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                self.collect_from(&path, &fs::read_to_string(&path)?);
            }
        }
        Ok(())
    }

    fn collect_from(&mut self, path: &Path, text: &str) {
        const MARK: &str = "#[covers(";
        // An attribute starts its line.
        let starts_line = |at: usize| text[..at].trim_end_matches(' ').ends_with('\n');
        for (at, _) in text.match_indices(MARK).filter(|(at, _)| starts_line(*at)) {
            let rest = &text[at + MARK.len()..];
            let (Some((ids, _)), Some((_, function))) = (rest.split_once(")]"), rest.split_once("fn ")) else {
                continue;
            };
            let name = function.split(['(', '<']).next().unwrap_or_default();
            for id in ids.split('"').skip(1).step_by(2) {
                self.0.entry(id.to_owned()).or_default().push((path.to_owned(), name.to_owned()));
            }
        }
    }
}
