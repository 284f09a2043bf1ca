//! Reads a file as text: checks its size, its encoding, and whether it belongs to a bundle at all.

use std::path::Path;

use goondan_core::{BundleFile, BundleFileError, BundleFiles};

use crate::diagnostic::{Diagnostic, Diagnostics, Place};

/// The limit of the size of a file, in bytes (F-REF).
const MAX_BYTES: u64 = 1024 * 1024;

/// Returns the text of a file, without a byte order mark.
pub(crate) fn read(file: &Path) -> Result<String, Diagnostics> {
    text(file, bytes(file)?)
}

/// As [`read`], of a file that was opened at `path`.
pub(crate) fn read_open(path: &Path, open: BundleFile) -> Result<String, Diagnostics> {
    text(path, beginning(path, Ok(open))?)
}

/// As [`read`], for a file that may have nothing to do with bundles: `None` unless it seems to declare resources.
pub(crate) fn read_if_resources(file: &Path) -> Result<Option<String>, Diagnostics> {
    let bytes = bytes(file)?;
    if BundleFiles::declares(&bytes) { text(file, bytes).map(Some) } else { Ok(None) }
}

/// The bytes of a file, cut one byte above the limit.
fn bytes(file: &Path) -> Result<Vec<u8>, Diagnostics> {
    // Links are followed wherever they lead, because volumes of containers consist of them.
    beginning(file, BundleFile::open(file))
}

fn beginning(file: &Path, opened: Result<BundleFile, BundleFileError>) -> Result<Vec<u8>, Diagnostics> {
    opened.and_then(|open| open.read_beginning(MAX_BYTES + 1)).map_err(|error| match error {
        BundleFileError::Io(error) => Diagnostic::unreadable(file, &error).into(),
        _ => Diagnostic::parse_error(file, None, "this is not a file", "name a YAML file").into(),
    })
}

fn text(file: &Path, bytes: Vec<u8>) -> Result<String, Diagnostics> {
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("the file is larger than {MAX_BYTES} bytes");
        let suggestion = "keep large data in files that the bundle names";
        return Err(Diagnostic::parse_error(file, None, message, suggestion).into());
    }
    let text = String::from_utf8(bytes).map_err(|error| not_text(file, error.as_bytes(), error.utf8_error()))?;
    if let Some(at) = text.find('\0') {
        return Err(binary(file, end_of(&text[..at])).into());
    }
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn not_text(file: &Path, bytes: &[u8], error: std::str::Utf8Error) -> Diagnostic {
    let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
    let place = end_of(&valid);
    if bytes.contains(&0) {
        return binary(file, place);
    }
    let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
    let message = format!("the file is not UTF-8 text: byte 0x{byte:02x} fits no character");
    Diagnostic::parse_error(file, place, message, "save the file as UTF-8")
}

fn binary(file: &Path, place: Place) -> Diagnostic {
    Diagnostic::parse_error(file, place, "the file is binary data, not YAML text", "name a YAML file in UTF-8")
}

/// The place directly after `text`.
fn end_of(text: &str) -> Place {
    let last_line = text.rsplit('\n').next().unwrap_or_default();
    Place { line: text.matches('\n').count() as u64 + 1, column: last_line.chars().count() as u64 + 1 }
}
