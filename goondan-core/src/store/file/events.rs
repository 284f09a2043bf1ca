//! Owns the open `events.jsonl` of an instance: whole records are added at its end, or nothing is.

use std::fs::{File, OpenOptions};
use std::io::{Result as IoResult, Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::atomic::io_error;
use crate::error::Result;

/// The file, and how much of it counts.
#[derive(Debug)]
pub(super) struct Events {
    path: PathBuf,
    file: File,
    len: u64,
    /// Bytes of a failed write may stand beyond `len`.
    ragged: bool,
    unsynced: bool,
}

impl Events {
    /// Opens the file, of which `len` bytes count.
    pub(super) fn open(path: PathBuf, len: u64) -> Result<Self> {
        match OpenOptions::new().write(true).open(&path) {
            // What an earlier process wrote may not be on the disk yet.
            Ok(file) => Ok(Self { path, file, len, ragged: false, unsynced: len > 0 }),
            Err(error) => Err(io_error("open", &path, error)),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Adds `bytes` so that they outlive the process. After a failure the file is as before.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.ragged {
            self.cut(self.len)?;
        }
        let at = self.len;
        let write = |file: &mut File| -> IoResult<()> {
            file.seek(SeekFrom::Start(at))?;
            file.write_all(bytes)
        };
        if let Err(error) = write(&mut self.file) {
            self.ragged = true;
            // If this fails too, it is done again before the next write, or at the next opening.
            _ = self.cut(at);
            return Err(io_error("write", &self.path, error));
        }
        self.len += bytes.len() as u64;
        self.unsynced = true;
        Ok(())
    }

    /// Brings everything that was added to the disk.
    pub(super) fn sync(&mut self) -> Result<()> {
        if self.unsynced {
            self.file.sync_data().map_err(|error| io_error("sync", &self.path, error))?;
            self.unsynced = false;
        }
        Ok(())
    }

    /// Takes away what stands beyond `len` bytes.
    pub(super) fn cut(&mut self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|error| io_error("cut", &self.path, error))?;
        self.len = len;
        self.ragged = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_failed_write_do_not_meet_what_follows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        std::fs::write(&path, "one\n").unwrap();
        let mut events = Events::open(path.clone(), 4).unwrap();
        // A descriptor that cannot write makes both the write and the cut after it fail.
        let writable = std::mem::replace(&mut events.file, File::open(&path).unwrap());
        assert!(events.append(b"two\n").is_err());
        assert!(events.ragged);
        std::fs::write(&path, "one\ntwo that was too lo").unwrap();
        events.file = writable;
        events.append(b"3\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n3\n");
    }
}
