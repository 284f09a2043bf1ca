//! Directory layout: the state root, workspaces, and the directory and files of each instance.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::InstanceId;
use super::atomic::{FileOps, io_error};
use super::disk::RealDisk;
use super::path::StorePath;
use crate::error::{Error, ErrorCode, Result};

/// The longest name of an instance directory in bytes (D-05); file systems allow 255.
const MAX_NAME_LEN: usize = 200;

/// Returns the directory below which goondan stores everything that outlives a process: `option` if given, else the
/// environment variable `GOONDAN_STATE_ROOT`, else `~/.goondan`. Creates nothing.
///
/// # Errors
/// When neither is given and there is no home directory.
// F-STORE
pub fn state_root(option: Option<&Path>) -> Result<PathBuf> {
    choose_root(option, std::env::var_os("GOONDAN_STATE_ROOT"), std::env::home_dir())
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

/// The directory of one instance: the paths of its files, and the operations that write them.
#[derive(Clone, Debug)]
pub(super) struct InstanceDir {
    path: StorePath,
    ops: FileOps,
}

impl InstanceDir {
    pub(super) fn new(workspace: &Path, instance: &InstanceId, ops: FileOps) -> Self {
        let instances = StorePath::workspace(workspace).join("instances");
        Self { path: instances.join(&directory_name(&instance.to_string())), ops }
    }

    /// The directory at `path`, on the real disk.
    pub(super) fn at(path: &StorePath) -> Self {
        Self { path: path.clone(), ops: FileOps::new(Arc::new(RealDisk)) }
    }

    /// Fails if one of the names that opening the instance does not open is taken by something else, such as a link:
    /// a turn would find out too late.
    pub(super) fn check_names(&self) -> Result<()> {
        for path in [self.runtime_events(), self.old_runtime_events()] {
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
        self.path.join("messages/runtime-events.jsonl")
    }

    /// The file that was full.
    pub(super) fn old_runtime_events(&self) -> StorePath {
        self.path.join("messages/runtime-events.1.jsonl")
    }

    pub(super) fn workdir(&self) -> PathBuf {
        self.path.join("workspace").to_path_buf()
    }

    pub(super) fn extensions(&self) -> StorePath {
        self.path.join("extensions")
    }
}

/// Returns the directory name of `instance`, `<agent>:<instanceKey>` (D-05). It starts with the agent and a colon, so
/// it is never `.` or `..`.
pub(in crate::store) fn directory_name(instance: &str) -> String {
    let mut name = String::with_capacity(instance.len());
    for byte in instance.bytes() {
        match byte {
            b'_' | b':' | b'-' | b'.' => name.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            _ => _ = write!(name, "%{byte:02X}"),
        }
    }
    if name.len() > MAX_NAME_LEN {
        // `%h` occurs in no unshortened name, so no key can imitate a shortened one.
        let hash = format!("%h{:032x}", fnv1a(instance.as_bytes()));
        name.truncate(MAX_NAME_LEN - hash.len());
        name.push_str(&hash);
    }
    name
}

/// FNV-1a with 128 bits. It need not resist an attacker: `metadata.json` names the instance, so opening two keys with
/// the same hash fails instead of mixing their conversations.
fn fnv1a(bytes: &[u8]) -> u128 {
    let start = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    bytes
        .iter()
        .fold(start, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_returns_the_published_values() {
        assert_eq!(fnv1a(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv1a(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn bytes_outside_the_safe_set_are_escaped() {
        assert_eq!(directory_name("bot:user:1"), "bot:user:1");
        assert_eq!(directory_name("bot:../x y%é"), "bot:..%2Fx%20y%25%C3%A9");
    }

    #[test]
    fn no_legal_key_looks_like_a_shortened_one() {
        let shortened = directory_name(&format!("bot:{}", "x".repeat(500)));
        assert_eq!(shortened.len(), MAX_NAME_LEN);
        assert_ne!(directory_name(&shortened), shortened);
        assert_eq!(directory_name(&"x".repeat(MAX_NAME_LEN)), "x".repeat(MAX_NAME_LEN));
    }

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
