//! New files for whole texts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The most characters of each part of a name.
const LONGEST: usize = 64;

/// A file that does not exist yet, such as `bash-call_1-stdout-2.txt`: with the first number that no file has.
#[derive(Clone, Debug)]
pub struct NumberedFile {
    directory: PathBuf,
    name: String,
    extension: &'static str,
}

impl NumberedFile {
    /// A file in `directory`, such as the working directory of the conversation. Its name has these parts, such as the
    /// extension and the id of the tool call, in which all but ASCII letters, digits, `-` and `_` is replaced.
    pub fn new<'a>(
        directory: impl Into<PathBuf>,
        parts: impl IntoIterator<Item = &'a str>,
        extension: &'static str,
    ) -> Self {
        let legal = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
        let parts = parts.into_iter().map(|part| part.chars().map(legal).take(LONGEST).collect());
        let name = parts.collect::<Vec<String>>().join("-");
        Self { directory: directory.into(), name, extension }
    }

    /// Creates the file, for its owner alone, and returns it with its absolute path.
    ///
    /// # Errors
    /// When it cannot be created. The error names the path.
    pub fn create(&self) -> io::Result<(PathBuf, File)> {
        let directory = std::path::absolute(&self.directory)?;
        let mut number = 1_u64;
        loop {
            let path = directory.join(format!("{}-{number}.{}", self.name, self.extension));
            match create_new(&path) {
                Ok(file) => return Ok((path, file)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(at(&path, &error)),
            }
        }
    }

    /// Creates the file with this content, and returns its absolute path. The content is on the disk then, because the
    /// result that names the file will be there too.
    ///
    /// # Errors
    /// When it cannot be written; then there is none. The error names the path.
    pub fn write(&self, content: &[u8]) -> io::Result<PathBuf> {
        let (path, mut file) = self.create()?;
        match file.write_all(content).and_then(|()| file.sync_all()) {
            Ok(()) => Ok(path),
            Err(error) => {
                // What was written of it may be of no use, and takes space that others lack.
                let _ = fs::remove_file(&path);
                Err(at(&path, &error))
            }
        }
    }
}

/// Creates a file. A link of this name, which a tool may have made, is not followed: the name is taken.
fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn each_file_is_a_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = NumberedFile::new(directory.path(), ["bash", "call_1", "a/b c"], "txt");
        let paths = [&b"one"[..], b"two"].map(|content| file.write(content).unwrap());
        assert_eq!(paths, [1, 2].map(|number| directory.path().join(format!("bash-call_1-a-b-c-{number}.txt"))));
        assert_eq!(paths.map(|path| fs::read(path).unwrap()), [b"one", b"two"]);
    }

    #[cfg(unix)]
    #[test]
    fn no_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(directory.path().join("target"), directory.path().join("a-1.txt")).unwrap();
        let path = NumberedFile::new(directory.path(), ["a"], "txt").write(b"text").unwrap();
        assert_eq!(path, directory.path().join("a-2.txt"));
        assert!(!directory.path().join("target").exists());
    }

    #[test]
    fn an_error_names_the_path() {
        let error = NumberedFile::new("/no/such/directory", ["a"], "txt").write(b"text").unwrap_err();
        assert!(error.to_string().starts_with("/no/such/directory/a-1.txt: "), "{error}");
    }
}
