//! Owns the lines of the files that hold one record a line: taking them apart, and telling a torn one from a damaged one.

use std::path::Path;

use serde::Serialize;
use serde::de::IgnoredAny;

use super::atomic::io_error;
use super::place::Place;
use crate::error::{Error, ErrorCode, Result};

/// One line that is not blank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Counted from 1, blank ones included, as editors do.
    pub(super) number: usize,
    /// Where it starts in the file.
    pub(super) start: usize,
    /// Without the line end.
    pub(super) text: &'a [u8],
    /// Whether it has its line end.
    pub(super) ended: bool,
}

/// The lines of a file that are not blank. A carriage return before a line end is left in the text: to JSON it is a blank.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    let all = bytes.split_inclusive(|byte| *byte == b'\n').enumerate().map(move |(index, text)| {
        let line_start = start;
        start += text.len();
        let ended = text.ends_with(b"\n");
        Line { number: index + 1, start: line_start, text: text.strip_suffix(b"\n").unwrap_or(text), ended }
    });
    all.filter(|line| !line.text.trim_ascii().is_empty())
}

/// Where the last line starts, if a crash tore it: it lacks its line end and is no JSON. A line that lacks only its end is
/// whole: other writers end their files so.
pub(super) fn torn_tail(bytes: &[u8]) -> Option<usize> {
    let last = lines(bytes).last()?;
    (!last.ended && serde_json::from_slice::<IgnoredAny>(last.text).is_err()).then_some(last.start)
}

/// Whether what is appended to `bytes` starts a line of its own.
pub(super) fn ends_line(bytes: &[u8]) -> bool {
    bytes.last().is_none_or(|last| *last == b'\n')
}

/// Adds `record` to `bytes` as one line.
pub(super) fn push(bytes: &mut Vec<u8>, record: &impl Serialize, path: &Path) -> Result<()> {
    let end = bytes.len();
    if let Err(error) = serde_json::to_writer(&mut *bytes, record) {
        bytes.truncate(end);
        return Err(io_error("encode a record of", path, error.into()));
    }
    bytes.push(b'\n');
    Ok(())
}

/// Takes the lines with these numbers out of the file at `path`, whose content is `bytes`, and keeps them aside. Gives what
/// is left.
pub(super) fn take_out(place: &Place, path: &Path, bytes: &[u8], numbers: &[usize]) -> Result<Vec<u8>> {
    let (mut out, mut rest) = (Vec::new(), Vec::new());
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if numbers.contains(&(index + 1)) { &mut out } else { &mut rest }.extend_from_slice(line);
    }
    place.files().keep_aside(path, &*out)?;
    place.files().replace(path, &rest)?;
    path.parent().map_or(Ok(()), |dir| place.files().sync_dir(dir))?;
    Ok(rest)
}

/// Damage that opening cannot repair.
pub(super) fn damaged(path: &Path, line: usize, what: &str) -> Error {
    Error::new(ErrorCode::STORE_DAMAGED, format!("{}, line {line}: {what}", path.display())).suggest(
        "restore the file from a backup, or repair the line, or have it taken out by `goondan instance repair`",
    )
}
