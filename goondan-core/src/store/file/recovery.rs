//! Crash recovery: from the files that an earlier process left to an instance that can continue (CRASH-01).

use std::borrow::Cow;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::super::Interrupted;
use super::atomic::{self, io_error};
use super::base::{self, BaseIndex, Fingerprint, LoadedBase};
use super::events::{self, EventsFile};
use super::fold::Folding;
use super::layout::InstanceDir;
use super::lines;
use super::path::{Access, StorePath};
use super::records::{BeginRecord, FoldRecord, StartedRecord, TurnRecords, torn_part};
use crate::conversation::{Conversation, Message, MessageEvent, Part};
use crate::error::{Error, ErrorCode, Result};
use crate::name::TurnId;

/// An instance whose files are consistent.
pub(super) struct Recovered {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) index: BaseIndex,
    pub(super) interrupted: Option<Interrupted>,
    pub(super) events: EventsFile,
    /// Whether the last line of the events ends with a line end.
    pub(super) ends_line: bool,
}

/// Finishes a turn that was committed, or returns one that was not. It is idempotent, so a crash during recovery is
/// recovered from in the same way.
pub(super) fn recover(dir: &InstanceDir) -> Result<Recovered> {
    let created = [dir.ops().ensure_file(&dir.base())?, dir.ops().ensure_file(&dir.events())?];
    if created.contains(&true) {
        dir.ops().sync_dir(&dir.messages())?;
    }
    let (records, length) = read_events(dir)?;
    let events = EventsFile::open(dir, length)?;
    match (records.begin, records.fold) {
        (Some(begin), Some(fold)) => finish_turn(dir, &begin, &fold, records.events, events),
        (Some(begin), None) => {
            let end = old_base_len(dir, &begin)?;
            if atomic::len(&dir.base())? > end {
                // Another program did this: the store writes to the base only after a commit.
                dir.ops().cut(&dir.base(), end)?;
            }
            let found = Interrupted { turn: begin.turn, events: records.events, started: records.started };
            resume(base::load(&dir.base(), Some(end))?, found, events, records.ended)
        }
        (None, _) if records.events.is_empty() => {
            let LoadedBase { messages, index, .. } = load_repaired(dir)?;
            Ok(Recovered { messages, index, interrupted: None, events, ends_line: records.ended })
        }
        (None, _) => adopt(dir, records.events),
    }
}

/// Reads the records of the events, and the length of the file. Bytes that a crash tore and records that this version
/// does not know are kept aside first.
fn read_events(dir: &InstanceDir) -> Result<(TurnRecords, u64)> {
    let path = dir.events();
    let mut bytes = events::read(&path)?;
    if let Some(tear) = torn_part(&bytes) {
        dir.ops().cut(&path, tear as u64)?;
        bytes.truncate(tear);
    }
    let records = TurnRecords::parse(&bytes, &path)?;
    if records.unknown_lines.is_empty() {
        return Ok((records, bytes.len() as u64));
    }
    tracing::warn!(
        file = %path.display(), lines = ?records.unknown_lines,
        "records of a kind that this version does not know are taken out and kept aside"
    );
    let rest = lines::move_lines_aside(dir, &path, &bytes, &records.unknown_lines)?;
    Ok((TurnRecords::parse(&rest, &path)?, rest.len() as u64))
}

/// Reads the base of an instance in which no turn is open. A torn last line is cut off and kept aside.
fn load_repaired(dir: &InstanceDir) -> Result<LoadedBase> {
    let loaded = base::load(&dir.base(), None)?;
    if let Some(tear) = loaded.tear {
        dir.ops().cut(&dir.base(), tear)?;
    }
    Ok(loaded)
}

/// Finishes a committed turn: steps 5 to 7 of the protocol, as far as they are not done.
fn finish_turn(
    dir: &InstanceDir,
    begin: &BeginRecord,
    fold: &FoldRecord<'static>,
    recorded: Vec<MessageEvent>,
    mut events: EventsFile,
) -> Result<Recovered> {
    let path = dir.base();
    let now = Fingerprint::of(&path, u64::MAX)?;
    if (now.bytes, now.crc()) == (fold.base_bytes_after, fold.crc) {
        Folding::after_base(fold.clone(), now).finish(dir, &mut events)?;
    } else {
        let end = old_base_len(dir, begin)?;
        if !fold.pure && now.bytes != end {
            // A base is replaced atomically, so this one is neither the old nor the new one. Applying the events to
            // it could apply them twice.
            return Err(changed_base(&path, "is neither the one before the last turn nor the one after it"));
        }
        let LoadedBase { messages, index, .. } = base::load(&path, Some(end))?;
        let conversation = replay(messages, recorded);
        let folding = Folding::prepare(dir, &index, &begin.turn, &conversation, &fold.state)?;
        if folding.record != *fold {
            // A number can be encoded differently after it was parsed. In case this opening crashes after it has
            // replaced the base, record the base that is written now.
            tracing::warn!(
                file = %path.display(),
                "the base was folded again, but its bytes differ from those that the commit recorded"
            );
            let mut record = Vec::new();
            lines::push(&mut record, &folding.record, &dir.events())?;
            events.append(&record)?;
            events.sync()?;
        }
        match is_start_of(&path, end, folding.appended())? {
            true => dir.ops().trim(&path, end)?,
            false => dir.ops().cut(&path, end)?,
        }
        folding.finish(dir, &mut events)?;
    }
    // Read the file again instead of using what was computed, to return what the next process will read.
    let LoadedBase { messages, index, .. } = load_repaired(dir)?;
    Ok(Recovered { messages, index, interrupted: None, events, ends_line: true })
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
    LoadedBase { messages, index, .. }: LoadedBase,
    found: Interrupted,
    events: EventsFile,
    ends_line: bool,
) -> Result<Recovered> {
    let applied = replay(messages.iter().cloned(), found.events).events().to_vec();
    let interrupted = Some(Interrupted { events: applied, ..found });
    Ok(Recovered { messages, index, interrupted, events, ends_line })
}

/// Makes a turn of events from another implementation, whose files have no records but events. They do not say which
/// calls started, so each is treated as started.
fn adopt(dir: &InstanceDir, recorded: Vec<MessageEvent>) -> Result<Recovered> {
    let loaded = load_repaired(dir)?;
    let path = dir.events();
    let turn = TurnId::from("recovered");
    let mut bytes = Vec::new();
    lines::push(&mut bytes, &BeginRecord { turn: turn.clone(), base_bytes: loaded.index.fingerprint.bytes }, &path)?;
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
    let events = EventsFile::open(dir, bytes.len() as u64)?;
    resume(loaded, Interrupted { turn, events: recorded, started }, events, true)
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
fn old_base_len(dir: &InstanceDir, begin: &BeginRecord) -> Result<u64> {
    let (path, end) = (dir.base(), begin.base_bytes);
    match atomic::len(&path)? {
        length if length < end => Err(changed_base(&path, &format!("has lost bytes: it had {end} and has {length}"))),
        _ => Ok(end),
    }
}

fn changed_base(base: &Path, what: &str) -> Error {
    Error::new(ErrorCode::STORE_DAMAGED, format!("{} {what}", base.display())).suggest(
        "restore it from a backup; or keep it as it is, and let `goondan instance repair` apply the events beside it again",
    )
}
