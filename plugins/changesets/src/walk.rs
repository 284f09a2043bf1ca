//! Looks at a directory: which files are not those of a listing.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cap_std::fs::{Dir, Metadata, PermissionsExt};

use crate::ignored::Rules;
use crate::listing::{Listing, Stamp};
use crate::objects::{LINK, SUBMODULE};

const FILE: &str = "100644";
const PROGRAM: &str = "100755";

/// The differences between a directory and a listing. Paths are relative to it.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// Files of the listing that may have changed.
    pub(crate) changed: Vec<Found>,
    /// Files that are not in the listing, and not ignored.
    pub(crate) new: Vec<Found>,
    /// Files of the listing that are gone.
    pub(crate) gone: Vec<Vec<u8>>,
    /// Paths that git keeps for itself.
    pub(crate) forbidden: Vec<Vec<u8>>,
}

/// A file or a link.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: Vec<u8>,
    pub(crate) mode: &'static str,
    pub(crate) stamp: Stamp,
}

impl Found {
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }
}

/// A walk through a directory.
struct Walk<'a> {
    root: &'a Dir,
    listing: &'a Listing,
    tracked: &'a Listing,
    /// Whether the file system knows which files are programs.
    modes: bool,
    seen: BTreeSet<Vec<u8>>,
    differences: Differences,
}

/// A directory of a walk.
struct Level {
    path: Vec<u8>,
    rules: Rules,
    /// Whether new files in it are ignored.
    is_ignored: bool,
}

/// Returns how `root` differs from a listing. The files of `tracked` are never ignored. Links and submodules are not
/// entered.
pub(crate) fn differences(
    root: &Dir,
    listing: &Listing,
    tracked: &Listing,
    rules: &Rules,
    modes: bool,
) -> io::Result<Differences> {
    let mut walk = Walk { root, listing, tracked, modes, seen: BTreeSet::new(), differences: Differences::default() };
    let rules = rules.enter(root, Path::new("."));
    let mut pending = vec![Level { path: Vec::new(), rules, is_ignored: false }];
    while let Some(level) = pending.pop() {
        walk.enter(&level, &mut pending)?;
    }
    let Walk { mut differences, seen, .. } = walk;
    differences.gone = listing.files.keys().filter(|path| !seen.contains(*path)).cloned().collect();
    Ok(differences)
}

impl Walk<'_> {
    fn enter(&mut self, level: &Level, pending: &mut Vec<Level>) -> io::Result<()> {
        let directory = if level.path.is_empty() { Path::new(".") } else { Path::new(OsStr::from_bytes(&level.path)) };
        let entries = match self.root.read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let path = match &level.path[..] {
                // The file that names the repository.
                [] if name == ".git" => continue,
                [] => name.as_bytes().to_owned(),
                above => [above, b"/", name.as_bytes()].concat(),
            };
            if work_trees::is_git(&name) {
                // Ignored files are not looked at.
                if !level.is_ignored {
                    self.differences.forbidden.push(path);
                }
                continue;
            }
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let is_ignored = level.is_ignored || level.rules.ignore(&path, metadata.is_dir());
            if !metadata.is_dir() {
                if !is_ignored || self.tracked.files.contains_key(&path) {
                    self.file(path, &metadata);
                }
            } else if self.listing.files.get(&path).is_some_and(|file| file.blob.mode == SUBMODULE) {
                self.seen.insert(path);
            } else if !is_ignored || self.tracked.has_below(&path) {
                let rules = level.rules.enter(self.root, Path::new(OsStr::from_bytes(&path)));
                pending.push(Level { path, rules, is_ignored });
            }
        }
        Ok(())
    }

    fn file(&mut self, path: Vec<u8>, metadata: &Metadata) {
        let known = self.listing.files.get(&path);
        let mode = match known {
            _ if metadata.is_symlink() => LINK,
            // A device, a pipe or the like.
            _ if !metadata.is_file() => return,
            Some(known) if !self.modes && known.blob.mode == PROGRAM => PROGRAM,
            _ if self.modes && metadata.permissions().mode() & 0o100 != 0 => PROGRAM,
            _ => FILE,
        };
        let found = Found { path, mode, stamp: Stamp::of(metadata) };
        match known {
            Some(known) => {
                self.seen.insert(found.path.clone());
                if known.stamp != Some(found.stamp) || known.blob.mode != mode {
                    self.differences.changed.push(found);
                }
            }
            None => self.differences.new.push(found),
        }
    }
}
