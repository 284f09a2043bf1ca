//! Writes a text to a new file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use goondan::Result;

/// Writes a file that does not exist yet, for its owner alone, and returns its absolute path. Its name has the parts of
/// `name`, with other characters than ASCII letters, digits, `-` and `_` replaced.
///
/// # Errors
/// When the file cannot be written; then there is none.
pub(crate) fn write_new(directory: &Path, name: [&str; 2], extension: &str, text: &str) -> Result<PathBuf> {
    let [tool, call] = name.map(|part| {
        let legal = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
        part.chars().map(legal).take(64).collect::<String>()
    });
    let directory = std::path::absolute(directory)?;
    let mut number = 1_u64;
    loop {
        let path = directory.join(format!("output-{tool}-{call}-{number}.{extension}"));
        match create(&path) {
            Ok(file) => {
                return write(file, text).map(|()| path.clone()).map_err(|error| {
                    // What was written of it may be of no use, and takes space that others lack.
                    let _ = fs::remove_file(&path);
                    error.into()
                });
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Creates a file. A link of this name, which a tool may have made, is not followed: the name is taken.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes the text to the disk, because the result that names the file will be there too.
fn write(mut file: File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
