//! Owns the copies that libraries are loaded from: files that nobody else writes to, in a directory that goes away with the
//! process, or if that is killed, when another one makes its own.
//!
//! Every library is loaded from a copy, not only one that comes in the place of another: the first is the one that will be
//! replaced. The system tells files by their names, and gives the old code again for a name that it knows; and a mapped
//! file that somebody writes to, as `cp` does, changes or ends the program that runs it.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Makes a copy of `file` under a name that no copy had before.
pub(super) fn of(file: &Path) -> io::Result<PathBuf> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // The name of the file at the end, for whoever looks at a backtrace or a list of mapped files.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let copy = directory()?.join(format!("{}-{name}", LAST.fetch_add(1, Ordering::Relaxed)));
    fs::copy(file, &copy)?;
    Ok(copy)
}

/// Whether two files hold the same bytes.
pub(super) fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        for (file, part) in [(&mut one, &mut left), (&mut other, &mut right)] {
            part.clear();
            file.by_ref().take(1 << 18).read_to_end(part)?;
        }
        if left != right || left.is_empty() {
            return Ok(left == right);
        }
    }
}

struct Directory {
    path: PathBuf,
    /// A fork of the process is not the one whose end counts.
    process: u32,
    /// Locked for as long as the process lives, however that ends: see `sweep`.
    _lock: File,
}

static DIRECTORY: OnceLock<Directory> = OnceLock::new();

/// The directory of this process, which only its user can look into.
fn directory() -> io::Result<&'static Path> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(directory) = DIRECTORY.get() {
        return Ok(&directory.path);
    }
    let root = std::path::absolute(std::env::temp_dir())?;
    sweep(&root);
    let (path, lock) = make_directory(&root)?;
    // SAFETY: The function takes a function that may be called at any time from the end of `main` on.
    unsafe { atexit(remove) };
    Ok(&DIRECTORY.get_or_init(|| Directory { path, process: process::id(), _lock: lock }).path)
}

/// What the names of such directories begin with.
const PREFIX: &str = "goondan-libraries-";

/// Makes a directory that is locked from the moment on that it has its name.
fn make_directory(root: &Path) -> io::Result<(PathBuf, File)> {
    let unlocked = make_unlocked(root)?;
    let named = File::open(&unlocked).and_then(|lock| {
        // Where nothing can be locked, nothing is swept.
        _ = lock.try_lock();
        // Processes of two containers may have one number, but no two directories here have one inode.
        let path = root.join(format!("{PREFIX}{}-{}", process::id(), lock.metadata()?.ino()));
        fs::rename(&unlocked, &path).map(|()| (path, lock))
    });
    if named.is_err() {
        // The first error is the one to tell.
        _ = fs::remove_dir(&unlocked);
    }
    named
}

fn make_unlocked(root: &Path) -> io::Result<PathBuf> {
    for number in 0_u32.. {
        let path = root.join(format!("goondan-new-{}-{number}", process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            // Left behind by a process that was killed, or put there by somebody: it is not ours.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes the directories of processes that were killed: nobody holds their locks. What cannot be looked into or removed
/// is somebody else's.
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
    /// Of the C library: has `end` called when the process exits.
    fn atexit(end: extern "C" fn()) -> i32;
}

extern "C" fn remove() {
    if let Some(directory) = DIRECTORY.get().filter(|directory| directory.process == process::id()) {
        // What cannot be removed is for whoever cleans the directory of temporary files.
        _ = fs::remove_dir_all(&directory.path);
    }
}
