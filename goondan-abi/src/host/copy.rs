//! Owns the copies that libraries are loaded from: files that nobody else writes to, in a directory that goes away with the
//! process.
//!
//! Every library is loaded from a copy, not only one that comes in the place of another: the first is the one that will be
//! replaced. The system tells files by their names, and gives the old code again for a name that it knows; and a mapped
//! file that somebody writes to, as `cp` does, changes or ends the program that runs it.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

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
}

static DIRECTORY: OnceLock<Directory> = OnceLock::new();

/// The directory of this process, which only its user can look into.
fn directory() -> io::Result<&'static Path> {
    if let Some(directory) = DIRECTORY.get() {
        return Ok(&directory.path);
    }
    let made = Directory { path: make_directory()?, process: process::id() };
    let mine = made.path.clone();
    let directory = DIRECTORY.get_or_init(|| made);
    if directory.path == mine {
        // SAFETY: The function takes a function that may be called at any time from the end of `main` on.
        unsafe { atexit(remove) };
    } else {
        // Another thread was faster.
        fs::remove_dir(mine)?;
    }
    Ok(&directory.path)
}

fn make_directory() -> io::Result<PathBuf> {
    let root = std::path::absolute(std::env::temp_dir())?;
    for number in 0_u32.. {
        let path = root.join(format!("goondan-{}-{number}", process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            // Left behind by a process that was killed, or put there by somebody: it is not ours.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
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
