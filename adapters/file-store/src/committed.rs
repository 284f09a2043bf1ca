//! Checksums of the last commit: what `base.jsonl` and the state files must be when the instance is opened again.
// BITS-01

use std::collections::BTreeMap;

use goondan_core::{Error, ErrorCode, ExtensionName, Result, TurnId};
use goondan_runtime::store::TurnOutcome;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::base::Fingerprint;
use super::layout::InstanceDir;
use super::state::{self, StoredState};

/// The first record of `events.jsonl` after a commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommittedRecord {
    pub(super) committed: TurnId,
    pub(super) base_bytes: u64,
    /// CRC-32 of the base.
    pub(super) crc: u32,
    /// CRC-32 of the file of each extension that has state.
    pub(super) state: BTreeMap<ExtensionName, u32>,
}

impl CommittedRecord {
    /// The checksums of files as they are, after `turn`.
    pub(super) fn of(turn: &str, base: &Fingerprint, state: &StoredState) -> Self {
        let (base_bytes, crc) = (base.bytes, base.crc());
        Self { committed: turn.into(), base_bytes, crc, state: state.crcs.clone() }
    }

    /// The checksums after the turn `turn` has changed the base to `base` and some of the state.
    pub(super) fn after(&self, turn: &TurnId, base: &Fingerprint, changed: &BTreeMap<ExtensionName, Value>) -> Self {
        let mut state = self.state.clone();
        state.extend(changed.iter().map(|(name, value)| (name.clone(), crc32fast::hash(&state::encode(value)))));
        Self { committed: turn.clone(), base_bytes: base.bytes, crc: base.crc(), state }
    }

    pub(super) fn is_base(&self, base: &Fingerprint) -> bool {
        (base.bytes, base.crc()) == (self.base_bytes, self.crc)
    }

    /// Fails if the base is not the one of the commit.
    pub(super) fn check_base(&self, dir: &InstanceDir, base: &Fingerprint) -> Result<()> {
        if self.is_base(base) {
            return Ok(());
        }
        let message = format!("{} {}", dir.base().display(), self.what_differs(base));
        Err(Error::new(ErrorCode::STORE_DAMAGED, message).suggest(ACCEPT))
    }

    /// Returns what is wrong with a base that is not the one of the commit.
    pub(super) fn what_differs(&self, base: &Fingerprint) -> String {
        let Self { base_bytes: bytes, crc, .. } = self;
        if base.bytes == *bytes {
            return format!("was changed after the last commit: its checksum is {:08x}, and was {crc:08x}", base.crc());
        }
        format!("was changed after the last commit: it has {} bytes, and had {bytes}", base.bytes)
    }

    /// Fails if the state of an extension is not that of the commit.
    pub(super) fn check_state(&self, dir: &InstanceDir, stored: &StoredState) -> Result<()> {
        let Some((name, what)) = self.changed_state(stored).next() else { return Ok(()) };
        let file = state::path(dir, name);
        Err(Error::new(ErrorCode::EXT_STATE, format!("{} {what}", file.display())).suggest(ACCEPT))
    }

    /// Returns the extensions whose state is not that of the commit, and what is wrong with each.
    pub(super) fn changed_state(&self, stored: &StoredState) -> impl Iterator<Item = (&ExtensionName, String)> {
        self.state.iter().filter_map(|(name, committed)| match stored.crcs.get(name) {
            None => Some((name, "is missing: the last commit left one".to_owned())),
            Some(crc) if crc == committed => None,
            Some(crc) => Some((
                name,
                format!("was changed after the last commit: its checksum is {crc:08x}, and was {committed:08x}"),
            )),
        })
    }
}

const ACCEPT: &str = "restore it from a backup; or, if it is right as it is, accept it with `goondan instance repair \
                      --yes`: without `--yes` that says what is kept, and changes nothing";

/// Reads an outcome; one that only a later version knows is `None`.
pub(super) fn known_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<TurnOutcome>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}
