//! Seam to the file system: the write operations of the store, and their implementation by the operating system.
//!
//! Reads do not go through it: they always come from the real file system. Neither do the lock and the runtime events,
//! which recovery does not read.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{Result, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

/// The write operations of a file system. Tests wrap the real one to record the operations in order.
#[expect(clippy::missing_errors_doc, reason = "each returns the error of the file system")]
pub trait Disk: Debug + Send + Sync + 'static {
    /// Opens a file for writing.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn DiskFile>>;

    /// Renames a file. If `to` exists, it is replaced.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Creates a directory. Its parent must exist.
    fn create_dir(&self, path: &Path) -> Result<()>;

    /// Syncs the entries of a directory to the disk.
    fn sync_dir(&self, path: &Path) -> Result<()>;
}

/// A file that is open for writing.
#[expect(clippy::missing_errors_doc, reason = "each returns the error of the file system")]
pub trait DiskFile: Debug + Send + Sync {
    /// Writes all of `bytes`, starting at the offset `at`.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()>;

    /// Truncates the file to a length, or extends it with zeros.
    fn set_len(&mut self, len: u64) -> Result<()>;

    /// Syncs the content to the disk.
    fn sync(&mut self) -> Result<()>;
}

/// How [`Disk::open`] treats an existing or missing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The file must exist.
    Existing,
    /// The file must not exist, and is created.
    CreateNew,
    /// The file is created if it does not exist, and is truncated if it does.
    Truncate,
}

/// The operating system's file system.
#[derive(Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.write(true);
        match mode {
            OpenMode::Existing => &mut options,
            OpenMode::CreateNew => options.create_new(true),
            OpenMode::Truncate => options.create(true).truncate(true),
        };
        Ok(Box::new(options.open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        fs::create_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        // Only Unix supports and needs syncing a directory.
        if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
    }
}

impl DiskFile for File {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.seek(SeekFrom::Start(at))?;
        self.write_all(bytes)
    }

    fn set_len(&mut self, len: u64) -> Result<()> {
        File::set_len(self, len)
    }

    fn sync(&mut self) -> Result<()> {
        self.sync_data()
    }
}

/// Wraps a disk and skips every sync, for [`Fsync::Never`](super::Fsync::Never).
#[derive(Debug)]
pub(super) struct UnsyncedDisk(pub(super) Arc<dyn Disk>);

#[derive(Debug)]
struct UnsyncedFile(Box<dyn DiskFile>);

impl Disk for UnsyncedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(UnsyncedFile(self.0.open(path, mode)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.0.remove(path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.0.create_dir(path)
    }

    fn sync_dir(&self, _: &Path) -> Result<()> {
        Ok(())
    }
}

impl DiskFile for UnsyncedFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.0.write_at(at, bytes)
    }

    fn set_len(&mut self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}
