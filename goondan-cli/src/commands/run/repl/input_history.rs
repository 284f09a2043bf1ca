//! The input history: one file for each state root, readable by its owner only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

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
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
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
            fs::create_dir_all(parent)?;
        }
        // One write, so that lines of two processes are not interleaved.
        private(&self.path, OpenOptions::new().append(true))?.write_all(line(input).as_bytes())
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
        private(&new, OpenOptions::new().write(true).truncate(true))?.write_all(lines.as_bytes())?;
        fs::rename(new, &self.path)
    }
}

fn line(input: &str) -> String {
    serde_json::Value::from(input).to_string() + "\n"
}

/// Opens or creates a file that only its owner can read.
fn private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.create(true).mode(0o600).open(path)
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
    fn the_oldest_inputs_are_dropped() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("input-history.jsonl");
        let lines: String = (0..MAX_INPUTS + 5).map(|number| line(&number.to_string())).collect();
        fs::write(&path, lines).unwrap();
        let history = InputHistory::load(path).unwrap();
        assert_eq!((history.inputs().len(), history.inputs()[0].as_str()), (MAX_INPUTS, "5"));
    }
}
