//! State files of extensions, `extensions/<name>.json` (STATE-07): read when an instance opens, replaced when a turn
//! has changed the state.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use serde_json::Value;

use super::atomic::{self, io_error};
use super::layout::InstanceDir;
use super::path::StorePath;
use crate::error::{Error, ErrorCode, Result};
use crate::name::ExtensionName;

/// Returns the state of all extensions that have one (STATE-05).
pub(super) fn read(dir: &StorePath) -> Result<BTreeMap<ExtensionName, Value>> {
    let mut state = BTreeMap::new();
    let entries = match dir.entries() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(state),
        entries => entries.map_err(|error| io_error("read the directory", dir, error))?,
    };
    for path in entries {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".json"));
        let Some(name) = name else { continue };
        let Ok(name) = ExtensionName::new(name) else {
            tracing::warn!(file = %path.display(), "not the state of an extension: no extension can have this name");
            continue;
        };
        let value = serde_json::from_slice(&atomic::read(&path)?);
        state.insert(name, value.map_err(|error| unreadable(&path, error))?);
    }
    Ok(state)
}

/// Replaces the files of the extensions in `changed`, and no others (STATE-06).
pub(super) fn write(dir: &InstanceDir, changed: &BTreeMap<ExtensionName, Value>) -> Result<()> {
    if changed.is_empty() {
        return Ok(());
    }
    let (folder, files) = (dir.extensions(), dir.ops());
    files.create_dirs(&folder)?;
    for (name, value) in changed {
        let path = folder.join(&format!("{name}.json"));
        files.replace(&path, format!("{value}\n").as_bytes())?;
    }
    files.sync_dir(&folder)
}

/// Unreadable state is an error and is never reset silently: the user decides.
fn unreadable(path: &Path, error: serde_json::Error) -> Error {
    Error::new(ErrorCode::EXT_STATE, format!("the state in {} cannot be read", path.display()))
        .suggest("repair the file, or move it away to let the extension start without state")
        .caused_by(error)
}
