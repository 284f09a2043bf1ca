//! Crash-safe file operations: replacing a file atomically, creating directories durably, keeping damaged bytes aside.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use goondan_core::{Error, ErrorCode, Result};

use super::disk::{Disk, DiskFile, OpenMode};
use super::path::{Access, Refused, StorePath};

/// Returns the error for a failed system call: `doing` is the verb of the message, `path` the file.
pub(super) fn io_error(doing: &str, path: &Path, error: io::Error) -> Error {
    if let Some(refused) = error.get_ref().and_then(|source| source.downcast_ref::<Refused>()) {
        return Error::new(ErrorCode::STORE_IO, refused.to_string()).suggest(refused.remedy());
    }
    let remedy = match error.kind() {
        ErrorKind::PermissionDenied => Some("give this process the right to read and write there"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some("free some space, then try again"),
        ErrorKind::ReadOnlyFilesystem => Some("choose a state root on a file system that can be written"),
        ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::AlreadyExists => {
            Some("move away what has this name, then try again")
        }
        _ => None,
    };
    let failed = Error::new(ErrorCode::STORE_IO, format!("cannot {doing} {}", path.display())).caused_by(error);
    match remedy {
        Some(remedy) => failed.suggest(remedy),
        None => failed,
    }
}

/// Returns the content of a file, empty if it does not exist.
pub(super) fn read(path: &StorePath) -> Result<Vec<u8>> {
    read_existing(path).map(Option::unwrap_or_default)
}

/// Returns the content of a file, `None` if it does not exist.
pub(super) fn read_existing(path: &StorePath) -> Result<Option<Vec<u8>>> {
    match path.open_with_length(Access::Read).and_then(|(file, length)| read_whole(file, length)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(|error| io_error("read", path, error)),
    }
}

/// Returns the content of a file, whose length is known.
pub(super) fn read_whole(file: File, length: u64) -> io::Result<Vec<u8>> {
    // With room for one byte more, its end is found without another buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default().saturating_add(1));
    file.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a file to read it.
pub(super) fn open(path: &StorePath) -> Result<File> {
    path.open(Access::Read).map_err(|error| io_error("read", path, error))
}

/// Returns the length of a file, zero if it does not exist.
pub(super) fn len(path: &StorePath) -> Result<u64> {
    path.len().map_err(|error| io_error("read", path, error))
}

/// The file operations, on one disk.
#[derive(Clone, Debug)]
pub(super) struct FileOps {
    disk: Arc<dyn Disk>,
}

impl FileOps {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk }
    }

    /// Opens an existing file.
    pub(super) fn open(&self, path: &StorePath) -> Result<Box<dyn DiskFile>> {
        self.disk.open(path, OpenMode::Existing).map_err(|error| io_error("open", path, error))
    }

    /// Replaces the content of a file with `bytes` atomically: after a crash it has the old content or the new. The
    /// new one is durable once [`sync_dir`](Self::sync_dir) has returned.
    pub(super) fn replace(&self, path: &StorePath, bytes: &[u8]) -> Result<()> {
        self.write_temporary(path, bytes, true)?;
        self.install_temporary(path)
    }

    /// Like [`replace`](Self::replace), for content that may be lost when the machine stops.
    pub(super) fn replace_unsynced(&self, path: &StorePath, bytes: &[u8]) -> Result<()> {
        self.write_temporary(path, bytes, false)?;
        self.install_temporary(path)
    }

    fn write_temporary(&self, path: &StorePath, bytes: &[u8], sync: bool) -> Result<()> {
        let mut file = self.create_temporary(path)?;
        let written = file.write_at(0, bytes).and_then(|()| if sync { file.sync() } else { Ok(()) });
        written.map_err(|error| self.discard_temporary(path, error))
    }

    /// Creates the temporary file that is to replace the file at `path`.
    pub(super) fn create_temporary(&self, path: &StorePath) -> Result<Box<dyn DiskFile>> {
        let temporary = temporary(path);
        let create = || self.disk.open(&temporary, OpenMode::CreateNew);
        let created = match create() {
            // A crash left it. If it is a link, the link is removed.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.disk.remove(&temporary).and_then(|()| create())
            }
            created => created,
        };
        created.map_err(|error| io_error("write", &temporary, error))
    }

    /// Removes the temporary file of `path` after `error`, since it takes up space on a full disk. Returns the error to
    /// report.
    pub(super) fn discard_temporary(&self, path: &StorePath, error: io::Error) -> Error {
        let temporary = temporary(path);
        // If this fails too, the first error is still the one to report.
        _ = self.disk.remove(&temporary);
        io_error("write", &temporary, error)
    }

    /// Renames the temporary file of `path` to `path`.
    pub(super) fn install_temporary(&self, path: &StorePath) -> Result<()> {
        self.disk.rename(&temporary(path), path).map_err(|error| io_error("replace", path, error))
    }

    /// Creates an empty file unless it exists. Returns whether it was created.
    pub(super) fn ensure_file(&self, path: &StorePath) -> Result<bool> {
        match self.disk.open(path, OpenMode::CreateNew) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(io_error("make", path, error)),
        }
    }

    /// Creates a directory and its parents durably: each parent is synced after its entry is created.
    pub(super) fn create_dirs(&self, path: &StorePath) -> Result<()> {
        let failed = |error| io_error("make the directory", path, error);
        if path.is_directory().map_err(failed)? {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.create_dirs(&parent)?;
        }
        loop {
            match self.disk.create_dir(path) {
                // Another process made it just now, and may have deleted it since.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if path.is_directory().map_err(failed)? {
                        break;
                    }
                }
                made => {
                    made.map_err(failed)?;
                    break;
                }
            }
        }
        path.parent().map_or(Ok(()), |parent| self.sync_dir(&parent))
    }

    /// Syncs the entries of a directory to the disk.
    pub(super) fn sync_dir(&self, path: &StorePath) -> Result<()> {
        self.disk.sync_dir(path).map_err(|error| io_error("sync the directory", path, error))
    }

    /// Cuts a file to `end` bytes, and keeps the rest as `<file>.corrupt-<n>`: nothing is dropped silently.
    pub(super) fn cut(&self, path: &StorePath, end: u64) -> Result<()> {
        let read = || -> io::Result<File> {
            let mut file = path.open(Access::Read)?;
            file.seek(SeekFrom::Start(end))?;
            Ok(file)
        };
        self.keep_aside(path, read().map_err(|error| io_error("read", path, error))?)?;
        let mut file = self.open(path)?;
        let cut = file.set_len(end).and_then(|()| file.sync());
        cut.map_err(|error| io_error("cut the damaged end off", path, error))
    }

    /// Saves `content`, which is about to be removed from the file at `path`, as `<file>.corrupt-<n>`. Returns that
    /// path.
    pub(super) fn keep_aside(&self, path: &StorePath, content: impl Read) -> Result<StorePath> {
        let (aside, mut file) = self.create_aside(path)?;
        let bytes = copy(content, &mut *file).map_err(|error| io_error("write", &aside, error))?;
        path.parent().map_or(Ok(()), |dir| self.sync_dir(&dir))?;
        tracing::warn!(
            file = %path.display(), kept = %aside.display(), bytes,
            "a file of an instance has damaged bytes; they are taken out and kept aside"
        );
        Ok(aside)
    }

    /// Renames the file at `path` to `<file>.corrupt-<n>`.
    pub(super) fn move_aside(&self, path: &StorePath) -> Result<()> {
        let (aside, _) = self.create_aside(path)?;
        self.disk.rename(path, &aside).map_err(|error| io_error("move aside", path, error))?;
        path.parent().map_or(Ok(()), |dir| self.sync_dir(&dir))
    }

    fn create_aside(&self, path: &StorePath) -> Result<(StorePath, Box<dyn DiskFile>)> {
        let mut n = 1_u32;
        loop {
            let aside = path.with_suffix(&format!(".corrupt-{n}"));
            match self.disk.open(&aside, OpenMode::CreateNew) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => n += 1,
                opened => return Ok((aside.clone(), opened.map_err(|error| io_error("make", &aside, error))?)),
            }
        }
    }
}

/// Copies to the start of a file, chunk by chunk, and syncs it.
fn copy(mut from: impl Read, to: &mut dyn DiskFile) -> io::Result<u64> {
    let (mut chunk, mut at) = (vec![0; 1 << 16], 0);
    loop {
        match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                to.write_at(at, &chunk[..count])?;
                at += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    to.sync()?;
    Ok(at)
}

/// The name is always the same: the lock excludes other writers, and a leftover of a crash is removed.
fn temporary(path: &StorePath) -> StorePath {
    path.with_suffix(".tmp")
}
