//! Paths of the store, and the one place that opens files by them. Below a workspace no link is followed.
//!
//! # Links
//! A tool that writes files could put a link where the store expects a file or directory, and the store would then
//! write, or show, files elsewhere. So each operation starts at the workspace directory and opens the directories
//! on the way one by one, each within the one before and none through a symbolic link. A file that is renamed or
//! replaced meanwhile leads to an error, never out of the workspace. Files are opened only if they are regular files:
//! opening a pipe would wait for its other end. A file that is written in place must have one name, because another
//! name (a hard link) may be outside.
//!
//! This keeps a tool from having the store write or show files that the tool itself may not. It does not confine the
//! tool: a program with the same user id can write to the same places by itself.
//!
//! Where the system is no Unix, each directory on the way is checked before the path as a whole is used. A link that
//! replaces a directory between the two is followed.
//!
//! # Permissions
//! Directories and files are made for their owner alone, whatever the umask is.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as system;

#[cfg(not(unix))]
mod portable;
#[cfg(not(unix))]
use portable as system;

use std::cmp::Ordering;
use std::error::Error;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The path of a workspace directory, or of something below it. It has no `AsRef<Path>`, so that the functions of
/// `std::fs`, which follow links, do not accept it by mistake.
#[derive(Clone, Debug)]
pub struct StorePath {
    path: PathBuf,
    /// The number of its last components that are below the workspace directory.
    depth: usize,
    /// A directory on the way that is open already.
    held: Option<Arc<Held>>,
}

/// An open directory below a workspace.
#[derive(Debug)]
struct Held {
    dir: File,
    /// The number of the last components of its path that are below the workspace directory.
    depth: usize,
}

/// The way in which [`StorePath::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// The file must exist.
    Write,
    /// The file must not exist, and is created.
    CreateNew,
    /// The file is created if it does not exist. Reads and writes.
    Create,
    /// Like `Create`; each write goes to the end.
    Append,
}

/// The kind of thing that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    File { len: u64 },
    Directory,
}

/// Why something below a workspace is not opened: the source of an [`io::Error`].
#[derive(Debug)]
pub(super) struct Refused {
    path: PathBuf,
    reason: Reason,
}

#[derive(Clone, Copy, Debug)]
enum Reason {
    SymbolicLink,
    HardLink,
    NotAFile,
    NotADirectory,
}

impl StorePath {
    /// The workspace directory `path`. It may be a link, and the directories above it too.
    pub(super) fn workspace(path: &Path) -> Self {
        Self { path: path.to_owned(), depth: 0, held: None }
    }

    pub(super) fn join(&self, below: &str) -> Self {
        let depth = self.depth + Path::new(below).components().count();
        Self { path: self.path.join(below), depth, held: self.held.clone() }
    }

    /// Returns the path of a directory that stays open as long as the path, or one that is made of it, exists: what is
    /// below it is reached from there. A directory that is moved meanwhile is still the one that is used.
    pub(super) fn hold(&self) -> Self {
        let held = system::hold(self).map(|dir| Arc::new(Held { dir, depth: self.depth }));
        Self { held, ..self.clone() }
    }

    /// Returns the path with `suffix` appended to its last component.
    pub(super) fn with_suffix(&self, suffix: &str) -> Self {
        let mut path = self.path.clone().into_os_string();
        path.push(suffix);
        Self { path: path.into(), depth: self.depth, held: self.held_above(self.depth) }
    }

    /// Returns the directory that holds it. Above the workspace directory, links are followed.
    pub(super) fn parent(&self) -> Option<Self> {
        let path = self.path.parent().filter(|parent| !parent.as_os_str().is_empty())?;
        Some(Self { path: path.to_owned(), depth: self.depth.saturating_sub(1), held: self.held_above(self.depth) })
    }

    /// Returns the directory that is held if it is above the path that is so many components below the workspace
    /// directory.
    fn held_above(&self, depth: usize) -> Option<Arc<Held>> {
        self.held.clone().filter(|held| held.depth < depth)
    }

    pub(super) fn open(&self, access: Access) -> io::Result<File> {
        self.open_with_length(access).map(|(file, _)| file)
    }

    /// As [`open`](Self::open), and returns the length of the file too.
    pub(super) fn open_with_length(&self, access: Access) -> io::Result<(File, u64)> {
        let file = system::open(self, access)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(self.refused(Reason::NotAFile));
        }
        if access != Access::Read && system::has_other_names(&found) {
            return Err(self.refused(Reason::HardLink));
        }
        Ok((file, found.len()))
    }

    /// Returns the kind of file with this path, if there is one.
    pub(super) fn find(&self) -> io::Result<Option<Found>> {
        match system::find(self) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// Whether this leads to `file`, and not to another one or to none.
    pub(super) fn leads_to(&self, file: &Metadata) -> io::Result<bool> {
        match fs::symlink_metadata(&**self) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
            found => found.map(|found| system::is_same_file(&found, file)),
        }
    }

    /// Whether something has this path, of whatever kind.
    pub(super) fn exists(&self) -> bool {
        !matches!(self.find(), Ok(None))
    }

    /// Returns whether the directory exists. Fails if something else has its path.
    pub(super) fn is_directory(&self) -> io::Result<bool> {
        match self.find()? {
            None => Ok(false),
            Some(Found::Directory) => Ok(true),
            Some(Found::File { .. }) => Err(self.refused(Reason::NotADirectory)),
        }
    }

    /// Returns the length of the file, zero if it does not exist. Fails if something else has its path.
    pub(super) fn len(&self) -> io::Result<u64> {
        match self.find()? {
            None => Ok(0),
            Some(Found::File { len }) => Ok(len),
            Some(Found::Directory) => Err(self.refused(Reason::NotAFile)),
        }
    }

    /// Returns the paths of the entries of the directory, in no order.
    pub(super) fn entries(&self) -> io::Result<Vec<Self>> {
        let names = system::names(self)?;
        let depth = self.depth + 1;
        let entry = |name| Self { path: self.path.join(name), depth, held: self.held.clone() };
        Ok(names.into_iter().map(entry).collect())
    }

    /// Whether the name of the entry begins with `start`.
    pub(super) fn begins_with(&self, start: &str) -> bool {
        self.path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(start.as_bytes()))
    }

    pub(super) fn create_dir(&self) -> io::Result<()> {
        system::create_dir(self)
    }

    /// Renames a file or directory. A file at `to` is replaced.
    pub(super) fn rename(&self, to: &Self) -> io::Result<()> {
        system::rename(self, to)
    }

    /// Removes a file, or a link itself.
    pub(super) fn remove_file(&self) -> io::Result<()> {
        system::remove_file(self)
    }

    /// Removes a directory with everything in it. Links in it are removed and not followed.
    pub(super) fn remove_dir_all(&self) -> io::Result<()> {
        loop {
            match std::fs::remove_dir_all(&self.path) {
                // An opening that found the directory before it was renamed may still make a lock file in it.
                Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                removed => return removed,
            }
        }
    }

    /// Syncs the entries of the directory to the disk.
    pub(super) fn sync_dir(&self) -> io::Result<()> {
        system::sync_dir(self)
    }

    /// Takes the directory away from other users.
    pub(super) fn make_private(&self) -> io::Result<()> {
        system::make_private(self)
    }

    fn refused(&self, reason: Reason) -> io::Error {
        io::Error::other(Refused { path: self.path.clone(), reason })
    }

    /// Returns the workspace directory and the components below it.
    fn split(&self) -> (&Path, impl Iterator<Item = &Path>) {
        let (workspace, below) = self.split_at(0);
        (workspace, below.components().map(|component| Path::new(component.as_os_str())))
    }

    /// Returns the directory on the way that is so many components below the workspace directory, and the path below
    /// it.
    fn split_at(&self, depth: usize) -> (&Path, &Path) {
        let above = self.path.ancestors().nth(self.depth.saturating_sub(depth)).unwrap_or(&self.path);
        (above, self.path.strip_prefix(above).unwrap_or(Path::new("")))
    }
}

impl Deref for StorePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl PartialEq for StorePath {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for StorePath {}

impl PartialOrd for StorePath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for StorePath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.path.cmp(&other.path)
    }
}

impl Refused {
    /// Returns the remedy.
    pub(super) fn remedy(&self) -> &'static str {
        match self.reason {
            Reason::SymbolicLink => "replace it with what it links to: no link is followed below a workspace",
            Reason::HardLink => "replace it with a copy: another name of the file may be outside of the state root",
            Reason::NotAFile | Reason::NotADirectory => "move away what has this name, then try again",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.reason {
            Reason::SymbolicLink => "a symbolic link",
            Reason::HardLink => "a file with more than one name (a hard link)",
            Reason::NotAFile => "no file",
            Reason::NotADirectory => "no directory",
        };
        write!(f, "{} is {what}", self.path.display())
    }
}

impl Error for Refused {}
