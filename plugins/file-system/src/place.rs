//! Paths, which lead to places below the roots.
//!
//! Every access goes through the handle of a root: the kernel resolves the path below it (`openat2` with
//! `RESOLVE_BENEATH`, or component by component where there is none), so that neither a link nor `..` leads out, also
//! if another process changes the directories meanwhile. Nothing here compares names to decide about permission.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use goondan::{Error, Result};
use rustix::fs::OFlags;

/// A path leads out of the roots.
const OUTSIDE: &str = "E_FILE_OUTSIDE";
/// There is something else than a file, such as a directory or a device.
const KIND: &str = "E_FILE_KIND";
/// The system refuses.
const IO: &str = "E_FILE_IO";

/// The directories below which the tools work, as absolute paths. There is at least one.
#[derive(Clone, Debug)]
pub(crate) struct Roots {
    /// Work trees, which come before all others.
    pub(crate) work_trees: Vec<PathBuf>,
    pub(crate) others: Arc<[PathBuf]>,
}

/// A place below a root, at which there may be something.
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    /// Whether it is in a work tree that another extension has made.
    pub(crate) is_in_work_tree: bool,
    pub(crate) dir: Dir,
    /// The path from the root. Below it, `.` is the root itself.
    pub(crate) path: PathBuf,
}

impl Roots {
    /// Returns the place to which `path` leads: below the first root if it is relative, else below the root that it
    /// begins with.
    ///
    /// # Errors
    /// `E_FILE_OUTSIDE` when it begins with no root; `E_FILE_IO` when the root cannot be opened.
    pub(crate) fn place(&self, path: &str) -> Result<Place> {
        let all = || {
            let work_trees = self.work_trees.iter().map(|root| (root, true));
            work_trees.chain(self.others.iter().map(|root| (root, false)))
        };
        let found = match Path::new(path) {
            path if path.is_relative() => all().next().map(|root| (root, path)),
            path => all().find_map(|root| Some((root, path.strip_prefix(root.0).ok()?))),
        };
        let Some(((root, is_in_work_tree), rest)) = found else {
            let roots: Vec<_> = all().map(|(root, _)| root).map(|root| root.display().to_string()).collect();
            let message = format!("`{path}` is outside of the directories that may be used: {}", roots.join(", "));
            return Err(Error::new(OUTSIDE, message).suggest("use a path below them"));
        };
        let mut below: PathBuf = rest.components().filter(|part| *part != Component::CurDir).collect();
        if below.as_os_str().is_empty() {
            below.push(".");
        }
        let dir = Dir::open_ambient_dir(root, ambient_authority()).map_err(|error| io_error(root, error))?;
        Ok(Place { root: root.clone(), is_in_work_tree, dir, path: below })
    }
}

impl Place {
    /// Returns the absolute path of `path`, which is relative to the root.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        if path == Path::new(".") { self.root.clone() } else { self.root.join(path) }
    }

    /// Returns the absolute path of the place.
    pub(crate) fn shown(&self) -> PathBuf {
        self.absolute(&self.path)
    }

    /// Returns the path without links and `..`, but for its last component if `is_link`, which says that a link itself
    /// is meant. A file that is not there yet has no links.
    pub(crate) fn real(&self, is_link: bool) -> PathBuf {
        let (mut real, mut parts) = (PathBuf::new(), self.path.components().peekable());
        while let Some(part) = parts.next() {
            match part {
                Component::Normal(name) => {
                    real.push(name);
                    if !is_link || parts.peek().is_some() {
                        real = self.dir.canonicalize(&real).unwrap_or(real);
                    }
                }
                Component::ParentDir => _ = real.pop(),
                _ => {}
            }
        }
        real
    }

    /// Returns the error for a failed access.
    pub(crate) fn failed(&self, error: io::Error) -> Error {
        io_error(&self.shown(), error)
    }

    /// Opens the file, and makes sure that it is one.
    ///
    /// # Errors
    /// `E_FILE_KIND` when it is something else.
    pub(crate) fn open(&self, options: &mut OpenOptions) -> Result<File> {
        // Something else may have effects when it is opened, and a pipe waits for its other end.
        if let Ok(metadata) = self.dir.metadata(&self.path)
            && !metadata.is_file()
        {
            return Err(self.no_file(metadata.is_dir()));
        }
        // It may have become a pipe since.
        options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
        let file = self.dir.open_with(&self.path, options).map_err(|error| self.failed(error))?;
        let metadata = file.metadata().map_err(|error| self.failed(error))?;
        if metadata.is_file() { Ok(file) } else { Err(self.no_file(metadata.is_dir())) }
    }

    /// Returns the error for something that is no file.
    pub(crate) fn no_file(&self, is_dir: bool) -> Error {
        let shown = self.shown();
        if is_dir {
            let message = format!("{} is a directory", shown.display());
            return Error::new(KIND, message).suggest("list it with `file-system__list`");
        }
        let message = format!("{} is no file, but a device, a pipe or the like", shown.display());
        Error::new(KIND, message).suggest("use another path")
    }
}

fn io_error(path: &Path, error: io::Error) -> Error {
    let path = path.display();
    match error.kind() {
        // Only `cap-std` makes one that has no number of the system.
        ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            let message = format!("{path} leads out of the directories that may be used");
            Error::new(OUTSIDE, message).suggest("use a path whose links and `..` stay inside")
        }
        ErrorKind::NotFound => Error::new(IO, format!("there is no {path}"))
            .suggest("list the directory above it with `file-system__list`"),
        _ => Error::new(IO, format!("{path}: {error}")),
    }
}
