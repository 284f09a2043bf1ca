//! Reads a part of a text file.

use std::io::{BufRead, BufReader, Read as _, Seek, SeekFrom};
use std::path::PathBuf;

use cap_std::fs::OpenOptions;
use goondan::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::place::Place;

/// The file is no text.
const NOT_TEXT: &str = "E_FILE_NOT_TEXT";

/// The input of `file-system__read`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Read {
    /// The path of the file. A relative one starts at the usual directory.
    pub(crate) path: String,
    /// The byte to start at. Defaults to the beginning of the file.
    #[serde(default)]
    offset: u64,
    /// The line to start at, counted from 1, or from the line at `offset` if that is given.
    #[serde(default = "first_line")]
    #[schemars(range(min = 1))]
    start_line: u64,
    /// How many lines to read. Defaults to all.
    lines: Option<u64>,
    /// How many bytes to read at most. Defaults to 100000.
    #[serde(default = "max_bytes")]
    #[schemars(range(min = 4, max = 1_000_000))]
    max_bytes: u64,
}

fn first_line() -> u64 {
    1
}

// F-BASE
fn max_bytes() -> u64 {
    100_000
}

/// The output of `file-system__read`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Content {
    path: PathBuf,
    /// Of the whole file.
    size: u64,
    /// Where `content` begins.
    offset: u64,
    /// Whether there is more after `content`.
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    content: String,
}

/// Reads a part of a text file.
///
/// # Errors
/// `E_FILE_NOT_TEXT` when it is not UTF-8.
pub(crate) fn read(place: &Place, input: &Read) -> Result<Content> {
    let failed = |error| place.failed(error);
    let file = place.open(OpenOptions::new().read(true))?;
    let size = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::new(file);
    let mut offset = reader.seek(SeekFrom::Start(input.offset)).map_err(failed)?;
    for _ in 1..input.start_line {
        match reader.skip_until(b'\n').map_err(failed)? {
            0 => break,
            skipped => offset += skipped as u64,
        }
    }
    let mut content = Vec::new();
    let mut limited = (&mut reader).take(input.max_bytes);
    match input.lines {
        None => drop(limited.read_to_end(&mut content).map_err(failed)?),
        Some(lines) => {
            for _ in 0..lines {
                if limited.read_until(b'\n', &mut content).map_err(failed)? == 0 {
                    break;
                }
            }
        }
    }
    let truncated = !reader.fill_buf().map_err(failed)?.is_empty();
    let content = match String::from_utf8(content) {
        Ok(content) => content,
        // The limit cut a character.
        Err(error) if truncated && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            let mut content = error.into_bytes();
            content.truncate(end);
            String::from_utf8(content)?
        }
        Err(error) => {
            let at = offset + error.utf8_error().valid_up_to() as u64;
            let message = format!("{} is no text: byte {at} is not UTF-8", place.shown().display());
            return Err(Error::new(NOT_TEXT, message).suggest("use another tool for this file"));
        }
    };
    let next_offset = offset + content.len() as u64;
    let next_offset = truncated.then_some(next_offset);
    Ok(Content { path: place.shown(), size, offset, truncated, next_offset, content })
}
