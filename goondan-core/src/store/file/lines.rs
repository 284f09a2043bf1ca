//! Lines of the files that hold one JSON record per line: splitting, appending, and telling torn lines from damaged
//! ones.

use std::path::Path;

use serde::Serialize;
use serde::de::IgnoredAny;

use super::atomic::io_error;
use super::layout::InstanceDir;
use super::path::StorePath;
use crate::error::{Error, ErrorCode, Result};

/// A line that is not blank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Counted from 1 and including blank lines, as in editors.
    pub(super) number: usize,
    /// Its offset in the file.
    pub(super) start: usize,
    /// Without the line end.
    pub(super) text: &'a [u8],
    /// Whether it ends with a line end.
    pub(super) ended: bool,
}

/// Returns the lines of a file that are not blank. A carriage return before a line end stays in the text: for JSON it
/// is whitespace.
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

/// Returns the offset of the last line if a crash tore it, that is, if it has no line end and is not JSON. A line
/// that lacks only its line end is whole: other implementations may leave it out.
pub(super) fn torn_tail(bytes: &[u8]) -> Option<usize> {
    let last = lines(bytes).last()?;
    (!last.ended && serde_json::from_slice::<IgnoredAny>(last.text).is_err()).then_some(last.start)
}

/// Whether bytes appended to `bytes` start a new line.
pub(super) fn ends_line(bytes: &[u8]) -> bool {
    bytes.last().is_none_or(|last| *last == b'\n')
}

/// Appends `record` to `bytes` as one line.
pub(super) fn push(bytes: &mut Vec<u8>, record: &impl Serialize, path: &Path) -> Result<()> {
    let end = bytes.len();
    if let Err(error) = serde_json::to_writer(&mut *bytes, record) {
        bytes.truncate(end);
        return Err(io_error("encode a record of", path, error.into()));
    }
    bytes.push(b'\n');
    Ok(())
}

/// Removes the lines with these numbers from the file at `path`, whose content is `bytes`, and keeps them aside.
/// Returns the remaining content.
pub(super) fn move_lines_aside(
    dir: &InstanceDir,
    path: &StorePath,
    bytes: &[u8],
    numbers: &[usize],
) -> Result<Vec<u8>> {
    let (mut removed, mut rest) = (Vec::new(), Vec::new());
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if numbers.contains(&(index + 1)) { &mut removed } else { &mut rest }.extend_from_slice(line);
    }
    dir.ops().keep_aside(path, &*removed)?;
    dir.ops().replace(path, &rest)?;
    path.parent().map_or(Ok(()), |parent| dir.ops().sync_dir(&parent))?;
    Ok(rest)
}

/// Returns the error for damage that opening cannot repair.
pub(super) fn damaged(path: &Path, line: usize, what: &str) -> Error {
    Error::new(ErrorCode::STORE_DAMAGED, format!("{}, line {line}: {what}", path.display())).suggest(
        "restore the file from a backup, or repair the line, or have it taken out by `goondan instance repair`",
    )
}
