//! Owns the way from a path to text: which file is meant, how big it may be, and that it is text.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use goondan_core::{Error, ErrorCode, Result};

use crate::fault::{Fault, Place};

/// The most bytes that a file may have (F-REF).
const MAX_BYTES: u64 = 1024 * 1024;

/// The names under which a directory holds its bundle, the first one found counts.
const FILE_NAMES: [&str; 2] = ["goondan.yaml", "goondan.yml"];

/// The file that `path` means, and the directory that the paths in it are relative to (LOAD-04).
pub(crate) fn locate(path: &Path) -> Result<(PathBuf, PathBuf)> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
    if !metadata.is_dir() {
        let root = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        return Ok((path.to_owned(), root.unwrap_or(Path::new(".")).to_owned()));
    }
    match FILE_NAMES.iter().map(|name| path.join(name)).find(|file| file.exists()) {
        Some(file) => Ok((file, path.to_owned())),
        None => Err(Error::new(
            ErrorCode::CONFIG_PARSE,
            format!("{}: the directory holds no `goondan.yaml` and no `goondan.yml`", path.display()),
        )
        .suggest("create `goondan.yaml` there, or name the YAML file itself")),
    }
}

/// The text of a file, without a byte order mark.
pub(crate) fn read(file: &Path) -> Result<String> {
    let metadata = fs::metadata(file).map_err(|error| unreadable(file, error))?;
    // Opening a pipe or a device could wait for ever.
    if !metadata.is_file() {
        return Err(refuse(file, "this is not a file", "name a YAML file"));
    }
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(file, error))?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("the file is larger than {MAX_BYTES} bytes");
        return Err(refuse(file, message, "keep large data in files that the bundle names"));
    }
    let text = String::from_utf8(bytes).map_err(|error| not_text(file, error.as_bytes(), error.utf8_error()))?;
    if let Some(at) = text.find('\0') {
        return Err(binary(file, place_of(&text[..at])));
    }
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    let (message, remedy) = match error.kind() {
        std::io::ErrorKind::NotFound => ("there is no such file or directory", "check the path"),
        std::io::ErrorKind::PermissionDenied => ("the file may not be read", "check its permissions"),
        _ => ("the file cannot be read", "check the file and the disk"),
    };
    refuse(path, message, remedy).caused_by(error)
}

fn refuse(path: &Path, message: impl std::fmt::Display, remedy: &'static str) -> Error {
    Error::new(ErrorCode::CONFIG_PARSE, format!("{}: {message}", path.display())).suggest(remedy)
}

fn not_text(file: &Path, bytes: &[u8], error: std::str::Utf8Error) -> Error {
    let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
    let place = place_of(&valid);
    if bytes.contains(&0) {
        return binary(file, place);
    }
    let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
    let message = format!("the file is not UTF-8 text: byte 0x{byte:02x} fits no character");
    Fault::new(ErrorCode::CONFIG_PARSE, place, message, "save the file as UTF-8").into_error(file)
}

fn binary(file: &Path, place: Place) -> Error {
    let message = "the file is binary data, not YAML text";
    Fault::new(ErrorCode::CONFIG_PARSE, place, message, "name a YAML file in UTF-8").into_error(file)
}

/// The place just after `text`.
fn place_of(text: &str) -> Place {
    let last_line = text.rsplit('\n').next().unwrap_or_default();
    Place { line: text.matches('\n').count() as u64 + 1, column: last_line.chars().count() as u64 + 1 }
}
