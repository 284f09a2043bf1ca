//! Owns the way from a file to text: how big it may be, and that it is text.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use goondan_core::ErrorCode;

use crate::diagnostic::{Diagnostic, Diagnostics, Place};

/// The most bytes that a file may have (F-REF).
const MAX_BYTES: u64 = 1024 * 1024;

/// The text of a file, without a byte order mark.
pub(crate) fn read(file: &Path) -> Result<String, Diagnostics> {
    text(file, bytes(file)?)
}

/// The text of a file that may be none of ours: `None` unless it looks like one that declares resources.
pub(crate) fn read_if_ours(file: &Path) -> Result<Option<String>, Diagnostics> {
    let bytes = bytes(file)?;
    if is_ours(&bytes) { text(file, bytes).map(Some) } else { Ok(None) }
}

/// Whether somebody meant to declare resources here, as far as a look at bytes can tell that may not be YAML at all.
fn is_ours(bytes: &[u8]) -> bool {
    let needle = b"goondan.ai/";
    let kind = |line: &[u8]| {
        let start = line.iter().position(|byte| !b"{\"' \xef\xbb\xbf".contains(byte)).unwrap_or(line.len());
        // A field `kind` of something else is indented.
        line[start..].starts_with(b"kind") && !line.starts_with(b" ")
    };
    bytes.windows(needle.len()).any(|window| window == needle) || bytes.split(|byte| *byte == b'\n').any(kind)
}

/// The first bytes of a file: one more than it may have, if it has too many.
fn bytes(file: &Path) -> Result<Vec<u8>, Diagnostics> {
    let metadata = fs::metadata(file).map_err(|error| Diagnostic::unreadable(file, &error))?;
    // Opening a pipe or a device could wait for ever.
    if !metadata.is_file() {
        return Err(Diagnostic::parse_error(file, "this is not a file", "name a YAML file").into());
    }
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|open| open.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| Diagnostic::unreadable(file, &error))?;
    Ok(bytes)
}

fn text(file: &Path, bytes: Vec<u8>) -> Result<String, Diagnostics> {
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("the file is larger than {MAX_BYTES} bytes");
        return Err(Diagnostic::parse_error(file, message, "keep large data in files that the bundle names").into());
    }
    let text = String::from_utf8(bytes).map_err(|error| not_text(file, error.as_bytes(), error.utf8_error()))?;
    if let Some(at) = text.find('\0') {
        return Err(binary(file, place_of(&text[..at])).into());
    }
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn not_text(file: &Path, bytes: &[u8], error: std::str::Utf8Error) -> Diagnostic {
    let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
    let place = place_of(&valid);
    if bytes.contains(&0) {
        return binary(file, place);
    }
    let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
    let message = format!("the file is not UTF-8 text: byte 0x{byte:02x} fits no character");
    Diagnostic::error(ErrorCode::CONFIG_PARSE, file, place, message, "save the file as UTF-8")
}

fn binary(file: &Path, place: Place) -> Diagnostic {
    let message = "the file is binary data, not YAML text";
    Diagnostic::error(ErrorCode::CONFIG_PARSE, file, place, message, "name a YAML file in UTF-8")
}

/// The place just after `text`.
fn place_of(text: &str) -> Place {
    let last_line = text.rsplit('\n').next().unwrap_or_default();
    Place { line: text.matches('\n').count() as u64 + 1, column: last_line.chars().count() as u64 + 1 }
}
