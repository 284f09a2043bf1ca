//! Lists directories, and tells the kind of a path.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cap_std::fs::{FileType, Metadata, MetadataExt};
use goondan::Result;
use goondan::conversation::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::place::Place;

/// The most entries of a list.
const ENTRIES: usize = 1000;

/// The input of `file-system__list`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct List {
    /// The path of the directory. Defaults to `.`, the usual directory.
    #[serde(default = "here")]
    pub(crate) path: String,
    /// Whether to list the directories in it as well, and those in them. Links are not followed. Defaults to false.
    #[serde(default)]
    recursive: bool,
    /// Whether directories are in the list. Defaults to true.
    #[serde(default = "yes")]
    include_dirs: bool,
    /// Whether files, and whatever else is no directory, are in the list. Defaults to true.
    #[serde(default = "yes")]
    include_files: bool,
}

pub(crate) fn yes() -> bool {
    true
}

fn here() -> String {
    ".".to_owned()
}

/// The output of `file-system__list`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    path: PathBuf,
    count: usize,
    /// Whether entries are left out, because there are too many.
    truncated: bool,
    entries: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: String,
    path: PathBuf,
    r#type: Type,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Type {
    Dir,
    File,
    Link,
    /// A device, a pipe or the like.
    Other,
}

impl From<FileType> for Type {
    fn from(file_type: FileType) -> Self {
        match file_type {
            kind if kind.is_dir() => Self::Dir,
            kind if kind.is_file() => Self::File,
            kind if kind.is_symlink() => Self::Link,
            _ => Self::Other,
        }
    }
}

/// The output of `file-system__stat`.
#[derive(Debug, Serialize)]
pub(crate) struct Status {
    path: PathBuf,
    exists: bool,
    #[serde(flatten)]
    found: Option<Found>,
}

#[derive(Debug, Serialize)]
struct Found {
    r#type: Type,
    size: u64,
    modified: Option<Timestamp>,
    /// The permissions, such as `644`.
    mode: String,
}

/// Lists a directory, the directories in it after everything that is beside them.
pub(crate) fn list(place: &Place, input: &List) -> Result<Listed> {
    let mut entries = Vec::new();
    let mut pending = VecDeque::from([place.path.clone()]);
    let mut truncated = false;
    while let Some(directory) = pending.pop_front() {
        let found = match read_dir(place, &directory) {
            Ok(found) => found,
            // A directory inside that is closed, or gone by now, is no reason to list nothing.
            Err(_) if directory != place.path => continue,
            Err(error) => return Err(error),
        };
        for (name, kind, size) in found {
            let path = directory.join(&name);
            let is_dir = kind == Type::Dir;
            if if is_dir { input.include_dirs } else { input.include_files } {
                truncated |= entries.len() == ENTRIES;
                if truncated {
                    break;
                }
                let shown = place.absolute(path.strip_prefix(".").unwrap_or(&path));
                entries.push(Entry { name, path: shown, r#type: kind, size });
            }
            if is_dir && input.recursive {
                pending.push_back(path);
            }
        }
        if truncated {
            break;
        }
    }
    Ok(Listed { path: place.shown(), count: entries.len(), truncated, entries })
}

/// Returns the entries of a directory, ordered by name, with the sizes of files.
fn read_dir(place: &Place, directory: &Path) -> Result<Vec<(String, Type, Option<u64>)>> {
    let failed = |error| place.failed(error);
    let mut found = Vec::new();
    for entry in place.dir.read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = Type::from(entry.file_type().map_err(failed)?);
        // A file that is gone by now has no size.
        let size = (kind == Type::File).then(|| entry.metadata().ok().map(|metadata| metadata.len())).flatten();
        found.push((entry.file_name().to_string_lossy().into_owned(), kind, size));
    }
    found.sort();
    Ok(found)
}

/// Tells the kind of a place.
pub(crate) fn stat(place: &Place) -> Result<Status> {
    let found = match place.dir.symlink_metadata(&place.path) {
        Ok(metadata) => Some(Found::from(metadata)),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(place.failed(error)),
    };
    Ok(Status { path: place.shown(), exists: found.is_some(), found })
}

impl From<Metadata> for Found {
    fn from(metadata: Metadata) -> Self {
        Self {
            r#type: metadata.file_type().into(),
            size: metadata.len(),
            modified: metadata.modified().ok().map(|time| time.into_std().into()),
            mode: format!("{:o}", metadata.mode() & 0o7777),
        }
    }
}
