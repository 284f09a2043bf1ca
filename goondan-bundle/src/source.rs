//! Reads a file as text: checks its size, its encoding, and whether it belongs to a bundle at all.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::diagnostic::{Diagnostic, Diagnostics, Place};

/// The limit of the size of a file, in bytes (F-REF).
const MAX_BYTES: u64 = 1024 * 1024;

/// Returns the text of a file, without a byte order mark.
pub(crate) fn read(file: &Path) -> Result<String, Diagnostics> {
    text(file, bytes(file)?)
}

/// As [`read`], for a file that may have nothing to do with bundles: `None` unless it seems to declare resources.
pub(crate) fn read_if_resources(file: &Path) -> Result<Option<String>, Diagnostics> {
    let bytes = bytes(file)?;
    if looks_like_resources(&bytes) { text(file, bytes).map(Some) } else { Ok(None) }
}

/// Whether the author probably meant to declare resources. It looks at bytes, because the file may not even be text.
fn looks_like_resources(bytes: &[u8]) -> bool {
    let needle = b"goondan.ai/";
    let kind = |line: &[u8]| {
        let start = line.iter().position(|byte| !b"{\"' \xef\xbb\xbf".contains(byte)).unwrap_or(line.len());
        // An indented `kind` is a field of something else.
        line[start..].starts_with(b"kind") && !line.starts_with(b" ")
    };
    bytes.windows(needle.len()).any(|window| window == needle) || bytes.split(|byte| *byte == b'\n').any(kind)
}

/// The bytes of a file, cut one byte above the limit.
fn bytes(file: &Path) -> Result<Vec<u8>, Diagnostics> {
    let metadata = fs::metadata(file).map_err(|error| Diagnostic::unreadable(file, &error))?;
    // Opening a pipe or a device could block without end.
    if !metadata.is_file() {
        return Err(Diagnostic::parse_error(file, None, "this is not a file", "name a YAML file").into());
    }
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| Diagnostic::unreadable(file, &error))?;
    Ok(bytes)
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
