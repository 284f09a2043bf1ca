//! What a process writes: its beginning and end in memory, and all of it in a file if that is not everything.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use goondan_text::{LeftOut, NumberedFile, Place};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The most bytes that the file has. What follows is read, so that the process goes on, and dropped.
const FILE_LIMIT: usize = 100_000_000;

/// The output of a process. A part of it is in memory: half of a limit from its beginning, and half from its end. An
/// output that is longer is also in a file, up to 100 MB.
#[derive(Debug)]
pub struct Output {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Whether the last line that is left out is not in the tail too.
    gap_ends_line: bool,
    /// All that was read.
    read: Count,
    name: NumberedFile,
    /// `None` until it is needed.
    file: Option<io::Result<(PathBuf, File)>>,
}

impl Output {
    /// An output of which `limit` bytes are in memory. A longer one is also in a new file.
    pub fn new(limit: usize, file: NumberedFile) -> Self {
        let (head, tail, gap_ends_line, read) = Default::default();
        Self { half: limit / 2, head, tail, gap_ends_line, read, name: file, file: None }
    }

    /// Reads `pipe` to its end, and passes each piece to `heard`. Dropping the future keeps what was read.
    pub async fn read(&mut self, mut pipe: impl AsyncRead + Unpin, mut heard: impl FnMut(&[u8])) {
        let mut piece = vec![0; 16 * 1024];
        // An error is an end: nothing follows it.
        while let Ok(count @ 1..) = pipe.read(&mut piece).await {
            let piece = &piece[..count];
            self.add(piece);
            heard(piece);
        }
    }

    fn add(&mut self, piece: &[u8]) {
        let (head, rest) = piece.split_at(piece.len().min(self.half - self.head.len()));
        self.head.extend(head);
        self.tail.extend(rest);
        match &mut self.file {
            None if self.tail.len() > self.half => self.file = Some(self.create_file()),
            None | Some(Err(_)) => {}
            Some(Ok((path, file))) => {
                let room = FILE_LIMIT.saturating_sub(self.read.bytes).min(piece.len());
                if let Err(error) = file.write_all(&piece[..room]) {
                    self.file = Some(Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))));
                }
            }
        }
        self.read.add(Count::of(piece));
        if let Some(last) = self.tail.drain(..self.tail.len().saturating_sub(self.half)).next_back() {
            self.gap_ends_line = last == b'\n';
        }
    }

    /// Creates the file with everything that was read so far.
    fn create_file(&self) -> io::Result<(PathBuf, File)> {
        let (path, mut file) = self.name.create()?;
        let (middle, end) = self.tail.as_slices();
        for part in [&self.head, middle, end] {
            file.write_all(part)?;
        }
        Ok((path, file))
    }

    /// Returns the file with all of the output, if it is longer than the limit.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_ref()?.as_ref().ok().map(|(path, _)| path.as_path())
    }

    /// Returns what was read as text. If some is left out, a note in its place says how much, and where all of it is.
    pub fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let Some(file) = &self.file else {
            return String::from_utf8_lossy(&[&self.head[..], &tail].concat()).into_owned();
        };
        let place = match file {
            Ok((path, _)) if self.read.bytes <= FILE_LIMIT => Place::File(path.clone()),
            Ok((path, _)) => Place::Beginning(path.clone(), FILE_LIMIT),
            Err(error) => Place::Lost(error.to_string()),
        };
        let (head, tail) = (without_end(&self.head), without_start(&tail));
        let (before, after) = (Count::of(head), Count::of(tail));
        let first = before.lines + 1;
        let last = self.read.lines - after.lines + usize::from(!self.gap_ends_line);
        let characters = self.read.characters - before.characters - after.characters;
        let note = LeftOut { characters, all: self.read.characters, lines: [first, last.max(first)], place: &place };
        let [head, tail] = [head, tail].map(String::from_utf8_lossy);
        format!("{}\n{note}\n{tail}", head.strip_suffix('\n').unwrap_or(&head))
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

    async fn read(limit: usize, pieces: &[&str]) -> (tempfile::TempDir, Output) {
        let directory = tempfile::tempdir().unwrap();
        let mut output = Output::new(limit, NumberedFile::new(directory.path(), ["out"], "txt"));
        for piece in pieces {
            output.read(piece.as_bytes(), |_| {}).await;
        }
        (directory, output)
    }

    #[tokio::test]
    async fn an_output_within_the_limit_is_in_memory_alone() {
        for pieces in [&["0123456789"][..], &["012", "34567", "", "89"]] {
            let (directory, output) = read(10, pieces).await;
            assert_eq!((output.text().as_str(), output.file()), ("0123456789", None));
            assert!(directory.path().read_dir().unwrap().next().is_none());
        }
    }

    #[tokio::test]
    async fn of_a_longer_one_the_middle_is_left_out_and_all_of_it_is_in_a_file() {
        for pieces in [&["0123456789abc"][..], &["012", "3456789", "a", "bc"], &["0123456", "789abc"]] {
            let (_directory, output) = read(10, pieces).await;
            let file = output.file().unwrap();
            assert_eq!(std::fs::read_to_string(file).unwrap(), "0123456789abc");
            let note = format!(
                "[3 of 13 characters are left out here, in line 1. The whole text is in the file {}: ",
                file.display()
            );
            let text = output.text();
            assert!(text.starts_with(&format!("01234\n{note}")) && text.ends_with("]\n89abc"), "{text}");
        }
    }

    #[tokio::test]
    async fn characters_are_not_cut() {
        let (_directory, output) = read(10, &["a😀😀😀😀😀b"]).await;
        let text = output.text();
        assert!(text.starts_with("a😀\n[") && text.ends_with("]\n😀b"), "{text}");
    }

    #[tokio::test]
    async fn the_note_names_the_lines() {
        for (text, lines) in [
            ("1\n2\n3\n4\n5\n6\n", "lines 3 to 4."),
            ("1\n2\n3\n44\n5\n6", "lines 3 to 4."),
            ("1\n22\n33\n44\n", "lines 2 to 3."),
        ] {
            let (_directory, output) = read(8, &[text]).await;
            assert!(output.text().contains(lines), "{}", output.text());
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_written_ends_nothing() {
        let mut output = Output::new(4, NumberedFile::new("/no/such/directory", ["out"], "txt"));
        output.read(&b"0123456789"[..], |_| {}).await;
        let text = output.text();
        assert!(
            text.starts_with("01\n[6 of 10 characters are left out here, in line 1. They could not be written")
                && text.ends_with("89"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn no_file_is_written_twice() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", directory.path().join("out-1.txt")).unwrap();
        let mut output = Output::new(2, NumberedFile::new(directory.path(), ["out"], "txt"));
        output.read(&b"abc"[..], |_| {}).await;
        assert_eq!(output.file().unwrap(), directory.path().join("out-2.txt"));
    }
}
