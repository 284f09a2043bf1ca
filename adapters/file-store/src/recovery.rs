//! Crash recovery: from the files that an earlier process left to an instance that can continue (CRASH-01).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use goondan_core::{Conversation, Error, ErrorCode, ExtensionName, Message, MessageEvent, Part, Result, TurnId};
use goondan_runtime::store::{Facts, Interrupted};
use serde_json::Value;

use super::atomic::{self, io_error};
use super::base::{self, BaseIndex, Fingerprint, LoadedBase};
use super::committed::CommittedRecord;
use super::ended::EndedTurns;
use super::events::{self, EventsFile};
use super::fold::Folding;
use super::layout::InstanceDir;
use super::path::{Access, StorePath};
use super::records::{BeginRecord, FoldRecord, StartedRecord, TurnRecords, torn_part};
use super::{lines, state};

/// An instance whose files are consistent.
pub(super) struct Recovered {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) index: BaseIndex,
    pub(super) state: BTreeMap<ExtensionName, Value>,
    /// The checksums of the base and the state.
    pub(super) committed: CommittedRecord,
    pub(super) interrupted: Option<Interrupted>,
    pub(super) events: EventsFile,
    /// Whether the last line of the events ends with a line end.
    pub(super) ends_line: bool,
}

/// Finishes a turn that was committed, or returns one that was not. It is idempotent, so a crash during recovery is
/// recovered from in the same way.
pub(super) fn recover(dir: &InstanceDir) -> Result<Recovered> {
    let mut created = vec![dir.ops().ensure_file(&dir.events())?];
    let ReadEvents { bytes, mut records } = read_events(dir)?;
    // A base that is missing is created only if it may be empty.
    if let Some(committed) = records.committed.as_ref().filter(|_| !dir.base().exists()) {
        committed.check_base(dir, &Fingerprint::new())?;
    }
    created.push(dir.ops().ensure_file(&dir.base())?);
    if created.contains(&true) {
        dir.ops().sync_dir(&dir.messages())?;
    }
    let events = EventsFile::open(dir, &bytes, records.turn_start)?;
    match (records.begin.take(), records.fold.take()) {
        (Some(begin), Some(fold)) => finish_turn(dir, &begin, &fold, records, &bytes, events),
        (Some(begin), None) => {
            let end = old_base_len(dir, &begin)?;
            let loaded = base::load(&dir.base(), Some(end))?;
            let TurnRecords { committed, event, events: recorded, started, facts, ended, .. } = records;
            let mut found = Interrupted::new(begin.turn.into_owned());
            if let Some(event) = event {
                found = found.input(event);
            }
            (found.digest, found.events, found.started, found.facts) = (begin.digest, recorded, started, facts);
            let recovered = resume(dir, loaded, committed, found, events, ended)?;
            if atomic::len(&dir.base())? > end {
                // Another program did this: the store writes to the base only after a commit.
                dir.ops().cut(&dir.base(), end)?;
            }
            Ok(recovered)
        }
        (None, _) if records.events.is_empty() => idle(dir, records.committed, events, records.ended),
        (None, _) => adopt(dir, records, &bytes),
    }
}

/// The content of the events, and the records in it.
struct ReadEvents {
    bytes: Vec<u8>,
    records: TurnRecords,
}

/// Reads the events. Bytes that a crash tore and records that this version does not know are kept aside first. Unknown
/// records of a committed turn also stay in the file until its other records are folded.
fn read_events(dir: &InstanceDir) -> Result<ReadEvents> {
    let path = dir.events();
    let mut bytes = events::read(&path)?;
    if let Some(tear) = torn_part(&bytes) {
        dir.ops().cut(&path, tear as u64)?;
        bytes.truncate(tear);
    }
    let records = TurnRecords::parse(&bytes, &path)?;
    if records.unknown_lines.is_empty() {
        return Ok(ReadEvents { bytes, records });
    }
    tracing::warn!(
        file = %path.display(), lines = ?records.unknown_lines,
        "records of a kind that this version does not know are taken out and kept aside"
    );
    if records.fold.is_some() {
        let (unknown, _) = lines::split(&bytes, &records.unknown_lines);
        dir.ops().keep_aside(&path, &*unknown)?;
        return Ok(ReadEvents { bytes, records });
    }
    let bytes = lines::move_lines_aside(dir, &path, &bytes, &records.unknown_lines)?;
    let records = TurnRecords::parse(&bytes, &path)?;
    Ok(ReadEvents { bytes, records })
}

/// Returns an instance in which no turn is open.
fn idle(
    dir: &InstanceDir,
    committed: Option<CommittedRecord>,
    events: EventsFile,
    ends_line: bool,
) -> Result<Recovered> {
    let LoadedBase { messages, index, tear } = base::load(&dir.base(), None)?;
    let (state, committed) = check(dir, committed, &index.fingerprint)?;
    if let Some(tear) = tear {
        dir.ops().cut(&dir.base(), tear)?;
    }
    Ok(Recovered { messages, index, state, committed, interrupted: None, events, ends_line })
}

/// Reads the state, and compares it and the base with the checksums of the last commit. Without any, because another
/// implementation wrote the files, they are trusted, and the next commit stores checksums.
// BITS-01
fn check(
    dir: &InstanceDir,
    committed: Option<CommittedRecord>,
    base: &Fingerprint,
) -> Result<(BTreeMap<ExtensionName, Value>, CommittedRecord)> {
    if let Some(committed) = &committed {
        committed.check_base(dir, base)?;
    }
    let state = state::read(dir)?;
    if let Some(committed) = &committed {
        committed.check_state(dir, &state)?;
    }
    let known = CommittedRecord::of("unknown", base, &state);
    Ok((state.values, known))
}

/// Finishes a committed turn: steps 5 to 7 of the protocol, as far as they are not done.
fn finish_turn(
    dir: &InstanceDir,
    begin: &BeginRecord<'_>,
    fold: &FoldRecord<'static>,
    records: TurnRecords,
    bytes: &[u8],
    mut events: EventsFile,
) -> Result<Recovered> {
    let (path, crc) = (dir.base(), records.events_crc(bytes));
    let now = Fingerprint::of(&path, u64::MAX)?;
    let folding = if (now.bytes, now.crc()) == (fold.base_bytes_after, fold.crc) {
        Folding::after_base(fold.clone(), now)
    } else {
        let end = old_base_len(dir, begin)?;
        if !fold.pure && now.bytes != end {
            // A base is replaced atomically, so this one is neither the old nor the new one. Applying the events to
            // it could apply them twice.
            return Err(changed_base(&path, "is neither the one before the last turn nor the one after it"));
        }
        if fold.events_crc.is_some_and(|committed| committed != crc) {
            return Err(changed_events(dir));
        }
        let LoadedBase { messages, index, .. } = base::load(&path, Some(end))?;
        if let Some(committed) = &records.committed {
            committed.check_base(dir, &index.fingerprint)?;
        }
        let is_proven = records.proves(fold, end);
        let folding = Folding::again(dir, &index, fold, &replay(messages, records.events))?;
        if folding.record != *fold {
            if !is_proven {
                return Err(changed_base(&path, "with the events of the last turn is not the base that was committed"));
            }
            // Another version encodes the same content differently. In case this opening crashes after it has replaced
            // the base, record the base that is written now.
            tracing::warn!(
                file = %path.display(),
                "the base was folded again, but its bytes differ from those that the commit recorded"
            );
            let mut record = Vec::new();
            lines::push_with_sum(&mut record, &folding.record, &dir.events())?;
            events.append(&record)?;
            events.sync()?;
        }
        match is_start_of(&path, end, folding.appended())? {
            true => dir.ops().trim(&path, end)?,
            false => dir.ops().cut(&path, end)?,
        }
        folding
    };
    let last = match records.committed {
        Some(last) => last,
        None => CommittedRecord::of("unknown", &folding.after, &state::read(dir)?),
    };
    let committed = folding.finish(dir, &mut events, &last, &mut EndedTurns::read(dir)?)?;
    // Read the files again instead of using what was computed, to return what the next process will read.
    idle(dir, Some(committed), events, true)
}

/// Whether the bytes of the file after `end` are a prefix of `lines`, that is, were written by this turn before a
/// crash.
fn is_start_of(path: &StorePath, end: u64, lines: &[u8]) -> Result<bool> {
    let read = || -> io::Result<bool> {
        let (mut file, mut tail) = (path.open(Access::Read)?, Vec::new());
        file.seek(SeekFrom::Start(end))?;
        file.take(lines.len() as u64 + 1).read_to_end(&mut tail)?;
        Ok(lines.starts_with(&tail))
    };
    read().map_err(|error| io_error("read", path, error))
}

/// Returns an instance with a turn that was not committed.
fn resume(
    dir: &InstanceDir,
    LoadedBase { messages, index, .. }: LoadedBase,
    committed: Option<CommittedRecord>,
    mut found: Interrupted,
    events: EventsFile,
    ends_line: bool,
) -> Result<Recovered> {
    let (state, committed) = check(dir, committed, &index.fingerprint)?;
    let recorded = std::mem::take(&mut found.events);
    let count = recorded.len();
    found.events = replay(messages.iter().cloned(), recorded).events().to_vec();
    if found.events.len() != count {
        // What was noted beside them counts them.
        found.facts = Facts::default();
        found.facts.newest = found.events.len();
    }
    Ok(Recovered { messages, index, state, committed, interrupted: Some(found), events, ends_line })
}

/// Makes a turn of events from another implementation, whose files have no records but events. They do not say which
/// calls started, so each is treated as started.
fn adopt(dir: &InstanceDir, records: TurnRecords, before: &[u8]) -> Result<Recovered> {
    let TurnRecords { committed, events: recorded, turn_start, .. } = records;
    let loaded = base::load(&dir.base(), None)?;
    if let Some(tear) = loaded.tear {
        dir.ops().cut(&dir.base(), tear)?;
    }
    let path = dir.events();
    let turn = TurnId::from("recovered");
    let mut bytes = before[..turn_start].to_vec();
    let base_bytes = loaded.index.fingerprint.bytes;
    let begin = BeginRecord { turn: Cow::Borrowed(&turn), base_bytes, event: None, digest: None };
    lines::push_with_sum(&mut bytes, &begin, &path)?;
    recorded.iter().try_for_each(|event| lines::push(&mut bytes, event, &path))?;
    let appended = recorded.iter().filter_map(MessageEvent::appended);
    let calls = appended.flat_map(|message| message.content().parts()).filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.tool_call_id.clone()),
        _ => None,
    });
    let started: Vec<_> = calls.collect();
    let record = |call| StartedRecord { started: Cow::Borrowed(call) };
    started.iter().try_for_each(|call| lines::push(&mut bytes, &record(call), &path))?;
    dir.ops().replace(&path, &bytes)?;
    dir.ops().sync_dir(&dir.messages())?;
    let events = EventsFile::open(dir, &bytes, turn_start)?;
    let mut found = Interrupted::new(turn);
    found.facts.newest = recorded.len();
    (found.events, found.started) = (recorded, started);
    resume(dir, loaded, committed, found, events, true)
}

/// Writes the checksums of the files as they are, after they were accepted or imported.
pub(super) fn store_checksums(dir: &InstanceDir, recovered: &Recovered) -> Result<()> {
    let path = dir.events();
    let (mut bytes, turn) = (Vec::new(), events::read(&path)?);
    lines::push_with_sum(&mut bytes, &recovered.committed, &path)?;
    let start = TurnRecords::parse(&turn, &path)?.turn_start;
    bytes.extend_from_slice(&turn[start..]);
    dir.ops().replace(&path, &bytes)?;
    dir.ops().sync_dir(&dir.messages())
}

/// Returns the conversation after `events`. An event that adds an existing id is skipped and reported (D-20): another
/// implementation may have stored the base and crashed before it emptied the events.
pub(super) fn replay(base: impl IntoIterator<Item = Arc<Message>>, events: Vec<MessageEvent>) -> Conversation {
    let (mut conversation, _) = Conversation::from_base(base);
    for event in events {
        if let Err(error) = conversation.apply(event) {
            tracing::warn!(%error, "a recorded event is left out");
        }
    }
    conversation
}

/// Returns the length of the base before the turn.
pub(super) fn old_base_len(dir: &InstanceDir, begin: &BeginRecord<'_>) -> Result<u64> {
    let (path, end) = (dir.base(), begin.base_bytes);
    match atomic::len(&path)? {
        length if length < end => Err(changed_base(&path, &format!("has lost bytes: it had {end} and has {length}"))),
        _ => Ok(end),
    }
}

/// Returns the error for a committed turn whose records were changed before they were folded.
pub(super) fn changed_events(dir: &InstanceDir) -> Error {
    changed_base(&dir.events(), "was changed: the records of the last turn are not those that were committed")
}

fn changed_base(file: &Path, what: &str) -> Error {
    Error::new(ErrorCode::STORE_DAMAGED, format!("{} {what}", file.display())).suggest(
        "restore it from a backup; or keep it as it is, and let `goondan instance repair` apply the events beside it again",
    )
}
