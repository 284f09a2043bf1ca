//! A text that is written piece by piece.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{LeftOut, NumberedFile, Place};

/// The most bytes that the file has. What follows is counted and dropped.
const FILE_LIMIT: usize = 100_000_000;
/// The room for the file is looked up again whenever so many bytes are written: others write too.
const STEP: usize = 4_000_000;

/// A text that is written piece by piece. A part of it is in memory: half of a limit from its beginning, and half from
/// its end. A text that is longer is also in a file, up to 100 MB, and as far as the quota of such files has room.
/// Writing never fails.
///
/// ```
/// use std::io::Write;
///
/// use goondan_text::{LongText, NumberedFile};
///
/// let directory = tempfile::tempdir()?;
/// let mut text = LongText::new(20, NumberedFile::new(directory.path(), ["numbers"], "txt"));
/// for number in 1..=100 {
///     writeln!(text, "{number}")?;
/// }
/// assert!(text.file().is_some());
/// assert!(text.to_string().starts_with("1\n2\n3\n4\n5\n[272 of 292 characters are left out here, lines 6 to 97."));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct LongText {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Whether the last line that is left out is not in the tail too.
    gap_ends_line: bool,
    /// All that was written.
    all: Count,
    /// Why there can be none, or its name.
    name: Result<NumberedFile, String>,
    /// `None` until it is needed.
    file: Option<io::Result<(PathBuf, File)>>,
    /// The most bytes of the file, and whether that is to be looked up again.
    room: usize,
    is_last: bool,
}

impl LongText {
    /// An empty text, with up to `limit` bytes in memory. A longer one is also in a new file.
    pub fn new(limit: usize, file: NumberedFile) -> Self {
        Self::named(limit, Ok(file))
    }

    /// An empty text, with up to `limit` bytes in memory. The rest of a longer one is lost, for this `reason`.
    pub fn without_file(limit: usize, reason: impl Into<String>) -> Self {
        Self::named(limit, Err(reason.into()))
    }

    fn named(limit: usize, name: Result<NumberedFile, String>) -> Self {
        let (head, tail, gap_ends_line, all) = Default::default();
        Self { half: limit / 2, head, tail, gap_ends_line, all, name, file: None, room: 0, is_last: false }
    }

    /// Adds a piece.
    pub fn add(&mut self, piece: &[u8]) {
        let (head, rest) = piece.split_at(piece.len().min(self.half - self.head.len()));
        if self.file.is_none() && self.tail.len() + rest.len() > self.half {
            self.file = Some(self.create_file());
        }
        self.make_room(piece.len());
        if let Some(Ok((path, file))) = &mut self.file {
            let room = self.room.saturating_sub(self.all.bytes).min(piece.len());
            if let Err(error) = file.write_all(&piece[..room]) {
                self.file = Some(Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))));
            }
        }
        self.all.add(Count::of(piece));
        self.head.extend(head);
        self.keep_end(rest);
    }

    /// Looks up how many bytes the file may have, if `more` do not fit into what is known of it.
    fn make_room(&mut self, more: usize) {
        let written = self.all.bytes;
        if self.is_last || written + more <= self.room || !matches!(self.file, Some(Ok(_))) {
            return;
        }
        let room = self.name.as_ref().ok().and_then(|name| name.room().ok()).unwrap_or_default();
        let step = usize::try_from(room).unwrap_or(usize::MAX).min(STEP.max(more));
        self.room = written.saturating_add(step).min(FILE_LIMIT);
        self.is_last = self.room < written + more;
    }

    /// Adds to the end, and drops what is then too far from it.
    fn keep_end(&mut self, rest: &[u8]) {
        let (dropped, kept) = rest.split_at(rest.len().saturating_sub(self.half));
        let drained = self.tail.len().saturating_sub(self.half - kept.len());
        let last = dropped.last().copied().or(drained.checked_sub(1).and_then(|at| self.tail.get(at).copied()));
        if let Some(last) = last {
            self.gap_ends_line = last == b'\n';
        }
        self.tail.drain(..drained);
        self.tail.extend(kept);
    }

    /// Creates the file with everything that was written before.
    fn create_file(&mut self) -> io::Result<(PathBuf, File)> {
        let name = self.name.as_ref().map_err(|reason| io::Error::other(reason.clone()))?;
        let mut room = usize::try_from(name.room()?).unwrap_or(usize::MAX).min(self.all.bytes);
        let (path, mut file) = name.create()?;
        self.room = room;
        self.is_last = room < self.all.bytes;
        let (middle, end) = self.tail.as_slices();
        for part in [&self.head[..], middle, end] {
            let part = &part[..part.len().min(room)];
            file.write_all(part)?;
            room -= part.len();
        }
        Ok((path, file))
    }

    /// Returns the file with all of the text, if it is longer than the limit.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_ref()?.as_ref().ok().map(|(path, _)| path.as_path())
    }

    /// Waits until the file, if there is one, is on the disk.
    pub fn sync(&mut self) {
        if let Some(Ok((path, file))) = &self.file
            && let Err(error) = file.sync_all()
        {
            self.file = Some(Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))));
        }
    }
}

impl Write for LongText {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.add(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Write for LongText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.add(piece.as_bytes());
        Ok(())
    }
}

/// Writes the text. If some is left out, a note in its place says how much, and where all of it is.
impl fmt::Display for LongText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let Some(file) = &self.file else {
            return f.write_str(&String::from_utf8_lossy(&[&self.head[..], &tail].concat()));
        };
        let place = match file {
            Ok((path, _)) if self.all.bytes <= self.room => Place::File(path.clone()),
            Ok((path, _)) => Place::Beginning(path.clone(), self.room),
            Err(error) => Place::Lost(error.to_string()),
        };
        let (head, tail) = (without_end(&self.head), without_start(&tail));
        let (before, after) = (Count::of(head), Count::of(tail));
        let first = before.lines + 1;
        let last = self.all.lines - after.lines + usize::from(!self.gap_ends_line);
        let characters = self.all.characters - before.characters - after.characters;
        let note = LeftOut { characters, all: self.all.characters, lines: [first, last.max(first)], place: &place };
        let [head, tail] = [head, tail].map(String::from_utf8_lossy);
        write!(f, "{}\n{note}\n{tail}", head.strip_suffix('\n').unwrap_or(&head))
    }
}

/// The size of a text in bytes, characters, and ends of lines.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    bytes: usize,
    characters: usize,
    lines: usize,
}

impl Count {
    fn of(text: &[u8]) -> Self {
        let count = |counts: fn(&u8) -> bool| text.iter().filter(|byte| counts(byte)).count();
        Self { bytes: text.len(), characters: count(|byte| !continues(*byte)), lines: count(|byte| *byte == b'\n') }
    }

    fn add(&mut self, more: Self) {
        self.bytes += more.bytes;
        self.characters += more.characters;
        self.lines += more.lines;
    }
}

/// Returns whether a byte continues a character of UTF-8.
fn continues(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Leaves out a character at the end that was cut.
fn without_end(text: &[u8]) -> &[u8] {
    match str::from_utf8(text) {
        Err(error) if error.error_len().is_none() => &text[..error.valid_up_to()],
        _ => text,
    }
}

/// Leaves out a character at the start that was cut.
fn without_start(text: &[u8]) -> &[u8] {
    let cut = text.iter().take(3).take_while(|byte| continues(**byte)).count();
    &text[cut..]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn written(limit: usize, pieces: &[&str]) -> (tempfile::TempDir, LongText) {
        let directory = tempfile::tempdir().unwrap();
        let mut text = LongText::new(limit, NumberedFile::new(directory.path(), ["out"], "txt"));
        pieces.iter().for_each(|piece| text.add(piece.as_bytes()));
        (directory, text)
    }

    #[test]
    fn a_text_within_the_limit_is_in_memory_alone() {
        for pieces in [&["0123456789"][..], &["012", "34567", "", "89"]] {
            let (directory, text) = written(10, pieces);
            assert_eq!((text.to_string().as_str(), text.file()), ("0123456789", None));
            assert!(directory.path().read_dir().unwrap().next().is_none());
        }
    }

    #[test]
    fn of_a_longer_one_the_middle_is_left_out_and_all_of_it_is_in_a_file() {
        for pieces in [&["0123456789abc"][..], &["012", "3456789", "a", "bc"], &["0123456", "789abc"]] {
            let (_directory, text) = written(10, pieces);
            let file = text.file().unwrap();
            assert_eq!(std::fs::read_to_string(file).unwrap(), "0123456789abc");
            let note = format!(
                "[3 of 13 characters are left out here, in line 1. The whole text is in the file {}: ",
                file.display()
            );
            let text = text.to_string();
            assert!(text.starts_with(&format!("01234\n{note}")) && text.ends_with("]\n89abc"), "{text}");
        }
    }

    #[test]
    fn characters_are_not_cut() {
        let (_directory, text) = written(10, &["a😀😀😀😀😀b"]);
        let text = text.to_string();
        assert!(text.starts_with("a😀\n[") && text.ends_with("]\n😀b"), "{text}");
    }

    #[test]
    fn the_note_names_the_lines() {
        for (text, lines) in [
            ("1\n2\n3\n4\n5\n6\n", "lines 3 to 4."),
            ("1\n2\n3\n44\n5\n6", "lines 3 to 4."),
            ("1\n22\n33\n44\n", "lines 2 to 3."),
        ] {
            for pieces in [vec![text], text.split_inclusive('\n').collect()] {
                let (_directory, written) = written(8, &pieces);
                assert!(written.to_string().contains(lines), "{written}");
            }
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_fails_nothing() {
        let nowhere = || LongText::new(4, NumberedFile::new("/no/such/directory", ["out"], "txt"));
        for mut text in [nowhere(), LongText::without_file(4, "there is no directory")] {
            text.add(b"0123456789");
            text.sync();
            let text = text.to_string();
            assert!(
                text.starts_with("01\n[6 of 10 characters are left out here, in line 1. They could not be written")
                    && text.ends_with("89"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_file_ends_where_the_quota_does() {
        for (limit, pieces, room) in
            [(4, vec!["0123456789"], 7), (4, vec!["01", "2345", "678901"], 7), (20, vec!["0"; 30], 7)]
        {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join("other-1.txt"), "123").unwrap();
            let name = NumberedFile::new(directory.path(), ["out"], "txt").within(10);
            let mut text = LongText::new(limit, name.clone());
            pieces.iter().for_each(|piece| text.add(piece.as_bytes()));
            let all = pieces.concat();
            assert_eq!(std::fs::read_to_string(text.file().unwrap()).unwrap(), all[..room]);
            assert!(text.to_string().contains(&format!("first {room} bytes")), "{text}");
            // There is no room for another.
            let mut other = LongText::new(2, name);
            other.add(b"0123");
            assert_eq!(other.file(), None);
            assert!(other.to_string().contains("may have 10 (`policy.maxOutputBytes`)"), "{other}");
        }
    }

    #[test]
    fn no_file_is_written_twice() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", directory.path().join("out-1.txt")).unwrap();
        let mut text = LongText::new(2, NumberedFile::new(directory.path(), ["out"], "txt"));
        text.add(b"abc");
        assert_eq!(text.file().unwrap(), directory.path().join("out-2.txt"));
    }
}
