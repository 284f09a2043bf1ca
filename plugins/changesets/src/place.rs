//! Puts files into a directory that others may change: no link leads out of it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;

use crate::listing::Stamp;
use crate::objects::{LINK, SUBMODULE};
use crate::walk::Found;

/// A directory with the files of a tree.
pub(crate) struct Place {
    pub(crate) root: Dir,
    /// Where files are written before they take their places.
    scratch: Dir,
    /// Directories that are there.
    made: HashSet<PathBuf>,
}

impl Place {
    /// # Errors
    /// One of the directories cannot be opened.
    pub(crate) fn open(root: &Path, scratch: &Path) -> io::Result<Self> {
        let open = |path| Dir::open_ambient_dir(path, ambient_authority());
        Ok(Self { root: open(root)?, scratch: open(scratch)?, made: HashSet::new() })
    }

    /// Returns the content of a file, or where a link leads. `None` if it is gone by now.
    pub(crate) fn read(&self, found: &Found) -> io::Result<Option<Vec<u8>>> {
        let content = if found.mode == LINK {
            self.root.read_link_contents(found.path()).map(|target| target.as_os_str().as_bytes().to_owned())
        } else {
            self.read_file(found.path())
        };
        match content {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        // It may have become a pipe since.
        let mut options = OpenOptions::new();
        let mut file =
            self.root.open_with(path, options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()))?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("{} is no file any more", path.display())));
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        Ok(content)
    }

    /// Puts a file of a tree at `path`, in place of whatever is there. At each moment there is all of one of them.
    pub(crate) fn put(&mut self, path: &[u8], mode: &str, content: &[u8]) -> io::Result<Option<Stamp>> {
        let path = Path::new(OsStr::from_bytes(path));
        self.make_parent(path)?;
        if mode == SUBMODULE {
            return self.make(path).map(|()| None);
        }
        // The rest of an interrupted one.
        let new = Path::new("new");
        remove(&self.scratch, new)?;
        if mode == LINK {
            self.scratch.symlink_contents(OsStr::from_bytes(content), new)?;
        } else {
            let permissions = if mode == "100755" { 0o777 } else { 0o666 };
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(permissions);
            self.scratch.open_with(new, &options)?.write_all(content)?;
        }
        if self.root.symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
            self.root.remove_dir_all(path)?;
            self.made.clear();
        }
        self.scratch.rename(new, &self.root, path)?;
        Ok(Some(Stamp::of(&self.root.symlink_metadata(path)?)))
    }

    /// Removes a file, and the directories above it that are empty then.
    pub(crate) fn remove(&mut self, path: &[u8]) -> io::Result<()> {
        let path = Path::new(OsStr::from_bytes(path));
        // Not through a link, which could lead to a file that is not in the tree.
        let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        if above.clone().any(|above| self.root.symlink_metadata(above).is_ok_and(|metadata| metadata.is_symlink())) {
            return Ok(());
        }
        remove(&self.root, path)?;
        self.made.clear();
        for above in above {
            if self.root.remove_dir(above).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn make_parent(&mut self, path: &Path) -> io::Result<()> {
        let Some(parent) = path.parent().filter(|parent| !self.made.contains(*parent)) else { return Ok(()) };
        let above: Vec<_> = parent.ancestors().filter(|above| !above.as_os_str().is_empty()).collect();
        for directory in above.into_iter().rev() {
            self.make(directory)?;
        }
        self.made.insert(parent.to_owned());
        Ok(())
    }

    /// Makes a directory, in place of a file or a link.
    fn make(&self, directory: &Path) -> io::Result<()> {
        match self.root.symlink_metadata(directory) {
            Ok(metadata) if metadata.is_dir() => return Ok(()),
            Ok(_) => self.root.remove_file(directory)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.root.create_dir(directory)
    }
}

/// Removes a file, a link or a directory, if there is one.
fn remove(directory: &Dir, path: &Path) -> io::Result<()> {
    let removed = match directory.symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => directory.remove_dir_all(path),
        Ok(_) => directory.remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(()),
        _ => Err(error),
    })
}
