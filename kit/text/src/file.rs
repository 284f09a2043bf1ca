//! New files for whole texts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The most characters of each part of a name.
const LONGEST: usize = 64;
/// The extensions of numbered files.
const EXTENSIONS: [&str; 3] = ["txt", "json", "bin"];

/// A file that does not exist yet, such as `bash-call_1-stdout-2.txt`: with the first number that no file has.
///
/// The numbered files of a directory have a quota together, so that the outputs of a conversation do not fill the disk.
/// Whatever has such a name counts: files that are no longer needed can be deleted.
#[derive(Clone, Debug)]
pub struct NumberedFile {
    directory: PathBuf,
    name: String,
    extension: &'static str,
    quota: u64,
}

impl NumberedFile {
    /// The bytes that the numbered files of a directory have together, unless [`within`](Self::within) says otherwise.
    // SIZE-01
    pub const QUOTA: u64 = 1_000_000_000;

    /// A file in `directory`, such as the working directory of the conversation. Its name has these parts, such as the
    /// extension and the id of the tool call, in which all but ASCII letters, digits, `-` and `_` is replaced. The
    /// `extension` is `txt`, `json` or `bin`; files with others do not count.
    pub fn new<'a>(
        directory: impl Into<PathBuf>,
        parts: impl IntoIterator<Item = &'a str>,
        extension: &'static str,
    ) -> Self {
        let legal = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
        let parts = parts.into_iter().map(|part| part.chars().map(legal).take(LONGEST).collect());
        let name = parts.collect::<Vec<String>>().join("-");
        Self { directory: directory.into(), name, extension, quota: Self::QUOTA }
    }

    /// Sets how many bytes the numbered files of the directory may have together, this one included, such as
    /// `ToolContext::max_output_bytes` of goondan says.
    #[must_use]
    pub fn within(self, quota: u64) -> Self {
        Self { quota, ..self }
    }

    /// Returns the bytes that the numbered files of a directory have together; none if it does not exist.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn used(directory: &Path) -> io::Result<u64> {
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            entries => entries?,
        };
        let mut used = 0;
        for entry in entries {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(is_numbered) {
                // A file that was deleted meanwhile has no bytes. Links are not followed.
                used += entry.metadata().ok().filter(|file| file.is_file()).map_or(0, |file| file.len());
            }
        }
        Ok(used)
    }

    /// Returns how many bytes more the numbered files of the directory may have.
    ///
    /// # Errors
    /// When they may have none more, or the directory cannot be read.
    pub(crate) fn room(&self) -> io::Result<u64> {
        let used = Self::used(&self.directory).map_err(|error| at(&self.directory, &error))?;
        self.quota.checked_sub(used).filter(|room| *room > 0).ok_or_else(|| self.full(used))
    }

    fn full(&self, used: u64) -> io::Error {
        let (directory, quota) = (self.directory.display(), self.quota);
        let message = format!(
            "the output files in {directory} have {used} bytes, and may have {quota} (`policy.maxOutputBytes`); delete \
             those that are no longer needed"
        );
        io::Error::new(ErrorKind::QuotaExceeded, message)
    }

    /// Creates the file, for its owner alone, and returns it with its absolute path.
    ///
    /// # Errors
    /// When it cannot be created, or the quota is used up. The error names the path.
    pub fn create(&self) -> io::Result<(PathBuf, File)> {
        self.room()?;
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
    /// When it cannot be written, or the quota has no room for it; then there is none. The error names the path.
    pub fn write(&self, content: &[u8]) -> io::Result<PathBuf> {
        if self.room()? < content.len() as u64 {
            return Err(self.full(Self::used(&self.directory)?));
        }
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

/// Returns whether a file has the name of a numbered one.
fn is_numbered(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        let number = stem.rsplit_once('-').map(|(_, number)| number);
        let is_number = number.is_some_and(|number| !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()));
        is_number && EXTENSIONS.contains(&extension)
    })
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
    fn the_files_of_a_directory_have_a_quota() {
        let directory = tempfile::tempdir().unwrap();
        let file = NumberedFile::new(directory.path(), ["a"], "txt").within(10);
        // What is not numbered does not count.
        fs::write(directory.path().join("notes.txt"), "long enough").unwrap();
        fs::create_dir(directory.path().join("b-1.txt")).unwrap();
        let first = file.write(b"123456").unwrap();
        let error = file.write(b"12345").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
        assert!(error.to_string().contains("have 6 bytes, and may have 10"), "{error}");
        file.write(b"1234").unwrap();
        assert_eq!(NumberedFile::used(directory.path()).unwrap(), 10);
        assert_eq!(file.create().unwrap_err().kind(), ErrorKind::QuotaExceeded);
        fs::remove_file(first).unwrap();
        assert_eq!(file.write(b"123456").unwrap(), directory.path().join("a-1.txt"));
    }

    #[test]
    fn an_error_names_the_path() {
        let error = NumberedFile::new("/no/such/directory", ["a"], "txt").write(b"text").unwrap_err();
        assert!(error.to_string().starts_with("/no/such/directory/a-1.txt: "), "{error}");
    }
}
