//! Owns the seam to the file system: all that the store does to a disk, and the disk of the operating system.
//!
//! Reading is not part of it: what was written is read from the file system, whoever wrote it there. Nor are the lock and
//! the runtime events, which no recovery reads.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{Result, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

/// What the store asks of a file system. A test puts one in front of the real one that notes what is done, in which order.
#[expect(clippy::missing_errors_doc, reason = "each fails as the file system says")]
pub trait Disk: Debug + Send + Sync + 'static {
    /// Opens a file for writing.
    fn open(&self, path: &Path, how: How) -> Result<Box<dyn DiskFile>>;

    /// Gives a file another name, in the place of the file that has it.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Takes a file away.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Makes a directory in one that exists.
    fn create_dir(&self, path: &Path) -> Result<()>;

    /// Brings the names in a directory to the disk.
    fn sync_dir(&self, path: &Path) -> Result<()>;
}

/// A file that is open for writing.
#[expect(clippy::missing_errors_doc, reason = "each fails as the file system says")]
pub trait DiskFile: Debug + Send + Sync {
    /// Writes all of `bytes`, the first of them at `at`.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()>;

    /// Cuts the file, or fills it with zeros, to a length.
    fn set_len(&mut self, len: u64) -> Result<()>;

    /// Brings the content to the disk.
    fn sync(&mut self) -> Result<()>;
}

/// Which file [`Disk::open`] opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// One that exists.
    Existing,
    /// One that does not exist: made, empty.
    New,
    /// Either, and then it is empty.
    Emptied,
}

/// The file system of the operating system.
#[derive(Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, how: How) -> Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.write(true);
        match how {
            How::Existing => &mut options,
            How::New => options.create_new(true),
            How::Emptied => options.create(true).truncate(true),
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
        // Only Unix has and needs this.
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

/// A disk that is never told to bring anything to the medium: [`Fsync::Never`](super::Fsync::Never).
#[derive(Debug)]
pub(super) struct Unsynced(pub(super) Arc<dyn Disk>);

#[derive(Debug)]
struct UnsyncedFile(Box<dyn DiskFile>);

impl Disk for Unsynced {
    fn open(&self, path: &Path, how: How) -> Result<Box<dyn DiskFile>> {
        Ok(Box::new(UnsyncedFile(self.0.open(path, how)?)))
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
