//! State files of extensions, `extensions/<name>.json` (STATE-07): read when an instance opens, replaced when a turn
//! has changed the state.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use goondan_core::{Error, ErrorCode, ExtensionName, Result};
use serde_json::Value;

use super::atomic::{self, io_error};
use super::layout::InstanceDir;
use super::lines;
use super::path::StorePath;

/// The state of all extensions that have one (STATE-05).
#[derive(Debug, Default)]
pub(super) struct StoredState {
    pub(super) values: BTreeMap<ExtensionName, Value>,
    /// CRC-32 of each file.
    pub(super) crcs: BTreeMap<ExtensionName, u32>,
}

/// Reads the state of all extensions.
pub(super) fn read(dir: &InstanceDir) -> Result<StoredState> {
    scan(dir, &mut |_, _, error| Err(error))
}

/// Like [`read`], but calls `refuse` for each file that is not JSON, and skips its value if that returns `Ok`.
pub(super) fn scan(
    dir: &InstanceDir,
    refuse: &mut dyn FnMut(&StorePath, &ExtensionName, Error) -> Result<()>,
) -> Result<StoredState> {
    let (mut state, folder) = (StoredState::default(), dir.extensions());
    let failed = |error| io_error("read the directory", &folder, error);
    let entries = match folder.entries() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(state),
        entries => entries.map_err(failed)?,
    };
    for path in entries {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".json"));
        let Some(name) = name else { continue };
        let Ok(name) = ExtensionName::new(name) else {
            tracing::warn!(file = %path.display(), "not the state of an extension: no extension can have this name");
            continue;
        };
        let bytes = atomic::read(&path)?;
        state.crcs.insert(name.clone(), crc32fast::hash(&bytes));
        match lines::parse(&bytes) {
            Ok(value) => _ = state.values.insert(name, value),
            Err(error) => refuse(&path, &name, unreadable(&path, error))?,
        }
    }
    Ok(state)
}

/// Replaces the files of the extensions in `stored` that hold something else, and no others (STATE-06). Their directory
/// entries are durable once [`sync`] has returned.
pub(super) fn write(dir: &InstanceDir, stored: &BTreeMap<ExtensionName, Value>) -> Result<()> {
    dir.ops().create_dirs(&dir.extensions())?;
    for (name, value) in stored {
        let (path, bytes) = (path(dir, name), encode(value));
        // The content of a file was synced before it got its name.
        if atomic::read(&path).is_ok_and(|found| found == bytes) {
            continue;
        }
        dir.ops().replace(&path, &bytes)?;
    }
    Ok(())
}

/// Syncs the entries of the files that were written.
pub(super) fn sync(dir: &InstanceDir) -> Result<()> {
    dir.ops().sync_dir(&dir.extensions())
}

/// Returns the content of the file that holds `value`.
pub(super) fn encode(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

pub(super) fn path(dir: &InstanceDir, name: &ExtensionName) -> StorePath {
    dir.extensions().join(&format!("{name}.json"))
}

/// Unreadable state is an error and is never reset silently: the user decides.
fn unreadable(path: &StorePath, error: serde_json::Error) -> Error {
    Error::new(ErrorCode::EXT_STATE, format!("the state in {} cannot be read", path.display()))
        .suggest(
            "repair the file, or have it moved aside by `goondan instance repair`: then the extension starts without \
             state",
        )
        .caused_by(error)
}
