//! What a process writes: its beginning and end in memory, and all of it in a file if that is not everything.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

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
    length: usize,
    directory: PathBuf,
    name: String,
    /// `None` until it is needed.
    file: Option<io::Result<(PathBuf, File)>>,
}

impl Output {
    /// An output of which `limit` bytes are in memory. A longer one is also in a new file in `directory`, whose name
    /// begins with `name`.
    pub fn new(limit: usize, directory: &Path, name: impl Into<String>) -> Self {
        Self {
            half: limit / 2,
            head: Vec::new(),
            tail: VecDeque::new(),
            length: 0,
            directory: directory.to_owned(),
            name: name.into(),
            file: None,
        }
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
                let room = FILE_LIMIT.saturating_sub(self.length).min(piece.len());
                if let Err(error) = file.write_all(&piece[..room]) {
                    self.file = Some(Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))));
                }
            }
        }
        self.length += piece.len();
        self.tail.drain(..self.tail.len().saturating_sub(self.half));
    }

    /// Creates the file with everything that was read so far.
    fn create_file(&self) -> io::Result<(PathBuf, File)> {
        let (path, mut file) = create_new(&self.directory, &self.name)?;
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

    /// Returns what was read as text. If some is left out, a line in its place says how much, and where all of it is.
    pub fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let left_out = self.length - self.head.len() - tail.len();
        if left_out == 0 {
            return String::from_utf8_lossy(&[&self.head[..], &tail].concat()).into_owned();
        }
        let place = match &self.file {
            Some(Ok((path, _))) if self.length <= FILE_LIMIT => format!("all of it is in {}", path.display()),
            Some(Ok((path, _))) => format!("the first {FILE_LIMIT} bytes of it are in {}", path.display()),
            Some(Err(error)) => format!("they are lost, because a file could not be written: {error}"),
            None => "they are lost".to_owned(),
        };
        let [head, tail] = [without_end(&self.head), without_start(&tail)].map(String::from_utf8_lossy);
        format!("{head}\n[{left_out} of {} bytes are left out here; {place}]\n{tail}", self.length)
    }
}

/// Creates a file that does not exist yet, so that no link is followed.
fn create_new(directory: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    let mut number = 1_u64;
    loop {
        let path = directory.join(format!("{name}-{number}.txt"));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }
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
    let cut = text.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
    &text[cut..]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    async fn read(limit: usize, pieces: &[&str]) -> (tempfile::TempDir, Output) {
        let directory = tempfile::tempdir().unwrap();
        let mut output = Output::new(limit, directory.path(), "out");
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
            let note = format!("[3 of 13 bytes are left out here; all of it is in {}]", file.display());
            assert_eq!(output.text(), format!("01234\n{note}\n89abc"));
        }
    }

    #[tokio::test]
    async fn characters_are_not_cut() {
        let (_directory, output) = read(10, &["a😀😀😀😀😀b"]).await;
        let text = output.text();
        assert!(text.starts_with("a😀\n[") && text.ends_with("]\n😀b"), "{text}");
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_written_ends_nothing() {
        let mut output = Output::new(4, Path::new("/no/such/directory"), "out");
        output.read(&b"0123456789"[..], |_| {}).await;
        let text = output.text();
        assert!(
            text.starts_with("01\n[6 of 10 bytes are left out here; they are lost") && text.ends_with("89"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn no_file_is_written_twice() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", directory.path().join("out-1.txt")).unwrap();
        let mut output = Output::new(2, directory.path(), "out");
        output.read(&b"abc"[..], |_| {}).await;
        assert_eq!(output.file().unwrap(), directory.path().join("out-2.txt"));
    }
}
