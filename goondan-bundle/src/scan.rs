//! Finds the files of a bundle: the named one, or those of a directory and the directories in it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use goondan_core::BundleFiles;

use crate::diagnostic::{Diagnostic, Diagnostics};

/// The files that make a directory a bundle. They are read first, and are bundle files whatever they contain.
const MAIN_NAMES: [&str; 2] = BundleFiles::MAIN_NAMES;

/// Directories with generated or third-party files (F-REF). Hidden directories are not scanned either.
const SKIPPED: [&str; 2] = ["dist", "node_modules"];

/// The file that marks a directory as a cache, such as the target directory of cargo.
const CACHE_TAG: &str = BundleFiles::CACHE_TAG;

/// The limit of scanned entries. A bundle has a few; a home directory that is named by mistake must fail soon.
const MAX_ENTRIES: usize = 50_000;

/// The limit of nested directories.
const MAX_DEPTH: usize = 32;

/// The files below a path.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// The directory that the paths in the bundle are relative to (LOAD-04).
    pub(crate) root: PathBuf,
    /// The files that belong to the bundle whatever they contain.
    pub(crate) main: Vec<PathBuf>,
    /// The other YAML files, in the order of their paths.
    pub(crate) others: Vec<PathBuf>,
    /// Directories that are bundles themselves, and therefore no part of this one.
    pub(crate) nested: Vec<PathBuf>,
    /// Errors about directories that could not be read.
    pub(crate) unreadable: Vec<Diagnostic>,
    entries: usize,
}

impl Scan {
    pub(crate) fn of(path: &Path) -> Result<Self, Diagnostics> {
        let metadata = fs::metadata(path).map_err(|error| Diagnostic::unreadable(path, &error))?;
        if !metadata.is_dir() {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let root = parent.unwrap_or(Path::new(".")).to_owned();
            return Ok(Self { root, main: vec![path.to_owned()], ..Self::default() });
        }
        let mut scan = Self { root: path.to_owned(), ..Self::default() };
        scan.main = MAIN_NAMES.iter().map(|name| path.join(name)).filter(|file| file.exists()).collect();
        scan.directory(path, 0)?;
        Ok(scan)
    }

    fn directory(&mut self, directory: &Path, depth: usize) -> Result<(), Diagnostics> {
        let entries = match entries(directory) {
            Ok(entries) => entries,
            Err(error) => {
                self.unreadable.push(Diagnostic::unreadable(directory, &error));
                return Ok(());
            }
        };
        self.entries += entries.len();
        if self.entries > MAX_ENTRIES || depth > MAX_DEPTH {
            let message = format!(
                "below this directory are more than {MAX_ENTRIES} files, or {MAX_DEPTH} directories in one another"
            );
            let suggestion = "name the directory of the bundle alone, or its YAML file";
            return Err(Diagnostic::parse_error(&self.root, None, message, suggestion).into());
        }
        if depth > 0 {
            let holds = |name: &&str| entries.iter().any(|entry| entry.file_name() == **name);
            if MAIN_NAMES.iter().any(holds) {
                self.nested.push(directory.to_owned());
                return Ok(());
            }
            if holds(&CACHE_TAG) {
                return Ok(());
            }
        }
        let mut directories = Vec::new();
        for entry in entries {
            let name = entry.file_name();
            let path = directory.join(&name);
            if name.as_encoded_bytes().starts_with(b".") || self.main.contains(&path) {
                continue;
            }
            // Links to files are followed, because volumes of containers consist of them. Links to directories are not:
            // they could form a cycle.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == **skipped) => directories.push(path),
                Ok(kind) if !kind.is_dir() && is_yaml(&path) && path.is_file() => self.others.push(path),
                _ => {}
            }
        }
        directories.iter().try_for_each(|directory| self.directory(directory, depth + 1))
    }
}

/// The entries of a directory, in the order of their names.
fn entries(directory: &Path) -> std::io::Result<Vec<fs::DirEntry>> {
    // One entry above the limit is enough to see that it is exceeded.
    let mut entries = fs::read_dir(directory)?.take(MAX_ENTRIES + 1).collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    Ok(entries)
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == OsStr::new("yaml") || extension == OsStr::new("yml"))
}
