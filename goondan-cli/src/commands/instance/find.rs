//! Finds a stored instance in the workspaces of a state root.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use goondan::name::{AgentName, InstanceKey};
use goondan::store::{FileStore, InstanceId};
use goondan::store::{state_root, workspace_id};
use goondan::{Error, ErrorCode, Result};

use crate::args::{InstanceSelector, StoreArgs};

/// Returns the selected instance, and the store that holds it.
///
/// # Errors
/// [`ErrorCode::STORE_NOT_FOUND`] if there is none, and [`ErrorCode::USAGE`] if several workspaces have one of that
/// name.
pub(super) fn find(InstanceSelector { instance, store: args }: &InstanceSelector) -> Result<(FileStore, InstanceId)> {
    let id = parse(instance)?;
    let mut found = Vec::new();
    for workspace in workspaces(args)? {
        let store = store(args, &workspace)?;
        // Also if it is a link, which the store refuses by name.
        if store.instance_dir(&id).symlink_metadata().is_ok() {
            found.push((workspace, store));
        }
    }
    let names: Vec<_> = found.iter().map(|(workspace, _)| workspace.as_str()).collect();
    match found.len() {
        0 => Err(Error::new(ErrorCode::STORE_NOT_FOUND, format!("no instance `{id}` is stored here"))
            .suggest("`goondan instance list` lists the stored ones")),
        1 => found.pop().map(|(_, store)| (store, id)).ok_or_else(|| Error::msg("one was found")),
        _ => Err(Error::new(
            ErrorCode::USAGE,
            format!("several workspaces have an instance `{id}`: {}", names.join(", ")),
        )
        .suggest("select one with `--workspace NAME`")),
    }
}

/// Parses `<agent>:<key>`. The key may contain colons.
pub(super) fn parse(name: &str) -> Result<InstanceId> {
    let (agent, key) = name.split_once(':').ok_or_else(|| {
        Error::new(ErrorCode::USAGE, format!("`{name}` is not the name of an instance"))
            .suggest("write `<agent>:<key>`, as `goondan instance list` does")
    })?;
    Ok(InstanceId { agent: AgentName::new(agent)?, key: InstanceKey::new(key)? })
}

/// Returns the workspaces to search: the named one, or all of the state root.
pub(in crate::commands) fn workspaces(args: &StoreArgs) -> Result<Vec<String>> {
    if let Some(name) = &args.workspace {
        return Ok(vec![workspace_id(name)]);
    }
    let directory = root(args)?;
    let entries = match fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(&directory, error)),
    };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<io::Result<Vec<_>>>().map_err(|error| unreadable(&directory, error))?;
    names.sort();
    Ok(names)
}

/// Opens the store of `workspace`.
pub(super) fn store(args: &StoreArgs, workspace: &str) -> Result<FileStore> {
    FileStore::open(root(args)?.join(workspace))
}

/// Returns the directory of all workspaces.
pub(in crate::commands) fn root(args: &StoreArgs) -> Result<PathBuf> {
    Ok(state_root(args.state_root.as_deref())?.join("workspaces"))
}

fn unreadable(directory: &Path, error: io::Error) -> Error {
    Error::new(ErrorCode::IO, format!("cannot read {}", directory.display())).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_named_by_agent_and_key() {
        let id = parse("main:user:1").unwrap();
        assert_eq!((id.agent.as_str(), id.key.as_str()), ("main", "user:1"));
        for wrong in ["main", "", ":", "main:", "Not Legal:x"] {
            assert!(parse(wrong).unwrap_err().code().is_configuration(), "{wrong}");
        }
    }
}
