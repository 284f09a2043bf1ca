//! Decides whether one call may change its place.
// TREE-01

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::MetadataExt;
use goondan::extension::BundleFiles;
use goondan::{Error, Result};

use crate::own_files::OwnFiles;
use crate::place::Place;
use crate::protect::Protected;

/// A protected path is not changed.
const PROTECTED: &str = "E_FILE_PROTECTED";

/// The files that one call must not change.
pub(crate) struct Guard<'a> {
    place: &'a Place,
    protected: &'a Protected,
    /// None in work trees, where a commit is the review.
    own: OwnFiles,
    /// The root, without links.
    root: PathBuf,
}

impl<'a> Guard<'a> {
    pub(crate) fn new(place: &'a Place, protected: &'a Protected, bundle: Arc<BundleFiles>) -> Self {
        let root = place.root.canonicalize().unwrap_or_else(|_| place.root.clone());
        let own = if place.is_in_work_tree { OwnFiles::default() } else { OwnFiles::new(bundle, &root) };
        Self { place, protected, own, root }
    }

    /// # Errors
    /// `E_FILE_PROTECTED` when the place is protected, or the target of its links.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_at(false)
    }

    /// # Errors
    /// `E_FILE_PROTECTED` when the place is protected, where a link is not its target; when it is a link by which
    /// the bundle finds its files; and if `recursive`, when something below it is protected.
    pub(crate) fn check_deletion(&self, recursive: bool) -> Result<()> {
        self.check_at(true)?;
        if self.place.is_in_work_tree {
            return Ok(());
        }
        self.check_link(&self.place.path)?;
        if recursive { self.check_below() } else { Ok(()) }
    }

    /// # Errors
    /// `E_FILE_PROTECTED` when the bundle would have other documents if the file had this content.
    pub(crate) fn check_content(&self, content: &[u8]) -> Result<()> {
        if self.own.would_change(&self.paths(), content) {
            let path = self.place.shown();
            let message =
                format!("{} is protected: the bundle of the agent would read what is written", path.display());
            return Err(refused(message));
        }
        Ok(())
    }

    /// Whether [`check_content`](Self::check_content) could refuse some content.
    pub(crate) fn judges_content(&self) -> bool {
        self.own.may_change(&self.paths())
    }

    fn check_at(&self, is_link: bool) -> Result<()> {
        let Self { place, protected, own, root } = self;
        let real = place.real(is_link);
        for path in [&place.path, &real] {
            if protected.has(place, path) {
                return Err(self.obeyed(path));
            }
        }
        let metadata = if is_link { place.dir.symlink_metadata(&place.path) } else { place.dir.metadata(&place.path) };
        let id = metadata.ok().filter(|metadata| metadata.is_file()).map(|metadata| (metadata.dev(), metadata.ino()));
        if own.has(&root.join(&real), id) { Err(self.own(&place.path)) } else { Ok(()) }
    }

    /// Checks that the path below the root is no link by which the bundle finds its files.
    fn check_link(&self, path: &Path) -> Result<()> {
        let is_link = self.place.dir.symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
        // It may lead out of the root.
        let target = self.root.join(path).canonicalize();
        let leads = is_link && target.is_ok_and(|target| self.own.are_below(&target));
        if leads { Err(self.own(path)) } else { Ok(()) }
    }

    fn check_below(&self) -> Result<()> {
        let Self { place, protected, own, root } = self;
        if own.are_below(&root.join(place.real(true))) {
            return Err(self.own(&place.path));
        }
        let mut pending = vec![place.path.clone()];
        while let Some(directory) = pending.pop() {
            // Deleting it reports the fault, if there is one.
            let Ok(entries) = place.dir.read_dir(&directory) else { continue };
            for entry in entries.filter_map(|entry| entry.ok()) {
                let path = directory.join(entry.file_name());
                if protected.has(place, &path) {
                    return Err(self.obeyed(&path));
                }
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => pending.push(path),
                    Ok(kind) if kind.is_symlink() => self.check_link(&path)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Returns the place as absolute paths: as it is named, and without links.
    fn paths(&self) -> [PathBuf; 2] {
        [&self.place.path, &self.place.real(false)].map(|path| self.root.join(path))
    }

    fn obeyed(&self, path: &Path) -> Error {
        refused(format!("{} is protected: programs obey what is there", self.place.absolute(path).display()))
    }

    fn own(&self, path: &Path) -> Error {
        refused(format!("{} is protected: it belongs to the agent", self.place.absolute(path).display()))
    }
}

fn refused(message: String) -> Error {
    Error::new(PROTECTED, message)
        .suggest("let a person change it, or take it out of what `protect` in the config of the extension protects")
}
