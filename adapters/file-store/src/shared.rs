//! Shared state of extensions, `extensions/<name>.json` of the workspace: one file for each extension, replaced as a
//! whole.
//!
//! A change holds the lock of `<name>.lock`, reads the file, writes the new value to `<name>.json.tmp` and syncs it,
//! renames it over the old one, and syncs the directory. A crash leaves the old file or the new one, and perhaps a
//! temporary file, which the next change removes. Readers need no lock: they find either file.
// D-42

use std::path::Path;
use std::sync::Arc;

use goondan_core::{Error, ErrorCode, ExtensionName, Result};
use serde_json::Value;

use super::atomic::{self, FileOps};
use super::disk::Disk;
use super::lines;
use super::lock::Lock;
use super::path::StorePath;
use super::state::encode;

/// Returns the shared state of `extension`, `None` if it was never set.
pub(super) fn read(workspace: &Path, extension: &ExtensionName) -> Result<Option<Value>> {
    read_file(&file(workspace, extension, "json"))
}

/// Replaces the shared state of `extension` by the value that `change` returns for it. Waits until no other process
/// or thread changes it.
pub(super) fn update(
    workspace: &Path,
    extension: &ExtensionName,
    disk: Arc<dyn Disk>,
    change: &mut dyn FnMut(Option<Value>) -> Result<Value>,
) -> Result<()> {
    let (path, files) = (file(workspace, extension, "json"), FileOps::new(disk));
    let dir = directory(workspace);
    files.create_dirs(&dir)?;
    let _lock = Lock::wait(&file(workspace, extension, "lock"))?;
    let old = read_file(&path)?;
    let new = change(old.clone())?;
    if old.as_ref() == Some(&new) {
        return Ok(());
    }
    files.replace(&path, &encode(&new))?;
    files.sync_dir(&dir)
}

fn directory(workspace: &Path) -> StorePath {
    StorePath::workspace(workspace).join("extensions")
}

/// Returns the path of a file for `extension`. A name has no dot, so it differs from the directory of an extension.
fn file(workspace: &Path, extension: &ExtensionName, suffix: &str) -> StorePath {
    directory(workspace).join(&format!("{extension}.{suffix}"))
}

/// A file that is not JSON is an error and is never reset silently: a person decides.
fn read_file(path: &StorePath) -> Result<Option<Value>> {
    let parse = |bytes: Vec<u8>| {
        lines::parse(&bytes).map_err(|error| {
            Error::new(ErrorCode::EXT_STATE, format!("the shared state in {} cannot be read", path.display()))
                .suggest("repair the file, or move it aside: then the extension starts without shared state")
                .caused_by(error)
        })
    };
    atomic::read_existing(path)?.map(parse).transpose()
}
