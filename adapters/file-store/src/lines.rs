//! Lines of the files that hold one JSON record per line: splitting, appending, and telling torn lines from damaged
//! ones.

use std::path::Path;

use goondan_core::host::depth::{MAX_STORED, check_text};
use goondan_core::{Error, ErrorCode, Result};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _, IgnoredAny};

use super::atomic::io_error;
use super::layout::InstanceDir;
use super::path::StorePath;

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

/// Returns the last of [`lines`], without looking at those before it.
pub(super) fn last_line(bytes: &[u8]) -> Option<Line<'_>> {
    let start = bytes.trim_ascii_end().iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = lines(&bytes[start..]).next()?;
    let before = bytes[..start].iter().filter(|byte| **byte == b'\n').count();
    Some(Line { number: before + 1, start, ..line })
}

/// Parses a record, or the state of an extension.
///
/// # Errors
/// When it is no such JSON, or has more than [`MAX_STORED`] levels, so that nothing has to deal with deeper values.
// DEPTH-01
pub(super) fn parse<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    check_text(json, MAX_STORED).map_err(serde_json::Error::custom)?;
    serde_json::from_slice(json)
}

/// Returns the offset of the last line if a crash tore it.
pub(super) fn torn_tail(bytes: &[u8]) -> Option<usize> {
    let last = last_line(bytes)?;
    (!last.ended && is_torn(last.text)).then_some(last.start)
}

/// Whether `text`, a line without line end, was torn by a crash: it is the beginning of a record, or ends with bytes
/// that were never written. Anything else is damage. A line that lacks only its line end is whole: other
/// implementations may leave it out.
pub(super) fn is_torn(text: &[u8]) -> bool {
    let is_beginning = |text: &[u8]| serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| error.is_eof());
    let number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    // Of the end of a number, such as `1.`, the parser says that it is wrong, not that it is incomplete.
    let before_number = text.len() - text.iter().rev().take_while(|byte| number(byte)).count();
    text.ends_with(&[0]) || is_beginning(text) || is_beginning(&text[..before_number]) && !is_json(text)
}

fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
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

/// Like [`push`], for a record that is an object. Its last member is `sum`, the CRC-32 of everything before it in the
/// line.
pub(super) fn push_with_sum(bytes: &mut Vec<u8>, record: &impl Serialize, path: &Path) -> Result<()> {
    let start = bytes.len();
    push(bytes, record, path)?;
    bytes.truncate(bytes.len() - "}\n".len());
    let sum = format!("{SUM}{}}}\n", crc32fast::hash(&bytes[start..]));
    bytes.extend_from_slice(sum.as_bytes());
    Ok(())
}

/// The text before the checksum of a line.
const SUM: &str = ",\"sum\":";

/// Whether the checksum of a line is right. `None` if it has none.
pub(super) fn is_sum_right(text: &[u8]) -> Option<bool> {
    let before = text.trim_ascii_end().strip_suffix(b"}")?;
    let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (rest, sum) = before.split_at(before.len() - digits);
    let summed = rest.strip_suffix(SUM.as_bytes())?;
    Some(sum == crc32fast::hash(summed).to_string().as_bytes())
}

/// Removes the lines with these numbers from the file at `path`, whose content is `bytes`, and keeps them aside.
/// Returns the remaining content.
pub(super) fn move_lines_aside(
    dir: &InstanceDir,
    path: &StorePath,
    bytes: &[u8],
    numbers: &[usize],
) -> Result<Vec<u8>> {
    let (removed, rest) = split(bytes, numbers);
    dir.ops().keep_aside(path, &*removed)?;
    dir.ops().replace(path, &rest)?;
    path.parent().map_or(Ok(()), |parent| dir.ops().sync_dir(&parent))?;
    Ok(rest)
}

/// Returns the lines with these numbers, and the others.
pub(super) fn split(bytes: &[u8], numbers: &[usize]) -> (Vec<u8>, Vec<u8>) {
    let (mut chosen, mut rest) = (Vec::new(), Vec::new());
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if numbers.contains(&(index + 1)) { &mut chosen } else { &mut rest }.extend_from_slice(line);
    }
    (chosen, rest)
}

/// Returns the error for damage that opening cannot repair.
pub(super) fn damaged(path: &Path, line: usize, what: &str) -> Error {
    Error::new(ErrorCode::STORE_DAMAGED, format!("{}, line {line}: {what}", path.display())).suggest(
        "restore the file from a backup, or repair the line, or have it taken out by `goondan instance repair`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_beginning_of_a_record_is_torn_and_nothing_else_is() {
        let record = br#"{"a":[-1.5e+3,true,null,"\u00e9\n"],"b":{"c":"xyz"},"d":7}"#;
        for cut in 1..record.len() {
            assert!(is_torn(&record[..cut]), "{}", String::from_utf8_lossy(&record[..cut]));
        }
        assert!(!is_torn(record) && !is_torn(b"7") && is_torn(b"{\"a\":1}\0"));
        // The line end is the byte that changed.
        assert!((0..8).all(|bit| !is_torn(&[record.as_slice(), &[b'\n' ^ (1 << bit)]].concat())));
    }

    #[test]
    fn the_last_line_is_the_last_of_all_lines() {
        for text in ["", "\n", " \n\n", "a", "a\n", "a\nb", "a\n\nb \r\n", "a\nb\n \n\n", "a\nb\n  ", "\n\n b"] {
            let of_all = lines(text.as_bytes()).last();
            assert_eq!(format!("{:?}", last_line(text.as_bytes())), format!("{of_all:?}"), "{text:?}");
        }
    }

    #[test]
    fn every_changed_bit_of_a_line_with_a_sum_is_found() {
        let mut line = Vec::new();
        push_with_sum(&mut line, &serde_json::json!({ "a": [1, "x"] }), Path::new("events.jsonl")).unwrap();
        assert_eq!(is_sum_right(&line), Some(true));
        assert_eq!(is_sum_right(br#"{"state":{"a":1,"sum":5}}"#), None);
        for bit in 0..8 * (line.len() - 1) {
            let mut flipped = line.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(is_sum_right(&flipped), Some(true), "{}", String::from_utf8_lossy(&flipped));
        }
    }
}
