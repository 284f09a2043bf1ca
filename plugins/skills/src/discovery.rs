//! The skills in some directories. Everything here blocks its thread.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use goondan::extension::{BundleFile, BundleFileError};

use crate::describe::{About, describe};

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";
/// The number of bytes of a file in which its description is found.
const HEAD: u64 = 64 * 1024;
/// The largest number of skills.
const MOST: usize = 500;

/// A skill.
#[derive(Clone, Debug)]
pub(crate) struct Skill {
    pub(crate) description: String,
    /// The number of skills that were found before it.
    place: usize,
    /// Its `SKILL.md`.
    pub(crate) path: PathBuf,
    pub(crate) dir: PathBuf,
}

/// The findings below a root.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Without links.
    root: PathBuf,
    /// By name.
    pub(crate) skills: BTreeMap<String, Skill>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

impl Found {
    /// Searches `directories` below `root`, in their order. A directory that does not exist has no skills.
    // PATTERN-SKILL-07, PATTERN-SKILL-11
    pub(crate) fn scan(root: &Path, directories: &[PathBuf]) -> Self {
        let Ok(root) = root.canonicalize() else { return Self::default() };
        let mut found = Self { root, ..Self::default() };
        for directory in directories.iter().map(|directory| found.root.join(directory)).collect::<Vec<_>>() {
            match fs::read_dir(&directory).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
                Ok(mut entries) => {
                    entries.sort_by_key(DirEntry::file_name);
                    entries.into_iter().for_each(|entry| found.add(&entry.path()));
                }
                Err(error) if is_absence(&error) => {}
                Err(error) => found.warn(&directory, error),
            }
        }
        found
    }

    /// Returns the skills with their names, by directory in the order of the directories, then by name.
    pub(crate) fn in_order(&self) -> Vec<(&str, &Skill)> {
        let mut skills: Vec<_> = self.skills.iter().map(|(name, skill)| (&**name, skill)).collect();
        skills.sort_by_key(|(_, skill)| skill.place);
        skills
    }

    /// Adds the skill in the folder `folder`, if it is one.
    fn add(&mut self, folder: &Path) {
        // PATTERN-SKILL-09
        let (dir, path) = match self.real(folder).and_then(|dir| Ok((self.real(&dir.join(FILE))?, dir))) {
            Ok((path, dir)) => (dir, path),
            Err(error) if is_absence(&error) => return,
            Err(error) => return self.warn(folder, error),
        };
        let name = folder.file_name().and_then(|name| name.to_str()).filter(|name| !name.contains(char::is_control));
        let Some(name) = name else { return self.warn(folder, "its name is not plain text") };
        if let Some(first) = self.skills.get(name).map(|first| first.dir.clone()) {
            return self.warn(folder, format_args!("the skill in {} has the same name", first.display()));
        }
        if self.skills.len() == MOST {
            return self.warn(folder, format_args!("there are {MOST} skills already"));
        }
        match self.read(&path, HEAD) {
            Ok(text) => {
                let About { name: called, description } = describe(name, &text);
                if let Some(called) = called.filter(|called| called != name) {
                    let message = format!("{}: the skill is called `{name}`, not `{called}`", path.display());
                    self.warnings.push(message);
                }
                let place = self.skills.len();
                self.skills.insert(name.to_owned(), Skill { description, place, path, dir });
            }
            Err(error) => self.warn(&path, error),
        }
    }

    /// Returns the beginning of a file, at most `limit` bytes. What is not UTF-8 is replaced.
    ///
    /// # Errors
    /// When it cannot be read, is no plain file, or a link leads out of the root.
    pub(crate) fn read(&self, path: &Path, limit: u64) -> Result<String, BundleFileError> {
        let bytes = BundleFile::open_within(&self.root, path)?.read_beginning(limit)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns a path without links.
    ///
    /// # Errors
    /// When it leads out of the root, or to nothing.
    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        let real = path.canonicalize()?;
        if real.starts_with(&self.root) { Ok(real) } else { Err(io::Error::other("a link leads out of the root")) }
    }

    fn warn(&mut self, path: &Path, why: impl std::fmt::Display) {
        self.warnings.push(format!("{} is left out: {why}", path.display()));
    }
}

/// Whether there is nothing, and nothing to warn about.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
