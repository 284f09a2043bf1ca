//! Owns the open `events.jsonl` of an instance: whole records are added at its end, or nothing is.

use std::path::{Path, PathBuf};

use super::atomic::{self, io_error};
use super::disk::DiskFile;
use super::place::Place;
use crate::error::{Error, ErrorCode, Result};

/// How long the file may become. It holds one turn, and is read as a whole.
const LONGEST: u64 = 1 << 30;

/// The file, and how much of it counts.
#[derive(Debug)]
pub(super) struct Events {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    len: u64,
    /// Bytes of a failed write may stand beyond `len`.
    ragged: bool,
    unsynced: bool,
}

impl Events {
    /// Opens the file, of which `len` bytes count.
    pub(super) fn open(place: &Place, len: u64) -> Result<Self> {
        let path = place.events();
        let file = place.files().open(&path)?;
        // What an earlier process wrote may not be on the disk yet.
        Ok(Self { path, file, len, ragged: false, unsynced: len > 0 })
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
        check_length(&self.path, at + bytes.len() as u64)?;
        if let Err(error) = self.file.write_at(at, bytes) {
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
            self.file.sync().map_err(|error| io_error("sync", &self.path, error))?;
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

/// What stands in the file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    check_length(path, atomic::len(path)?)?;
    atomic::read(path)
}

fn check_length(path: &Path, length: u64) -> Result<()> {
    if length <= LONGEST {
        return Ok(());
    }
    let what = format!("{} has {length} bytes; a turn may have {LONGEST}", path.display());
    Err(Error::new(ErrorCode::STORE_DAMAGED, what)
        .suggest("say less in one turn; a file that has become so long is moved aside by `goondan instance repair`"))
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn bytes_of_a_failed_write_do_not_meet_what_follows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        std::fs::write(&path, "one\n").unwrap();
        let file = |write| Box::new(OpenOptions::new().read(true).write(write).open(&path).unwrap());
        // A descriptor that cannot write makes both the write and the cut after it fail.
        let mut events = Events { path: path.clone(), file: file(false), len: 4, ragged: false, unsynced: false };
        assert!(events.append(b"two\n").is_err());
        assert!(events.ragged);
        std::fs::write(&path, "one\ntwo that was too lo").unwrap();
        events.file = file(true);
        events.append(b"3\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n3\n");
    }
}
