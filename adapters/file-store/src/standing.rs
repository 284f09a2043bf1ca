//! The content of an instance, from all of its files together: the base, and the changes of the journal to it.
// BITS-01

use std::collections::BTreeMap;
use std::sync::Arc;

use goondan_core::{Conversation, Error, ErrorCode, ExtensionName, Message, MessageEvent, Result};

use super::atomic;
use super::base::{self, Fingerprint, LoadedBase};
use super::grammar::{JournalRecords, KnownBase, other_version, torn_part};
use super::layout::InstanceDir;
use super::records::CheckpointRecord;
use super::state::{self, StoredState};
use super::{events, lines};

/// The files as they were read; nothing is changed.
pub(super) struct Standing {
    /// The content of `events.jsonl`, without a torn part.
    pub(super) bytes: Vec<u8>,
    /// Whether a crash tore it.
    pub(super) is_torn: bool,
    pub(super) records: JournalRecords,
    /// The newest of the known bases that the base is, and its content.
    pub(super) base: KnownBase,
    pub(super) loaded: LoadedBase,
    pub(super) tail: BaseTail,
}

/// The bytes after the known base in its file: the lines that turns append there before they are synced, for readers.
#[derive(Debug)]
pub(super) struct BaseTail {
    /// The lines of all turns up to the first one that does more than append.
    pub(super) expected: Vec<u8>,
    pub(super) found: FoundTail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundTail {
    Whole,
    /// A part of it, or pages that were never written.
    Torn,
    /// Something else.
    Foreign,
}

impl Standing {
    /// Reads the journal and the base.
    ///
    /// # Errors
    /// `E_STORE_VERSION` for files of another version, `E_STORE_DAMAGED` for a journal that was changed, or a base that
    /// is none of those that it goes on from.
    pub(super) fn read(dir: &InstanceDir) -> Result<Self> {
        let (bytes, is_torn) = read_journal(dir)?;
        let records = JournalRecords::parse(&bytes, &dir.events())?;
        let (loaded, base) = match &records.checkpoint {
            Some(_) => load_base(dir, &records)?,
            None => {
                check_empty(dir)?;
                (LoadedBase::empty(), Some(KnownBase { bytes: 0, crc: 0, turns: 0 }))
            }
        };
        let Some(base) = base else { return Err(changed_base(dir, &records)?) };
        let tail = BaseTail::read(dir, &records, base, &loaded.index.fingerprint)?;
        Ok(Self { bytes, is_torn, records, base, loaded, tail })
    }

    /// Whether the turns that the base does not have only append to it.
    pub(super) fn only_appends(&self) -> bool {
        self.records.turns[self.base.turns..].iter().all(|turn| turn.fold.pure)
    }

    /// Returns the messages of the base, and those that the turns append which it does not have, if they do nothing
    /// else.
    pub(super) fn take_messages(&mut self) -> Vec<Arc<Message>> {
        let mut messages = std::mem::take(&mut self.loaded.messages);
        let events = self.records.turns[self.base.turns..].iter().flat_map(|turn| &turn.events);
        messages.extend(events.filter_map(MessageEvent::appended).cloned());
        messages
    }

    /// Returns the base with the events of the committed turns that it does not have.
    pub(super) fn conversation(&self) -> Conversation {
        let turns = self.records.turns[self.base.turns..].iter();
        replay(self.loaded.messages.iter().cloned(), turns.flat_map(|turn| turn.events.iter().cloned()))
    }

    /// Returns the error for a base that has more than the journal, or other lines.
    pub(super) fn foreign_tail(&self, dir: &InstanceDir) -> Error {
        if let Err(line) = base::scan(&dir.base(), u64::MAX, &mut |_| {}, &mut |_, error| Err(error)) {
            return line;
        }
        let what = format!(
            "{}: what follows the first {} bytes is not what the turns in {} appended",
            dir.base().display(),
            self.base.bytes,
            dir.events().display()
        );
        Error::new(ErrorCode::STORE_DAMAGED, what).suggest(ACCEPT)
    }
}

impl BaseTail {
    pub(super) fn read(
        dir: &InstanceDir,
        records: &JournalRecords,
        base: KnownBase,
        fingerprint: &Fingerprint,
    ) -> Result<Self> {
        let pure = records.turns[base.turns..].iter().take_while(|turn| turn.fold.pure);
        let path = dir.base();
        let expected = base::appended(&path, fingerprint, pure.flat_map(|turn| &turn.events))?;
        let tail = base::tail(&path, base.bytes, expected.len())?;
        let is_written = |(found, expected): (&u8, &u8)| found == expected || *found == 0;
        let found = match tail == expected {
            true => FoundTail::Whole,
            false if tail.len() <= expected.len() && tail.iter().zip(&expected).all(is_written) => FoundTail::Torn,
            false => FoundTail::Foreign,
        };
        Ok(Self { expected, found })
    }
}

/// Reads the base as far as the newest of those goes that the journal knows and that fits the file.
pub(super) fn load_base(dir: &InstanceDir, records: &JournalRecords) -> Result<(LoadedBase, Option<KnownBase>)> {
    base::load(&dir.base(), &records.bases, &mut |base, fingerprint| {
        Ok(BaseTail::read(dir, records, base, fingerprint)?.found != FoundTail::Foreign)
    })
}

/// Returns the content of `events.jsonl` without a torn part, and whether it has one.
pub(super) fn read_journal(dir: &InstanceDir) -> Result<(Vec<u8>, bool)> {
    let mut bytes = events::read(&dir.events())?;
    let tear = torn_part(&bytes);
    bytes.truncate(tear.unwrap_or(bytes.len()));
    Ok((bytes, tear.is_some()))
}

/// Fails unless an instance without a journal has nothing else.
fn check_empty(dir: &InstanceDir) -> Result<()> {
    let bytes = atomic::len(&dir.base())?;
    let left = match state::read(dir)?.values.into_keys().next() {
        _ if bytes > 0 => format!("the base has {bytes} bytes"),
        Some(name) => format!("`{name}` has state"),
        None => return Ok(()),
    };
    let what = format!("is empty, although {left}: another version wrote the instance, or the file was emptied");
    Err(other_version(&dir.events(), &what).suggest(EMPTIED))
}

/// Returns the state of all extensions: the files, which are those of the checkpoint or newer, and over them the
/// values that the turns since then stored.
pub(super) fn read_state(dir: &InstanceDir, records: &JournalRecords) -> Result<StoredState> {
    let mut stored = state::read(dir)?;
    if let Some((name, what)) = changed_state(records, &stored).next() {
        let file = state::path(dir, name);
        return Err(Error::new(ErrorCode::EXT_STATE, format!("{} {what}", file.display())).suggest(ACCEPT));
    }
    stored.values.extend(records.state());
    Ok(stored)
}

/// Returns the extensions whose state is not one that the journal knows, and the fault of each.
pub(super) fn changed_state<'a>(
    records: &'a JournalRecords,
    stored: &'a StoredState,
) -> impl Iterator<Item = (&'a ExtensionName, String)> {
    // The values that files may hold, oldest first.
    let mut known: BTreeMap<&ExtensionName, Vec<u32>> = BTreeMap::new();
    for (name, crc) in records.checkpoint.iter().flat_map(|checkpoint| &checkpoint.state) {
        known.entry(name).or_default().push(*crc);
    }
    let missing: Vec<_> = known.keys().copied().filter(|name| !stored.crcs.contains_key(*name)).collect();
    for (name, value) in records.turns.iter().flat_map(|turn| &*turn.fold.state) {
        known.entry(name).or_default().push(crc32fast::hash(&state::encode(value)));
    }
    let missing = missing.into_iter().map(|name| (name, "is missing: the last checkpoint left one".to_owned()));
    let changed = stored.crcs.iter().filter_map(move |(name, crc)| {
        // A file that no turn stored is taken as it is.
        let last = known.get(name).filter(|known| !known.contains(crc))?.last()?;
        Some((name, format!("was changed by another program: its checksum is {crc:08x}, and was {last:08x}")))
    });
    missing.chain(changed)
}

/// Returns the error for a base that is none of those that the journal goes on from.
fn changed_base(dir: &InstanceDir, records: &JournalRecords) -> Result<Error> {
    let what = what_differs(dir, records)?;
    Ok(Error::new(ErrorCode::STORE_DAMAGED, format!("{} {what}", dir.base().display())).suggest(ACCEPT))
}

/// Returns the fault of a base that is none of those that the journal goes on from.
pub(super) fn what_differs(dir: &InstanceDir, records: &JournalRecords) -> Result<String> {
    let bytes = atomic::len(&dir.base())?;
    let Some(known) = records.bases.last() else { return Ok("is none that the journal knows".to_owned()) };
    Ok(match known.bytes {
        had if bytes < had => format!("was changed by another program: it has {bytes} bytes, and had {had}"),
        had => format!("was changed by another program: its first {had} bytes are not those of the last checkpoint"),
    })
}

/// Returns the conversation after `events`. An event that cannot be applied is left out and reported (D-20): the base
/// may be one that was accepted as it is.
pub(super) fn replay(
    base: impl IntoIterator<Item = Arc<Message>>,
    events: impl IntoIterator<Item = MessageEvent>,
) -> Conversation {
    let (mut conversation, _) = Conversation::from_base(base);
    for event in events {
        if let Err(error) = conversation.apply(event) {
            tracing::warn!(%error, "a recorded event is left out");
        }
    }
    conversation
}

/// Returns the bytes of a journal that begins with `checkpoint`.
pub(super) fn new_journal(dir: &InstanceDir, checkpoint: &CheckpointRecord) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    lines::push_with_sum(&mut bytes, checkpoint, &dir.events())?;
    Ok(bytes)
}

const ACCEPT: &str = "restore it from a backup; or, if it is right as it is, accept it with `goondan instance repair \
                      --yes`: without `--yes` that says what is kept, and changes nothing";

const EMPTIED: &str = "restore it from a backup; or export the instance with the version that wrote it; or accept what \
                       is there with `goondan instance repair --yes`";
