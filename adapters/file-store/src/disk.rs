//! Seam to the file system: the write operations of the store, and their implementation by the operating system.
//!
//! Reads do not go through it: they always come from the real file system. Neither do the lock and the runtime events,
//! which recovery does not read. All of them open files through `StorePath`.

use std::fmt::Debug;
use std::fs::{File, Metadata};
use std::io::Result;
use std::sync::Arc;

use super::path::{Access, StorePath};

/// The write operations of a file system. Tests wrap the real one to record the operations in order.
#[expect(clippy::missing_errors_doc, reason = "each returns the error of the file system")]
pub trait Disk: Debug + Send + Sync + 'static {
    /// Opens a file for writing.
    fn open(&self, path: &StorePath, mode: OpenMode) -> Result<Box<dyn DiskFile>>;

    /// Renames a file. If `to` exists, it is replaced.
    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &StorePath) -> Result<()>;

    /// Creates a directory. Its parent must exist.
    fn create_dir(&self, path: &StorePath) -> Result<()>;

    /// Syncs the entries of a directory to the disk.
    fn sync_dir(&self, path: &StorePath) -> Result<()>;
}

/// A file that is open for writing.
#[expect(clippy::missing_errors_doc, reason = "each returns the error of the file system")]
pub trait DiskFile: Debug + Send + Sync {
    /// Writes all of `bytes`, starting at the offset `at`.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()>;

    /// Returns the length of the file, and which one it is.
    fn metadata(&self) -> Result<Metadata>;

    /// Truncates the file to a length, or extends it with zeros.
    fn set_len(&mut self, len: u64) -> Result<()>;

    /// Syncs the content to the disk.
    fn sync(&mut self) -> Result<()>;
}

/// The treatment of an existing or missing file by [`Disk::open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenMode {
    /// The file must exist.
    Existing,
    /// The file must not exist, and is created.
    CreateNew,
}

/// The operating system's file system.
#[derive(Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &StorePath, mode: OpenMode) -> Result<Box<dyn DiskFile>> {
        let access = match mode {
            OpenMode::Existing => Access::Write,
            OpenMode::CreateNew => Access::CreateNew,
        };
        Ok(Box::new(path.open(access)?))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        from.rename(to)
    }

    fn remove(&self, path: &StorePath) -> Result<()> {
        path.remove_file()
    }

    fn create_dir(&self, path: &StorePath) -> Result<()> {
        path.create_dir()
    }

    fn sync_dir(&self, path: &StorePath) -> Result<()> {
        path.sync_dir()
    }
}

impl DiskFile for File {
    #[cfg(unix)]
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, at)
    }

    #[cfg(not(unix))]
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        use std::io::{Seek, SeekFrom, Write};

        self.seek(SeekFrom::Start(at))?;
        self.write_all(bytes)
    }

    fn metadata(&self) -> Result<Metadata> {
        File::metadata(self)
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
    fn open(&self, path: &StorePath, mode: OpenMode) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(UnsyncedFile(self.0.open(path, mode)?)))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &StorePath) -> Result<()> {
        self.0.remove(path)
    }

    fn create_dir(&self, path: &StorePath) -> Result<()> {
        self.0.create_dir(path)
    }

    fn sync_dir(&self, _: &StorePath) -> Result<()> {
        Ok(())
    }
}

impl DiskFile for UnsyncedFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.0.write_at(at, bytes)
    }

    fn metadata(&self) -> Result<Metadata> {
        self.0.metadata()
    }

    fn set_len(&mut self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}
