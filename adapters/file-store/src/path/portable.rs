//! The operations on systems that are no Unix: by path, after a check of each directory on the way.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::PathBuf;

use super::{Access, Found, Reason, Refused, StorePath};

/// Nothing can be opened relative to a directory here.
pub(super) fn hold(_: &StorePath) -> Option<File> {
    None
}

pub(super) fn open(path: &StorePath, access: Access) -> io::Result<File> {
    check_above(path)?;
    match find(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => _ = found?,
    }
    let mut options = OpenOptions::new();
    match access {
        Access::Read => options.read(true),
        Access::Write => options.write(true),
        Access::CreateNew => options.write(true).create_new(true),
        Access::Create => options.read(true).write(true).create(true).truncate(false),
        Access::Append => options.read(true).append(true).create(true),
    };
    options.open(&path.path)
}

pub(super) fn find(path: &StorePath) -> io::Result<Found> {
    check_above(path)?;
    let found = if path.depth == 0 { fs::metadata(&path.path) } else { fs::symlink_metadata(&path.path) }?;
    match found.file_type() {
        kind if kind.is_file() => Ok(Found::File { len: found.len() }),
        kind if kind.is_dir() => Ok(Found::Directory),
        kind if kind.is_symlink() => Err(path.refused(Reason::SymbolicLink)),
        _ => Err(path.refused(Reason::NotAFile)),
    }
}

pub(super) fn names(path: &StorePath) -> io::Result<Vec<PathBuf>> {
    find(path)?;
    fs::read_dir(&path.path)?.map(|entry| Ok(entry?.file_name().into())).collect()
}

pub(super) fn create_dir(path: &StorePath) -> io::Result<()> {
    check_above(path)?;
    fs::create_dir(&path.path)
}

pub(super) fn rename(from: &StorePath, to: &StorePath) -> io::Result<()> {
    check_above(from)?;
    check_above(to)?;
    fs::rename(&from.path, &to.path)
}

pub(super) fn remove_file(path: &StorePath) -> io::Result<()> {
    check_above(path)?;
    fs::remove_file(&path.path)
}

/// Only Unix supports and needs syncing a directory.
pub(super) fn sync_dir(_: &StorePath) -> io::Result<()> {
    Ok(())
}

/// The directory has the permissions of the home directory, which holds it.
pub(super) fn make_private(_: &StorePath) -> io::Result<()> {
    Ok(())
}

/// The standard library cannot tell files apart here. A file that was removed is noticed; one that was replaced is not.
pub(super) fn is_same_file(_: &Metadata, _: &Metadata) -> bool {
    true
}

pub(super) fn has_other_names(_: &Metadata) -> bool {
    false
}

fn check_above(path: &StorePath) -> io::Result<()> {
    let (workspace, below) = path.split();
    let mut reached = workspace.to_owned();
    for name in below.take(path.depth.saturating_sub(1)) {
        reached.push(name);
        let reason = match fs::symlink_metadata(&reached)? {
            found if found.is_dir() => continue,
            found if found.is_symlink() => Reason::SymbolicLink,
            _ => Reason::NotADirectory,
        };
        return Err(io::Error::other(Refused { path: reached, reason }));
    }
    Ok(())
}
