//! Owns the way from the files that a process left to an instance that can go on (CRASH-01).

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use super::super::Interrupted;
use super::atomic::{self, io_error};
use super::base::{self, Base, Loaded, Mark};
use super::events::{self, Events};
use super::fold::Folding;
use super::lines;
use super::log::{Begin, Fold, Log, Started, torn_part};
use super::place::Place;
use crate::conversation::{Conversation, Message, MessageEvent, Part};
use crate::error::{Error, ErrorCode, Result};
use crate::name::TurnId;

/// An instance whose files agree.
pub(super) struct Recovered {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) base: Base,
    pub(super) interrupted: Option<Interrupted>,
    pub(super) events: Events,
    /// Whether the last line of the events has its line end.
    pub(super) ends_line: bool,
}

/// Finishes a committed turn, or finds the one that was not committed. Doing it twice does no more than doing it once, so
/// that it may crash itself.
pub(super) fn recover(place: &Place) -> Result<Recovered> {
    let made = [place.files().ensure_file(&place.base())?, place.files().ensure_file(&place.events())?];
    if made.contains(&true) {
        place.files().sync_dir(&place.messages())?;
    }
    let (log, length) = read_events(place)?;
    let events = Events::open(place, length)?;
    match (log.begin, log.fold) {
        (Some(begin), Some(fold)) => finish_turn(place, &begin, &fold, log.events, events),
        (Some(begin), None) => {
            let end = old_end(place, &begin)?;
            if atomic::len(&place.base())? > end {
                // Not the work of this store, which touches the base only after a commit.
                place.files().cut(&place.base(), end)?;
            }
            let found = Interrupted { turn: begin.turn, events: log.events, started: log.started };
            go_on(base::load(&place.base(), Some(end))?, found, events, log.ended)
        }
        (None, _) if log.events.is_empty() => {
            let Loaded { messages, base, .. } = load_repaired(place)?;
            Ok(Recovered { messages, base, interrupted: None, events, ends_line: log.ended })
        }
        (None, _) => adopt(place, log.events),
    }
}

/// What the events say, without what a crash tore or this version does not know, which is kept aside.
fn read_events(place: &Place) -> Result<(Log, u64)> {
    let path = place.events();
    let mut bytes = events::read(&path)?;
    if let Some(tear) = torn_part(&bytes) {
        place.files().cut(&path, tear as u64)?;
        bytes.truncate(tear);
    }
    let log = Log::parse(&bytes, &path)?;
    if log.unknown.is_empty() {
        return Ok((log, bytes.len() as u64));
    }
    tracing::warn!(
        file = %path.display(), lines = ?log.unknown,
        "records of a kind that this version does not know are taken out and kept aside"
    );
    let rest = lines::take_out(place, &path, &bytes, &log.unknown)?;
    Ok((Log::parse(&rest, &path)?, rest.len() as u64))
}

/// Reads the base of an instance in which no turn is open. A torn last line is kept aside.
fn load_repaired(place: &Place) -> Result<Loaded> {
    let loaded = base::load(&place.base(), None)?;
    if let Some(tear) = loaded.tear {
        place.files().cut(&place.base(), tear)?;
    }
    Ok(loaded)
}

/// The turn was committed: makes the files say so.
fn finish_turn(
    place: &Place,
    begin: &Begin,
    fold: &Fold<'static>,
    recorded: Vec<MessageEvent>,
    mut events: Events,
) -> Result<Recovered> {
    let path = place.base();
    let now = Mark::of(&path, u64::MAX)?;
    if (now.bytes, now.crc()) == (fold.base_bytes_after, fold.crc) {
        Folding::after_base(fold.clone(), now).finish(place, &mut events)?;
    } else {
        let end = old_end(place, begin)?;
        if !fold.pure && now.bytes != end {
            // A base is rewritten in one step: this one is neither the old nor the new, and events must not be applied to
            // it that may be in it already.
            return Err(changed(&path, "is neither the one before the last turn nor the one after it"));
        }
        let Loaded { messages, base, .. } = base::load(&path, Some(end))?;
        let conversation = replay(messages, recorded);
        let folding = Folding::of(place, &base, &begin.turn, &conversation, &fold.state)?;
        if folding.record != *fold {
            // A number may be written differently after it was read. If this opening crashed after the base is replaced,
            // the next one must know the base that was made now.
            tracing::warn!(file = %path.display(), "the base is folded again, but is not to the byte what the commit says");
            let mut record = Vec::new();
            lines::push(&mut record, &folding.record, &place.events())?;
            events.append(&record)?;
            events.sync()?;
        }
        if !is_start_of(&path, end, folding.appended())? {
            place.files().cut(&path, end)?;
        }
        folding.finish(place, &mut events)?;
    }
    // Not what was computed, but what the next process will see.
    let Loaded { messages, base, .. } = load_repaired(place)?;
    Ok(Recovered { messages, base, interrupted: None, events, ends_line: true })
}

/// Whether what stands beyond `end` bytes of the file is the start of `lines`: what was written before a crash.
fn is_start_of(path: &Path, end: u64, lines: &[u8]) -> Result<bool> {
    let read = || -> io::Result<bool> {
        let (mut file, mut tail) = (File::open(path)?, Vec::new());
        file.seek(SeekFrom::Start(end))?;
        file.take(lines.len() as u64 + 1).read_to_end(&mut tail)?;
        Ok(lines.starts_with(&tail))
    };
    read().map_err(|error| io_error("read", path, error))
}

/// The turn was not committed: gives out its events.
fn go_on(
    Loaded { messages, base, .. }: Loaded,
    found: Interrupted,
    events: Events,
    ends_line: bool,
) -> Result<Recovered> {
    let applied = replay(messages.iter().cloned(), found.events).events().to_vec();
    let interrupted = Some(Interrupted { events: applied, ..found });
    Ok(Recovered { messages, base, interrupted, events, ends_line })
}

/// The events come from another implementation, whose files have no records but events: makes them a turn like any other.
/// Nobody noted which calls started, so each may have.
fn adopt(place: &Place, recorded: Vec<MessageEvent>) -> Result<Recovered> {
    let loaded = load_repaired(place)?;
    let path = place.events();
    let turn = TurnId::from("recovered");
    let mut bytes = Vec::new();
    lines::push(&mut bytes, &Begin { turn: turn.clone(), base_bytes: loaded.base.mark.bytes }, &path)?;
    recorded.iter().try_for_each(|event| lines::push(&mut bytes, event, &path))?;
    let said = recorded.iter().filter_map(MessageEvent::appended);
    let calls = said.flat_map(|message| message.content().parts()).filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.tool_call_id.clone()),
        _ => None,
    });
    let started: Vec<_> = calls.collect();
    let note = |call| Started { started: Cow::Borrowed(call) };
    started.iter().try_for_each(|call| lines::push(&mut bytes, &note(call), &path))?;
    place.files().replace(&path, &bytes)?;
    place.files().sync_dir(&place.messages())?;
    let events = Events::open(place, bytes.len() as u64)?;
    go_on(loaded, Interrupted { turn, events: recorded, started }, events, true)
}

/// The conversation after `events`. An event that brings in an id that is there already is left out and reported (D-20):
/// another implementation may have stored the base and crashed before it cleared the events.
pub(super) fn replay(base: impl IntoIterator<Item = Arc<Message>>, events: Vec<MessageEvent>) -> Conversation {
    let (mut conversation, _) = Conversation::from_base(base);
    for event in events {
        if let Err(error) = conversation.apply(event) {
            tracing::warn!(%error, "a recorded event is left out");
        }
    }
    conversation
}

/// Where the base before the turn ends.
fn old_end(place: &Place, begin: &Begin) -> Result<u64> {
    let (path, end) = (place.base(), begin.base_bytes);
    match atomic::len(&path)? {
        length if length < end => Err(changed(&path, &format!("has lost bytes: it had {end} and has {length}"))),
        _ => Ok(end),
    }
}

fn changed(base: &Path, what: &str) -> Error {
    Error::new(ErrorCode::STORE_DAMAGED, format!("{} {what}", base.display())).suggest(
        "restore it from a backup; or keep it as it is, and let `goondan instance repair` apply the events beside it again",
    )
}
