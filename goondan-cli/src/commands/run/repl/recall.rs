//! Owns what was typed earlier: a file for each state root, which only its owner can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How many inputs are kept.
pub(crate) const KEPT: usize = 1000;

/// What was typed earlier, oldest first, each text once. In the file, an input is a line: a JSON string.
pub(crate) struct Recall {
    path: PathBuf,
    inputs: Vec<String>,
}

impl Recall {
    /// Reads what `path` has. Lines that are none of ours are left out, and so are older ones that say the same.
    pub(crate) fn load(path: PathBuf) -> io::Result<Self> {
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let mut recall = Self { path, inputs: Vec::new() };
        let mut lines = 0;
        for line in text.lines() {
            lines += 1;
            if let Ok(input) = serde_json::from_str(line) {
                recall.remember(input);
            }
        }
        if lines > recall.inputs.len() {
            recall.rewrite()?;
        }
        Ok(recall)
    }

    pub(crate) fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Adds an input, in memory and in the file.
    pub(crate) fn add(&mut self, input: &str) -> io::Result<()> {
        self.remember(input.to_owned());
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent)?;
        }
        // One write, so that lines of two processes do not mix.
        private(&self.path, OpenOptions::new().append(true))?.write_all(line(input).as_bytes())
    }

    fn remember(&mut self, input: String) {
        self.inputs.retain(|older| *older != input);
        self.inputs.push(input);
        let excess = self.inputs.len().saturating_sub(KEPT);
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

fn private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_input_is_kept_once_for_its_owner_alone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("state/input-history.jsonl");
        let mut recall = Recall::load(path.clone()).unwrap();
        for input in ["one", "two\nlines", "three", "one"] {
            recall.add(input).unwrap();
        }
        assert_eq!(recall.inputs(), ["two\nlines", "three", "one"]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, fs::read_to_string(&path).unwrap() + "torn\n\"thr").unwrap();
        assert_eq!(Recall::load(path.clone()).unwrap().inputs(), ["two\nlines", "three", "one"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "\"two\\nlines\"\n\"three\"\n\"one\"\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("input-history.jsonl");
        let lines: String = (0..KEPT + 5).map(|number| line(&number.to_string())).collect();
        fs::write(&path, lines).unwrap();
        let recall = Recall::load(path).unwrap();
        assert_eq!((recall.inputs().len(), recall.inputs()[0].as_str()), (KEPT, "5"));
    }
}
