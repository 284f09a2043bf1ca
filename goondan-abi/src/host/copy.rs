//! The copies that libraries are loaded from, in a directory that only this process uses. It is removed when the
//! process exits or, if the process is killed, when another one creates its own.
//!
//! Every library is loaded from a copy, not only one that replaces another: the first one is the one that will be
//! replaced. The system identifies libraries by path, and returns the old code for a path that it knows; and writing
//! to a mapped file, as `cp` does, changes or crashes the program that runs it.

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, OnceLock};

use foldhash::quality::RandomState;
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

/// The content of a file, by which this process tells files apart: of two files with other contents it differs,
/// except by a chance that does not matter. The key of the hash is random. It takes a fraction of the time of a
/// digest, which protects a bundle that pins one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content(u64);

impl Content {
    pub(super) fn of(file: &Path) -> io::Result<Self> {
        let (mut file, mut hash) = (Parts::open(file)?, hasher());
        loop {
            match file.next()? {
                [] => return Ok(Self(hash.finish())),
                part => hash.write(part),
            }
        }
    }

    /// Returns the content that two files have, or `None` if they differ.
    pub(super) fn of_both(one: &Path, other: &Path) -> io::Result<Option<Self>> {
        let (mut one, mut other, mut hash) = (Parts::open(one)?, Parts::open(other)?, hasher());
        loop {
            match (one.next()?, other.next()?) {
                ([], []) => return Ok(Some(Self(hash.finish()))),
                (part, same) if part == same => hash.write(part),
                _ => return Ok(None),
            }
        }
    }
}

/// The parts of a file. All but the last are equally long, because the hash depends on where parts begin.
struct Parts {
    file: File,
    part: Box<[u8]>,
}

impl Parts {
    fn open(file: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(file)?, part: vec![0; 1 << 17].into() })
    }

    /// Reads the next part, which is empty at the end.
    fn next(&mut self) -> io::Result<&[u8]> {
        let mut left = &mut *self.part;
        while !left.is_empty() {
            match self.file.read(left) {
                Ok(0) => break,
                Ok(read) => left = &mut left[read..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let left = left.len();
        Ok(&self.part[..self.part.len() - left])
    }
}

fn hasher() -> impl Hasher {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::default);
    KEY.build_hasher()
}

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
