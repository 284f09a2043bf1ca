//! The copies that libraries are loaded from, in a directory that only this process uses. It is removed when the
//! process exits or, if the process is killed, when another one creates its own.
//!
//! Every library is loaded from a copy, not only one that replaces another: the first one is the one that will be
//! replaced. The system identifies libraries by path, and returns the old code for a path that it knows; and writing
//! to a mapped file, as `cp` does, changes or crashes the program that runs it.

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};

use goondan_lock::Lock;

/// Copies `file` to a path that no copy had before.
pub(super) fn create(file: &Path) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // The path ends with the name of the file, for readers of backtraces and lists of mapped files.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let copy = directory()?.join(format!("{}-{name}", NEXT.fetch_add(1, Ordering::Relaxed)));
    fs::copy(file, &copy)?;
    Ok(copy)
}

/// The content of a file, by which this process tells files apart: of two files with other contents it differs, except
/// by a chance of 1 in 2^64. The key of the hash is random, so that no file can be made to look like another. It takes
/// a fraction of the time of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content(u64);

impl Content {
    pub(super) fn of(file: &Path) -> io::Result<Self> {
        let (mut file, mut hash) = (open(file)?, hasher());
        loop {
            let part = file.fill_buf()?;
            if part.is_empty() {
                return Ok(Self(hash.finish()));
            }
            hash.write(part);
            let read = part.len();
            file.consume(read);
        }
    }

    /// Returns the content that two files have, or `None` if they differ.
    pub(super) fn of_both(one: &Path, other: &Path) -> io::Result<Option<Self>> {
        let (mut one, mut other, mut hash) = (open(one)?, open(other)?, hasher());
        loop {
            let (a, b) = (one.fill_buf()?, other.fill_buf()?);
            let read = a.len().min(b.len());
            let same = a.get(..read).filter(|same| b.get(..read) == Some(same));
            match same {
                Some([]) => return Ok((a.len() == b.len()).then(|| Self(hash.finish()))),
                Some(same) => hash.write(same),
                None => return Ok(None),
            }
            one.consume(read);
            other.consume(read);
        }
    }
}

fn open(file: &Path) -> io::Result<BufReader<File>> {
    Ok(BufReader::with_capacity(PART, File::open(file)?))
}

fn hasher() -> DefaultHasher {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.build_hasher()
}

/// The size of a part that is read at once.
const PART: usize = 1 << 17;

/// The directory of this process.
struct CopyDirectory {
    path: PathBuf,
    /// The process that created it. A fork exits without removing it.
    process: u32,
    /// Keeps the directory locked until the process ends, in whatever way; see `sweep`.
    _lock: File,
}

static DIRECTORY: OnceLock<CopyDirectory> = OnceLock::new();

/// Returns the directory of this process, which only its user can access.
fn directory() -> io::Result<&'static Path> {
    static CREATING: Lock<()> = Lock::new(());
    let _guard = CREATING.lock();
    if let Some(directory) = DIRECTORY.get() {
        return Ok(&directory.path);
    }
    let root = std::path::absolute(std::env::temp_dir())?;
    sweep(&root);
    let (path, lock) = create_locked(&root)?;
    // SAFETY: `atexit` requires a function that can be called when the process exits; `remove` only uses statics.
    unsafe { atexit(remove) };
    Ok(&DIRECTORY.get_or_init(|| CopyDirectory { path, process: process::id(), _lock: lock }).path)
}

/// The prefix of the names of such directories.
const PREFIX: &str = "goondan-libraries-";

/// Creates a directory. It is locked before it gets its final name, so that no other process sweeps it.
fn create_locked(root: &Path) -> io::Result<(PathBuf, File)> {
    let unlocked = create_unlocked(root)?;
    let named = File::open(&unlocked).and_then(|lock| {
        // On a file system without locks, no directory is swept either.
        _ = lock.try_lock();
        // Two containers can have processes with the same id, but no two directories here have the same inode.
        let path = root.join(format!("{PREFIX}{}-{}", process::id(), lock.metadata()?.ino()));
        fs::rename(&unlocked, &path).map(|()| (path, lock))
    });
    if named.is_err() {
        // A failure to clean up would hide the error that caused it.
        _ = fs::remove_dir(&unlocked);
    }
    named
}

fn create_unlocked(root: &Path) -> io::Result<PathBuf> {
    for number in 0_u32.. {
        let path = root.join(format!("goondan-new-{}-{number}", process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            // Left by a process that was killed, or created by another user, so it must not be used.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes the directories of processes that were killed, which are those that nothing locks. Directories that cannot
/// be opened or removed belong to other users and are skipped.
fn sweep(root: &Path) {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(directory) = File::open(entry.path())
            && directory.try_lock().is_ok()
        {
            _ = fs::remove_dir_all(entry.path());
        }
    }
}

unsafe extern "C" {
    /// Of the C library: registers `end` to be called when the process exits.
    fn atexit(end: extern "C" fn()) -> i32;
}

extern "C" fn remove() {
    if let Some(directory) = DIRECTORY.get().filter(|directory| directory.process == process::id()) {
        // If it cannot be removed, it stays until the directory for temporary files is cleaned.
        _ = fs::remove_dir_all(&directory.path);
    }
}
