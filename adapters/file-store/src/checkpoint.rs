//! Checkpoints: the records of the journal are put into the other files, and the journal starts anew.

use std::collections::BTreeMap;

use goondan_core::{ExtensionName, Result};

use super::base::Fingerprint;
use super::events::EventsFile;
use super::grammar::JournalRecords;
use super::layout::InstanceDir;
use super::records::{CheckpointRecord, FORMAT};
use super::standing::new_journal;
use super::state::StoredState;
use super::{lines, state};

/// The length at which a journal is full, with a base of `base` bytes: the part that an opening reads beside the base
/// is little, or at most a quarter of it. If the base is complete, so that it is not written anew, half of that.
pub(super) fn limit(base: u64, is_complete: bool) -> u64 {
    (256 << 10).max(base / if is_complete { 8 } else { 4 })
}

/// Returns the record of a checkpoint after all turns of `records`, with the base `base`, and the state in its files.
pub(super) fn after(records: &JournalRecords, base: &Fingerprint) -> CheckpointRecord {
    let before = records.checkpoint.iter().flat_map(|checkpoint| checkpoint.state.clone());
    let changed = records.state();
    let changed = changed.iter().map(|(name, value)| (name.clone(), crc32fast::hash(&state::encode(value))));
    CheckpointRecord {
        format: FORMAT,
        committed: records.committed().cloned(),
        base_bytes: base.bytes,
        crc: base.crc(),
        state: before.chain(changed).collect(),
        answered: records.newest_answered(),
    }
}

/// Starts a new journal, whose turns are all in the base `base`, and their state in its files, which are written here.
/// The base must be synced, with its directory entry.
pub(super) fn start_journal(
    dir: &InstanceDir,
    bytes: &[u8],
    records: &JournalRecords,
    base: &Fingerprint,
) -> Result<EventsFile> {
    let changed = records.state();
    if !changed.is_empty() {
        state::write(dir, &changed)?;
        state::sync(dir)?;
    }
    if !records.unknown_lines.is_empty() {
        let (unknown, _) = lines::split(bytes, &records.unknown_lines);
        dir.ops().keep_aside(&dir.events(), &*unknown)?;
    }
    let journal = new_journal(dir, &after(records, base))?;
    dir.ops().replace(&dir.events(), &journal)?;
    EventsFile::open(dir, &journal, journal.len())
}

/// Whether the files of the state are as the last turns left them.
pub(super) fn is_state_filed(records: &JournalRecords, files: &StoredState) -> bool {
    let newest: BTreeMap<ExtensionName, _> = records.state();
    newest.iter().all(|(name, value)| files.crcs.get(name) == Some(&crc32fast::hash(&state::encode(value))))
}
