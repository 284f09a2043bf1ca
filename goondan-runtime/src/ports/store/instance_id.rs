//! The id of an instance, and the name of its directory.

use std::fmt::{self, Write};

use goondan_core::{AgentName, InstanceKey};
use serde::Serialize;

/// The longest name of an instance directory in bytes (D-05); file systems allow 255.
const MAX_NAME_LEN: usize = 200;

/// Identifies one conversation of one agent.
// D-05
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct InstanceId {
    /// The agent.
    pub agent: AgentName,
    /// The key of the conversation within the agent.
    pub key: InstanceKey,
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.agent, self.key)
    }
}

impl InstanceId {
    /// Returns the name of the directory in which stores keep the files of this instance: `<agent>:<key>`, with bytes
    /// escaped that file systems might refuse. It starts with the agent and a colon, so it is never `.` or `..`.
    // D-05
    pub fn directory_name(&self) -> String {
        directory_name(&self.to_string())
    }
}

fn directory_name(instance: &str) -> String {
    let mut name = escaped(instance);
    if name.len() > MAX_NAME_LEN {
        // `%h` occurs in no unshortened name, so no key can imitate a shortened one.
        name.truncate(KEPT_LEN);
        _ = write!(name, "%h{:032x}", fnv1a(instance.as_bytes()));
    }
    name
}

/// Returns how the name of the directory begins of each instance whose text begins with `start`.
pub(super) fn directory_start(start: &str) -> String {
    let mut name = escaped(start);
    name.truncate(KEPT_LEN);
    name
}

/// The length of the part of a long name that is not its hash.
const KEPT_LEN: usize = MAX_NAME_LEN - "%h".len() - 32;

fn escaped(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'_' | b':' | b'-' | b'.' => name.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            _ => _ = write!(name, "%{byte:02X}"),
        }
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
    fn a_directory_begins_like_those_of_all_keys_with_the_same_start() {
        for key in ["turn-1/call/2", "x y%\u{e9}z", &"\u{e9}".repeat(200), ""] {
            let name = directory_name(&format!("bot:{key}"));
            for (at, _) in key.char_indices().chain([(key.len(), ' ')]) {
                let start = directory_start(&format!("bot:{}", &key[..at]));
                assert!(name.starts_with(&start), "{name} {start}");
            }
        }
    }

    #[test]
    fn no_legal_key_looks_like_a_shortened_one() {
        let shortened = directory_name(&format!("bot:{}", "x".repeat(500)));
        assert_eq!(shortened.len(), MAX_NAME_LEN);
        assert_ne!(directory_name(&shortened), shortened);
        assert_eq!(directory_name(&"x".repeat(MAX_NAME_LEN)), "x".repeat(MAX_NAME_LEN));
    }
}
