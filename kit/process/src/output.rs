//! The output of a process.

use std::path::Path;

use goondan_text::{LongText, NumberedFile};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The output of a process: a [`LongText`]. A part of it is in memory: half of a limit from its beginning, and half
/// from its end. An output that is longer is also in a file, up to 100 MB, and as far as the quota of such files has
/// room. What follows is read, so that the process goes on, and dropped.
#[derive(Debug)]
pub struct Output(LongText);

impl Output {
    /// An output with `limit` bytes in memory. A longer one is also in a new file.
    pub fn new(limit: usize, file: NumberedFile) -> Self {
        Self(LongText::new(limit, file))
    }

    /// Reads `pipe` to its end, and passes each piece to `heard`. Dropping the future keeps what was read.
    pub async fn read(&mut self, mut pipe: impl AsyncRead + Unpin, mut heard: impl FnMut(&[u8])) {
        let mut piece = vec![0; 16 * 1024];
        // An error is an end: nothing follows it.
        while let Ok(count @ 1..) = pipe.read(&mut piece).await {
            let piece = &piece[..count];
            self.0.add(piece);
            heard(piece);
        }
    }

    /// Returns the file with all of the output, if it is longer than the limit.
    pub fn file(&self) -> Option<&Path> {
        self.0.file()
    }

    /// Returns what was read as text. If some is left out, a note in its place says how much, and where all of it is.
    pub fn text(&self) -> String {
        self.0.to_string()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[tokio::test]
    async fn each_piece_is_kept_and_heard() {
        let directory = tempfile::tempdir().unwrap();
        let mut output = Output::new(4, NumberedFile::new(directory.path(), ["out"], "txt"));
        let mut heard = Vec::new();
        output.read(&b"0123456789"[..], |piece| heard.extend_from_slice(piece)).await;
        assert_eq!((&heard[..], output.text().starts_with("01\n[6 of 10 characters")), (&b"0123456789"[..], true));
        assert_eq!(std::fs::read(output.file().unwrap()).unwrap(), heard);
    }
}
