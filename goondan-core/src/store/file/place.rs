//! Owns where things lie: the state root, the workspace, and the directory and files of each instance.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::InstanceId;
use super::atomic::Files;
use super::disk::RealDisk;
use crate::error::{Error, ErrorCode, Result};

/// The longest name of an instance directory in bytes (D-05); file systems stop at 255.
const LONGEST_NAME: usize = 200;

/// Where goondan keeps what must outlive a process: `option`, else the environment variable `GOONDAN_STATE_ROOT`, else
/// `~/.goondan` (F-STORE). Nothing is made.
///
/// # Errors
/// When neither is given and there is no home directory.
pub fn state_root(option: Option<&Path>) -> Result<PathBuf> {
    choose_root(option, std::env::var_os("GOONDAN_STATE_ROOT"), std::env::home_dir())
}

fn choose_root(option: Option<&Path>, variable: Option<OsString>, home: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(option) = option {
        return Ok(option.to_owned());
    }
    // An empty variable is one that was meant to be unset; as a path it would mean the current directory.
    if let Some(variable) = variable.filter(|variable| !variable.is_empty()) {
        return Ok(variable.into());
    }
    let home = home.filter(|home| !home.as_os_str().is_empty());
    home.map(|home| home.join(".goondan")).ok_or_else(|| {
        Error::new(ErrorCode::STORE_IO, "there is no home directory to keep state in")
            .suggest("set GOONDAN_STATE_ROOT, or give a state root")
    })
}

/// The name of a workspace's directory, from the instance key or the name of a swarm (F-STORE). It depends on nothing
/// else, and different names can meet.
///
/// ```
/// # use goondan_core::store::workspace_id;
/// assert_eq!(workspace_id(" My Swarm! (2)"), "my-swarm-2");
/// assert_eq!(workspace_id("..."), "default");
/// ```
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
    // F-STORE says nothing of names such as `..`, which would leave the state root.
    if id.bytes().all(|byte| byte == b'.') {
        return "default".to_owned();
    }
    id.chars().take(128).collect()
}

/// The directory of one instance.
#[derive(Clone, Debug)]
pub(super) struct Place {
    dir: PathBuf,
    files: Files,
}

impl Place {
    pub(super) fn new(workspace: &Path, instance: &InstanceId, files: Files) -> Self {
        Self { dir: workspace.join("instances").join(directory_name(&instance.to_string())), files }
    }

    /// The directory `dir`, on the disk of the system.
    pub(super) fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), files: Files::new(Arc::new(RealDisk)) }
    }

    /// Refuses what leads out of the state root: the directory and what is written in it must not be symbolic links.
    pub(super) fn refuse_links(&self) -> Result<()> {
        let written = [self.messages(), self.base(), self.events(), self.extensions(), self.metadata(), self.lock()];
        let is_link = |path: &&PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        match [self.dir.clone()].iter().chain(&written).find(is_link) {
            None => Ok(()),
            Some(link) => Err(Error::new(ErrorCode::STORE_IO, format!("{} is a symbolic link", link.display()))
                .suggest("put what it leads to in its place: nothing is written outside of the state root")),
        }
    }

    /// The way to write there.
    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    pub(super) fn metadata(&self) -> PathBuf {
        self.dir.join("metadata.json")
    }

    pub(super) fn messages(&self) -> PathBuf {
        self.dir.join("messages")
    }

    pub(super) fn base(&self) -> PathBuf {
        self.dir.join("messages/base.jsonl")
    }

    pub(super) fn events(&self) -> PathBuf {
        self.dir.join("messages/events.jsonl")
    }

    pub(super) fn runtime_events(&self) -> PathBuf {
        self.dir.join("messages/runtime-events.jsonl")
    }

    pub(super) fn workdir(&self) -> PathBuf {
        self.dir.join("workspace")
    }

    pub(super) fn extensions(&self) -> PathBuf {
        self.dir.join("extensions")
    }
}

/// The name under which `instance`, `<agent>:<instanceKey>`, has its directory (D-05). Since the agent and the colon come
/// first, it is never `.` or `..`.
pub(in crate::store) fn directory_name(instance: &str) -> String {
    let mut name = String::with_capacity(instance.len());
    for byte in instance.bytes() {
        match byte {
            b'_' | b':' | b'-' | b'.' => name.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            _ => _ = write!(name, "%{byte:02X}"),
        }
    }
    if name.len() > LONGEST_NAME {
        // `%h` stands in no other name, so that no key can be made to look like a shortened one.
        let hash = format!("%h{:032x}", fnv1a(instance.as_bytes()));
        name.truncate(LONGEST_NAME - hash.len());
        name.push_str(&hash);
    }
    name
}

/// FNV-1a with 128 bits. It need not withstand an attacker: `metadata.json` names the instance, so that two keys with one
/// hash lead to an error and not to one conversation.
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
    fn fnv1a_gives_the_published_values() {
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
        assert_eq!(shortened.len(), LONGEST_NAME);
        assert_ne!(directory_name(&shortened), shortened);
        assert_eq!(directory_name(&"x".repeat(LONGEST_NAME)), "x".repeat(LONGEST_NAME));
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
