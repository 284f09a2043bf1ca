//! Owns the steps towards the disk that a crash cannot tear: replacing a file, making directories, keeping bytes aside.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

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

/// Puts `bytes` in the place of a file: after a crash it has the old content or the new. The new one is there for good
/// when [`sync_dir`] has followed.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = write_beside(path, bytes, true)?;
    fs::rename(&temporary, path).map_err(|error| io_error("replace", path, error))
}

/// Like [`replace`], for content that may be lost with the machine.
pub(super) fn replace_unsynced(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = write_beside(path, bytes, false)?;
    fs::rename(&temporary, path).map_err(|error| io_error("replace", path, error))
}

/// The name is always the same: the lock keeps others away, and what a crash left is overwritten.
fn write_beside(path: &Path, bytes: &[u8], sync: bool) -> Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    let temporary = PathBuf::from(name);
    let write = || -> io::Result<()> {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        if sync { file.sync_data() } else { Ok(()) }
    };
    match write() {
        Ok(()) => Ok(temporary),
        Err(error) => Err(io_error("write", &temporary, error)),
    }
}

/// Makes a file, empty, unless it exists. Says whether it was made.
pub(super) fn ensure_file(path: &Path) -> Result<bool> {
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(io_error("make", path, error)),
    }
}

/// Makes a directory and those above it, each so that it outlives the machine.
pub(super) fn create_dirs(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_dirs(parent)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.map_err(|error| io_error("make the directory", path, error)),
    }?;
    sync_dir(parent)
}

/// Brings the names in a directory to the disk. Only Unix has and needs this.
pub(super) fn sync_dir(path: &Path) -> Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    File::open(path).and_then(|dir| dir.sync_all()).map_err(|error| io_error("sync the directory", path, error))
}

/// Keeps `bytes`, which are about to be cut from the file at `path`, as `<file>.corrupt-<n>`: nothing is dropped silently.
pub(super) fn keep_aside(path: &Path, bytes: &[u8]) -> Result<()> {
    for n in 1_u32.. {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".corrupt-{n}"));
        let aside = PathBuf::from(name);
        let mut file = match OpenOptions::new().write(true).create_new(true).open(&aside) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            opened => opened.map_err(|error| io_error("make", &aside, error))?,
        };
        file.write_all(bytes).and_then(|()| file.sync_data()).map_err(|error| io_error("write", &aside, error))?;
        tracing::warn!(
            file = %path.display(), kept = %aside.display(), bytes = bytes.len(),
            "a file of an instance has damaged bytes; they are cut off and kept aside"
        );
        break;
    }
    Ok(())
}
