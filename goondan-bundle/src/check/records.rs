//! Checks that the files to which models append their requests are in the bundle, and are none of its own files.

use std::fs;
use std::path::{Path, PathBuf};

use goondan_core::ErrorCode;

use crate::resource::{Entry, Resources, ToCheck};

/// Reports the records that must not be appended to. `documents` are the files of the bundle.
pub(super) fn check(to_check: &ToCheck<'_>, resources: &Resources, root: &Path, documents: &[&Path]) {
    if to_check.records.is_empty() {
        return;
    }
    let read_by_models = resources.models.iter().flat_map(|model| &model.files).map(PathBuf::as_path);
    let libraries = resources.extensions.iter().filter_map(|extension| match &extension.entry {
        Entry::Library(library) => Some(library.file.as_path()),
        Entry::Linked(_) => None,
    });
    let own = documents.iter().copied().chain(read_by_models).chain(libraries);
    let own: Vec<PathBuf> = own.filter_map(|file| file.canonicalize().ok()).collect();
    for (record, cursor) in &to_check.records {
        if let Some(problem) = problem(record, root, &own) {
            let message = format!("{} {problem}: `{}`", cursor.name(), record.display());
            cursor.error(ErrorCode::CONFIG_SCHEMA, message, "name a file of its own, such as `./requests.jsonl`");
        }
    }
}

/// Why requests must not be appended to `record`, if so. Links are followed, because appending does.
fn problem(record: &Path, root: &Path, own: &[PathBuf]) -> Option<&'static str> {
    let (Ok(root), exists) = (root.canonicalize(), fs::symlink_metadata(record).is_ok()) else { return None };
    if !exists {
        // It is created in the nearest directory that exists, or recording says that its directory is missing.
        let directory = record.ancestors().skip(1).find_map(|directory| directory.canonicalize().ok())?;
        return (!directory.starts_with(root)).then_some("leads out of the bundle through a link");
    }
    let Ok(file) = record.canonicalize() else { return Some("is a link to a file that does not exist") };
    if !file.starts_with(root) {
        Some("leads out of the bundle through a link")
    } else if !file.is_file() {
        Some("is no regular file")
    } else if own.contains(&file) {
        Some("is a file that the bundle is made of")
    } else {
        None
    }
}
