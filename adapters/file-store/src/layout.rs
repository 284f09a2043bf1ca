//! Directory layout: the state root, workspaces, and the directory and files of each instance.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::{Error, ErrorCode, Result};
use goondan_runtime::store::InstanceId;

use super::atomic::{FileOps, io_error};
use super::disk::RealDisk;
use super::path::StorePath;

/// Returns the directory below which goondan stores everything that outlives a process: `option` if given, else the
/// environment variable `GOONDAN_STATE_ROOT`, else `~/.goondan`. Creates nothing.
///
/// # Errors
/// When neither is given and there is no home directory.
// F-STORE
pub fn state_root(option: Option<&Path>) -> Result<PathBuf> {
    choose_root(option, std::env::var_os("GOONDAN_STATE_ROOT"), std::env::home_dir())
}

/// Returns the directory below a state root in which it is kept which bundles a person has agreed to run. Tools do not
/// write there for a model.
// TRUST-01
pub fn agreements_dir(state_root: &Path) -> PathBuf {
    state_root.join("trust")
}

fn choose_root(option: Option<&Path>, variable: Option<OsString>, home: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(option) = option {
        return Ok(option.to_owned());
    }
    // Treat an empty variable as unset: as a path it would mean the current directory.
    if let Some(variable) = variable.filter(|variable| !variable.is_empty()) {
        return Ok(variable.into());
    }
    let home = home.filter(|home| !home.as_os_str().is_empty());
    home.map(|home| home.join(".goondan")).ok_or_else(|| {
        Error::new(ErrorCode::STORE_IO, "there is no home directory to keep state in")
            .suggest("set GOONDAN_STATE_ROOT, or give a state root")
    })
}

/// Returns the directory name of a workspace, from the instance key or the name of a swarm. It depends on nothing
/// else, and different names can map to the same directory.
///
/// ```
/// # use goondan::store::workspace_id;
/// assert_eq!(workspace_id(" My Swarm! (2)"), "my-swarm-2");
/// assert_eq!(workspace_id("..."), "default");
/// ```
// F-STORE
pub fn workspace_id(name: &str) -> String {
    let mut id = String::new();
    for letter in name.trim().to_lowercase().chars() {
        match letter {
            'a'..='z' | '0'..='9' | '.' | '_' => id.push(letter),
            _ if !id.ends_with('-') => id.push('-'),
            _ => {}
        }
    }
    let id = id.trim_matches('-');
    // F-STORE does not mention names such as `..`, which would lead out of the state root.
    if id.bytes().all(|byte| byte == b'.') {
        return "default".to_owned();
    }
    id.chars().take(128).collect()
}

const RUNTIME_EVENTS: &str = "runtime-events.jsonl";

/// The file that was full.
const OLD_RUNTIME_EVENTS: &str = "runtime-events.1.jsonl";

/// The directory of one instance: the paths of its files, and the operations that write them.
#[derive(Clone, Debug)]
pub(super) struct InstanceDir {
    path: StorePath,
    ops: FileOps,
}

impl InstanceDir {
    pub(super) fn new(workspace: &Path, instance: &InstanceId, ops: FileOps) -> Self {
        let instances = StorePath::workspace(workspace).join("instances");
        Self { path: instances.join(&instance.directory_name()), ops }
    }

    /// The directory at `path`, on the real disk.
    pub(super) fn at(path: &StorePath) -> Self {
        Self { path: path.clone(), ops: FileOps::new(Arc::new(RealDisk)) }
    }

    /// Returns the same directory, which stays open for work with it: see [`StorePath::hold`].
    pub(super) fn hold(&self) -> Self {
        Self { path: self.path.hold(), ops: self.ops.clone() }
    }

    /// Fails if one of the names that opening the instance does not open is taken by something else, such as a link:
    /// a turn would find out too late.
    pub(super) fn check_names(&self) -> Result<()> {
        // Held, because both are in it.
        let messages = self.messages().hold();
        for path in [messages.join(RUNTIME_EVENTS), messages.join(OLD_RUNTIME_EVENTS)] {
            path.len().map_err(|error| io_error("open", &path, error))?;
        }
        let workdir = self.path.join("workspace");
        workdir.is_directory().map(drop).map_err(|error| io_error("open", &workdir, error))
    }

    pub(super) fn ops(&self) -> &FileOps {
        &self.ops
    }

    pub(super) fn path(&self) -> &StorePath {
        &self.path
    }

    pub(super) fn lock(&self) -> StorePath {
        self.path.join("lock")
    }

    pub(super) fn metadata(&self) -> StorePath {
        self.path.join("metadata.json")
    }

    pub(super) fn messages(&self) -> StorePath {
        self.path.join("messages")
    }

    pub(super) fn base(&self) -> StorePath {
        self.path.join("messages/base.jsonl")
    }

    pub(super) fn events(&self) -> StorePath {
        self.path.join("messages/events.jsonl")
    }

    pub(super) fn runtime_events(&self) -> StorePath {
        self.messages().join(RUNTIME_EVENTS)
    }

    pub(super) fn old_runtime_events(&self) -> StorePath {
        self.messages().join(OLD_RUNTIME_EVENTS)
    }

    pub(super) fn workdir(&self) -> PathBuf {
        self.path.join("workspace").to_path_buf()
    }

    pub(super) fn extensions(&self) -> StorePath {
        self.path.join("extensions")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_wins_over_the_environment_and_that_over_the_home() {
        let home = || Some(PathBuf::from("/home/me"));
        let variable = || Some(OsString::from("/var/goondan"));
        assert_eq!(choose_root(Some(Path::new("/x")), variable(), home()).unwrap(), Path::new("/x"));
        assert_eq!(choose_root(None, variable(), home()).unwrap(), Path::new("/var/goondan"));
        assert_eq!(choose_root(None, Some(OsString::new()), home()).unwrap(), Path::new("/home/me/.goondan"));
        assert_eq!(choose_root(None, None, None).unwrap_err().code(), &ErrorCode::STORE_IO);
    }

    #[test]
    fn workspace_ids_follow_the_rule() {
        for (name, id) in [
            ("Default", "default"),
            ("", "default"),
            ("  ---  ", "default"),
            ("..", "default"),
            ("a.b_c-d", "a.b_c-d"),
            ("--A  B//c--", "a-b-c"),
            ("회사 bot", "bot"),
        ] {
            assert_eq!(workspace_id(name), id, "{name}");
        }
        assert_eq!(workspace_id(&"x".repeat(500)).len(), 128);
    }
}
