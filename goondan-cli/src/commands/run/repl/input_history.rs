//! The input history: one file for each state root, readable by its owner only.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use crate::private_file;

/// The number of inputs in the history.
pub(crate) const MAX_INPUTS: usize = 1000;

/// Earlier inputs, oldest first, without duplicates. In the file, each input is a line with a JSON string.
pub(crate) struct InputHistory {
    path: PathBuf,
    inputs: Vec<String>,
}

impl InputHistory {
    /// Reads the history from `path`. Invalid lines and older duplicates are dropped; the file is rewritten if there
    /// were any.
    pub(crate) fn load(path: PathBuf) -> io::Result<Self> {
        let mut text = String::new();
        match private_file::open(&path, OpenOptions::new().read(true)) {
            Ok(mut file) => _ = file.read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut history = Self { path, inputs: Vec::new() };
        let mut lines = 0;
        for line in text.lines() {
            lines += 1;
            if let Ok(input) = serde_json::from_str(line) {
                history.push(input);
            }
        }
        if lines > history.inputs.len() {
            history.rewrite()?;
        }
        Ok(history)
    }

    pub(crate) fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Adds an input in memory and to the file.
    pub(crate) fn add(&mut self, input: &str) -> io::Result<()> {
        self.push(input.to_owned());
        if let Some(parent) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        // One write, so that lines of two processes are not interleaved.
        private_file::open(&self.path, OpenOptions::new().append(true).create(true))?.write_all(line(input).as_bytes())
    }

    fn push(&mut self, input: String) {
        self.inputs.retain(|older| *older != input);
        self.inputs.push(input);
        let excess = self.inputs.len().saturating_sub(MAX_INPUTS);
        self.inputs.drain(..excess);
    }

    fn rewrite(&self) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let lines: String = self.inputs.iter().map(|input| line(input)).collect();
        private_file::create(&new)?.write_all(lines.as_bytes())?;
        fs::rename(new, &self.path)
    }
}

fn line(input: &str) -> String {
    serde_json::Value::from(input).to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_input_is_stored_once_and_readable_by_its_owner_only() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("state/input-history.jsonl");
        let mut history = InputHistory::load(path.clone()).unwrap();
        for input in ["one", "two\nlines", "three", "one"] {
            history.add(input).unwrap();
        }
        assert_eq!(history.inputs(), ["two\nlines", "three", "one"]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, fs::read_to_string(&path).unwrap() + "torn\n\"thr").unwrap();
        assert_eq!(InputHistory::load(path.clone()).unwrap().inputs(), ["two\nlines", "three", "one"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "\"two\\nlines\"\n\"three\"\n\"one\"\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_link_is_not_followed() {
        let (root, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (path, target) = (root.path().join("input-history.jsonl"), outside.path().join("target"));
        fs::write(&target, "\"one\"\n\"one\"\n").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(InputHistory::load(path.clone()).is_err());
        let mut history = InputHistory { path: path.clone(), inputs: Vec::new() };
        assert!(history.add("two").is_err());
        // The file that is written and then renamed is no link either.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "\"one\"\n\"one\"\n").unwrap();
        std::os::unix::fs::symlink(&target, path.with_extension("new")).unwrap();
        assert_eq!(InputHistory::load(path.clone()).unwrap().inputs(), ["one"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "\"one\"\n");
        assert_eq!(fs::read_to_string(&target).unwrap(), "\"one\"\n\"one\"\n");
    }

    #[test]
    fn the_oldest_inputs_are_dropped() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("input-history.jsonl");
        let lines: String = (0..MAX_INPUTS + 5).map(|number| line(&number.to_string())).collect();
        fs::write(&path, lines).unwrap();
        let history = InputHistory::load(path).unwrap();
        assert_eq!((history.inputs().len(), history.inputs()[0].as_str()), (MAX_INPUTS, "5"));
    }
}
