//! Files that only their owner can read.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

/// Opens a file, and no link or pipe. If it is created, only its owner can read it.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = options.mode(0o600).custom_flags(flags.bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no file")) }
}

/// Creates a file, in the place of one that a process left which ended while it wrote it.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    open(path, OpenOptions::new().write(true).create_new(true))
}
