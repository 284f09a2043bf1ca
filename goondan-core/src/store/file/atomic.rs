//! Owns the steps towards the disk that a crash cannot tear: replacing a file, making directories, keeping bytes aside.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{Disk, DiskFile, How};
use crate::error::{Error, ErrorCode, Result};

/// Runs work that waits for the disk, on the thread of the caller: a sync takes about a millisecond, and a hop to another
/// thread would make every step of a turn slower. Since there is no await within, a dropped future cannot tear the work.
pub(super) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// An error of the operating system while `doing` something with `path`.
pub(super) fn io_error(doing: &str, path: &Path, error: io::Error) -> Error {
    let remedy = match error.kind() {
        ErrorKind::PermissionDenied => Some("give this process the right to read and write there"),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Some("free some space, then try again"),
        ErrorKind::ReadOnlyFilesystem => Some("choose a state root on a file system that can be written"),
        ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::AlreadyExists => {
            Some("move away what has this name, then try again")
        }
        _ => None,
    };
    let told = Error::new(ErrorCode::STORE_IO, format!("cannot {doing} {}", path.display())).caused_by(error);
    match remedy {
        Some(remedy) => told.suggest(remedy),
        None => told,
    }
}

/// What stands in a file; nothing if it does not exist.
pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(|error| io_error("read", path, error)),
    }
}

/// How long a file is; nothing if it does not exist.
pub(super) fn len(path: &Path) -> Result<u64> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        found => found.map(|found| found.len()).map_err(|error| io_error("read", path, error)),
    }
}

/// The steps, on one disk.
#[derive(Clone, Debug)]
pub(super) struct Files {
    disk: Arc<dyn Disk>,
}

impl Files {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk }
    }

    /// Opens a file that exists.
    pub(super) fn open(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        self.disk.open(path, How::Existing).map_err(|error| io_error("open", path, error))
    }

    /// Puts `bytes` in the place of a file: after a crash it has the old content or the new. The new one is there for good
    /// when [`sync_dir`](Self::sync_dir) has followed.
    pub(super) fn replace(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.write_beside(path, bytes, true)?;
        self.put_in_place(path)
    }

    /// Like [`replace`](Self::replace), for content that may be lost with the machine.
    pub(super) fn replace_unsynced(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.write_beside(path, bytes, false)?;
        self.put_in_place(path)
    }

    fn write_beside(&self, path: &Path, bytes: &[u8], sync: bool) -> Result<()> {
        let mut beside = self.beside(path)?;
        let written = beside.write_at(0, bytes).and_then(|()| if sync { beside.sync() } else { Ok(()) });
        written.map_err(|error| self.give_up_beside(path, error))
    }

    /// A new file that is to take the place of the one at `path`.
    pub(super) fn beside(&self, path: &Path) -> Result<Box<dyn DiskFile>> {
        let temporary = temporary(path);
        self.disk.open(&temporary, How::Emptied).map_err(|error| io_error("write", &temporary, error))
    }

    /// Takes away what was written [`beside`](Self::beside) until `error`: where a disk is full, it is in the way.
    pub(super) fn give_up_beside(&self, path: &Path, error: io::Error) -> Error {
        let temporary = temporary(path);
        // Whether this works or not, the first failure is the one to tell.
        _ = self.disk.remove(&temporary);
        io_error("write", &temporary, error)
    }

    /// Puts what was written [`beside`](Self::beside) a file in its place.
    pub(super) fn put_in_place(&self, path: &Path) -> Result<()> {
        self.disk.rename(&temporary(path), path).map_err(|error| io_error("replace", path, error))
    }

    /// Makes a file, empty, unless it exists. Says whether it was made.
    pub(super) fn ensure_file(&self, path: &Path) -> Result<bool> {
        match self.disk.open(path, How::New) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(io_error("make", path, error)),
        }
    }

    /// Makes a directory and those above it, each so that it outlives the machine.
    pub(super) fn create_dirs(&self, path: &Path) -> Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.create_dirs(parent)?;
        match self.disk.create_dir(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made.map_err(|error| io_error("make the directory", path, error)),
        }?;
        self.sync_dir(parent)
    }

    /// Brings the names in a directory to the disk.
    pub(super) fn sync_dir(&self, path: &Path) -> Result<()> {
        self.disk.sync_dir(path).map_err(|error| io_error("sync the directory", path, error))
    }

    /// Cuts a file to `end` bytes, and keeps what stood beyond as `<file>.corrupt-<n>`: nothing is dropped silently.
    pub(super) fn cut(&self, path: &Path, end: u64) -> Result<()> {
        let read = || -> io::Result<File> {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(end))?;
            Ok(file)
        };
        self.keep_aside(path, read().map_err(|error| io_error("read", path, error))?)?;
        let mut file = self.open(path)?;
        let cut = file.set_len(end).and_then(|()| file.sync());
        cut.map_err(|error| io_error("cut the damaged end off", path, error))
    }

    /// Keeps `content`, which is about to go from the file at `path`, as `<file>.corrupt-<n>`, and says where.
    pub(super) fn keep_aside(&self, path: &Path, content: impl Read) -> Result<PathBuf> {
        let (aside, mut file) = self.new_aside(path)?;
        let bytes = copy(content, &mut *file).map_err(|error| io_error("write", &aside, error))?;
        path.parent().map_or(Ok(()), |dir| self.sync_dir(dir))?;
        tracing::warn!(
            file = %path.display(), kept = %aside.display(), bytes,
            "a file of an instance has damaged bytes; they are taken out and kept aside"
        );
        Ok(aside)
    }

    /// Gives the file at `path` the name `<file>.corrupt-<n>`.
    pub(super) fn move_aside(&self, path: &Path) -> Result<()> {
        let (aside, _) = self.new_aside(path)?;
        self.disk.rename(path, &aside).map_err(|error| io_error("move aside", path, error))?;
        path.parent().map_or(Ok(()), |dir| self.sync_dir(dir))
    }

    fn new_aside(&self, path: &Path) -> Result<(PathBuf, Box<dyn DiskFile>)> {
        let mut n = 1_u32;
        loop {
            let aside = with_end(path, &format!(".corrupt-{n}"));
            match self.disk.open(&aside, How::New) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => n += 1,
                opened => return Ok((aside.clone(), opened.map_err(|error| io_error("make", &aside, error))?)),
            }
        }
    }
}

/// Copies to the start of a file, piece by piece, and syncs it.
fn copy(mut from: impl Read, to: &mut dyn DiskFile) -> io::Result<u64> {
    let (mut piece, mut at) = (vec![0; 1 << 16], 0);
    loop {
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => {
                to.write_at(at, &piece[..count])?;
                at += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    to.sync()?;
    Ok(at)
}

/// The name is always the same: the lock keeps others away, and what a crash left is overwritten.
fn temporary(path: &Path) -> PathBuf {
    with_end(path, ".tmp")
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
