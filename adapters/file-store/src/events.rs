//! The open `events.jsonl` of an instance: appends write whole records or nothing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crc32fast::Hasher;
use goondan_core::{Error, ErrorCode, Result};

use super::atomic::{self, io_error};
use super::disk::DiskFile;
use super::layout::InstanceDir;
use super::path::{Access, StorePath};

/// The maximum length of the file, which is read as a whole.
const MAX_LEN: u64 = 1 << 30;

/// The file, and the length of its valid part.
#[derive(Debug)]
pub(super) struct EventsFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    len: u64,
    /// The checksum of the records of the running turn.
    turn: Hasher,
    /// Whether bytes of a failed write may follow the valid part.
    dirty_tail: bool,
    unsynced: bool,
}

impl EventsFile {
    /// Opens the file, whose valid content is `bytes`; the records of the running turn start at `turn_start`.
    pub(super) fn open(dir: &InstanceDir, bytes: &[u8], turn_start: usize) -> Result<Self> {
        let path = dir.events();
        let file = dir.ops().open(&path)?;
        let mut turn = Hasher::new();
        turn.update(&bytes[turn_start..]);
        // Bytes that an earlier process wrote may not be synced yet.
        Ok(Self {
            path: path.to_path_buf(),
            file,
            len: bytes.len() as u64,
            turn,
            dirty_tail: false,
            unsynced: !bytes.is_empty(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the CRC-32 of the records of the running turn, including `more`, which is not appended yet.
    pub(super) fn turn_crc(&self, more: &[u8]) -> u32 {
        let mut turn = self.turn.clone();
        turn.update(more);
        turn.finalize()
    }

    /// Appends `bytes`, so that they survive the process. After a failure the valid part is as before.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.dirty_tail {
            self.cut(self.len)?;
        }
        let at = self.len;
        check_length(&self.path, at + bytes.len() as u64)?;
        if let Err(error) = self.file.write_at(at, bytes) {
            self.dirty_tail = true;
            // If this fails too, the next append cuts the file, or the next opening does.
            _ = self.cut(at);
            return Err(io_error("write", &self.path, error));
        }
        self.len += bytes.len() as u64;
        self.turn.update(bytes);
        self.unsynced = true;
        Ok(())
    }

    /// Syncs all appended bytes to the disk.
    pub(super) fn sync(&mut self) -> Result<()> {
        if self.unsynced {
            self.file.sync().map_err(|error| io_error("sync", &self.path, error))?;
            self.unsynced = false;
        }
        Ok(())
    }

    /// Cuts the file to `len` bytes.
    pub(super) fn cut(&mut self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|error| io_error("cut", &self.path, error))?;
        self.len = len;
        self.dirty_tail = false;
        Ok(())
    }

    /// Notes that the next record starts a turn.
    pub(super) fn end_turn(&mut self) {
        self.turn = Hasher::new();
    }
}

/// Returns the content of the file at `path`, empty if it does not exist.
pub(super) fn read(path: &StorePath) -> Result<Vec<u8>> {
    let failed = |error| io_error("read", path, error);
    let (file, length) = match path.open_with_length(Access::Read) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.map_err(failed)?,
    };
    check_length(path, length)?;
    atomic::read_whole(file, length).map_err(failed)
}

fn check_length(path: &Path, length: u64) -> Result<()> {
    if length <= MAX_LEN {
        return Ok(());
    }
    let what = format!("{} has {length} bytes; a journal may have {MAX_LEN}", path.display());
    Err(Error::new(ErrorCode::STORE_DAMAGED, what)
        .suggest("say less in one turn; a file that has become so long is moved aside by `goondan instance repair`"))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn bytes_of_a_failed_write_are_cut_before_the_next_append() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        std::fs::write(&path, "one\n").unwrap();
        let file = |write| Box::new(OpenOptions::new().read(true).write(write).open(&path).unwrap());
        // With a read-only descriptor, both the write and the cut after it fail.
        let mut events = EventsFile {
            path: path.clone(),
            file: file(false),
            len: 4,
            turn: Hasher::new(),
            dirty_tail: false,
            unsynced: false,
        };
        assert!(events.append(b"two\n").is_err());
        assert!(events.dirty_tail);
        std::fs::write(&path, "one\ntwo that was too lo").unwrap();
        events.file = file(true);
        events.append(b"3\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n3\n");
    }
}
