//! Owns the way from the files that a process left to an instance that can go on (CRASH-01).

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use super::super::Interrupted;
use super::atomic;
use super::events::Events;
use super::fold::{Folding, Mark};
use super::lines;
use super::log::{Begin, Fold, Log, Started, torn_part};
use super::place::Place;
use crate::conversation::{Conversation, Message, MessageEvent, Part};
use crate::error::{Error, ErrorCode, Result};
use crate::name::TurnId;

/// An instance whose files agree.
pub(super) struct Recovered {
    pub(super) base: Vec<Arc<Message>>,
    pub(super) mark: Mark,
    pub(super) interrupted: Option<Interrupted>,
    pub(super) events: Events,
    /// Whether the last line of the events has its line end.
    pub(super) ends_line: bool,
}

/// Finishes a committed turn, or finds the one that was not committed. Doing it twice does no more than doing it once, so
/// that it may crash itself.
pub(super) fn recover(place: &Place) -> Result<Recovered> {
    let made = [atomic::ensure_file(&place.base())?, atomic::ensure_file(&place.events())?];
    if made.contains(&true) {
        atomic::sync_dir(&place.messages())?;
    }
    let path = place.events();
    let bytes = lines::read_whole_lines(&path, torn_part)?;
    let log = Log::parse(&bytes, &path)?;
    let events = Events::open(path, bytes.len() as u64)?;
    match (log.begin, log.fold) {
        (Some(begin), Some(fold)) => finish_turn(place, &begin, &fold, log.events, events),
        (Some(begin), None) => {
            let mut base = atomic::read(&place.base())?;
            let end = old_end(place, &begin, &base)?;
            if base.len() > end {
                // Not the work of this store, which touches the base only after a commit.
                lines::cut(&place.base(), &mut base, end)?;
            }
            let found = Interrupted { turn: begin.turn, events: log.events, started: log.started };
            go_on(place, &base, found, events, log.ended)
        }
        (None, _) if log.events.is_empty() => {
            let base = lines::read_whole_lines(&place.base(), lines::torn_tail)?;
            let messages = lines::messages(&base, &place.base())?;
            Ok(Recovered { base: messages, mark: Mark::of(&base), interrupted: None, events, ends_line: log.ended })
        }
        (None, _) => adopt(place, log.events),
    }
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
    let mut base = atomic::read(&path)?;
    let now = Mark::of(&base);
    if (now.bytes(), now.crc()) == (fold.base_bytes_after, fold.crc) {
        Folding::after_base(fold.clone(), now).finish(place, &mut events)?;
    } else {
        let end = old_end(place, begin, &base)?;
        if !fold.pure && base.len() != end {
            // A base is rewritten in one step: this one is neither the old nor the new, and events must not be applied to
            // it that may be in it already.
            return Err(changed(&path, "is neither the one before the last turn nor the one after it"));
        }
        let conversation = replay(&lines::messages(&base[..end], &path)?, recorded);
        let folding = Folding::of(place, &Mark::of(&base[..end]), &begin.turn, &conversation, &fold.state)?;
        if folding.record != *fold {
            // A number may be written differently after it was read. If this opening crashed after the base is replaced,
            // the next one must know the base that was made now.
            tracing::warn!(file = %path.display(), "the base is folded again, but is not to the byte what the commit says");
            let mut record = Vec::new();
            lines::push(&mut record, &folding.record, &place.events())?;
            events.append(&record)?;
            events.sync()?;
        }
        if !folding.explains(&base[end..]) {
            lines::cut(&path, &mut base, end)?;
        }
        folding.finish(place, &mut events)?;
        // Not what was computed, but what the next process will see.
        base = atomic::read(&path)?;
    }
    let messages = lines::messages(&base, &path)?;
    Ok(Recovered { base: messages, mark: Mark::of(&base), interrupted: None, events, ends_line: true })
}

/// The turn was not committed: gives out its events.
fn go_on(place: &Place, base: &[u8], found: Interrupted, events: Events, ends_line: bool) -> Result<Recovered> {
    let messages = lines::messages(base, &place.base())?;
    let applied = replay(&messages, found.events).events().to_vec();
    let interrupted = Some(Interrupted { events: applied, ..found });
    Ok(Recovered { base: messages, mark: Mark::of(base), interrupted, events, ends_line })
}

/// The events come from another implementation, whose files have no records but events: makes them a turn like any other.
/// Nobody noted which calls started, so each may have.
fn adopt(place: &Place, recorded: Vec<MessageEvent>) -> Result<Recovered> {
    let base = lines::read_whole_lines(&place.base(), lines::torn_tail)?;
    let path = place.events();
    let turn = TurnId::from("recovered");
    let mut bytes = Vec::new();
    lines::push(&mut bytes, &Begin { turn: turn.clone(), base_bytes: base.len() as u64 }, &path)?;
    recorded.iter().try_for_each(|event| lines::push(&mut bytes, event, &path))?;
    let said = recorded.iter().filter_map(MessageEvent::appended);
    let calls = said.flat_map(|message| message.content().parts()).filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.tool_call_id.clone()),
        _ => None,
    });
    let started: Vec<_> = calls.collect();
    let note = |call| Started { started: Cow::Borrowed(call) };
    started.iter().try_for_each(|call| lines::push(&mut bytes, &note(call), &path))?;
    atomic::replace(&path, &bytes)?;
    atomic::sync_dir(&place.messages())?;
    let events = Events::open(path, bytes.len() as u64)?;
    go_on(place, &base, Interrupted { turn, events: recorded, started }, events, true)
}

/// The conversation after `events`. An event that brings in an id that is there already is left out and reported (D-20):
/// another implementation may have stored the base and crashed before it cleared the events.
pub(super) fn replay(base: &[Arc<Message>], events: Vec<MessageEvent>) -> Conversation {
    let (mut conversation, _) = Conversation::from_base(base.iter().cloned());
    for event in events {
        if let Err(error) = conversation.apply(event) {
            tracing::warn!(%error, "a recorded event is left out");
        }
    }
    conversation
}

/// Where the base before the turn ends in `base`.
fn old_end(place: &Place, begin: &Begin, base: &[u8]) -> Result<usize> {
    let end = usize::try_from(begin.base_bytes).ok().filter(|end| *end <= base.len());
    end.ok_or_else(|| {
        changed(&place.base(), &format!("has lost bytes: it had {} and has {}", begin.base_bytes, base.len()))
    })
}

fn changed(base: &Path, what: &str) -> Error {
    Error::new(ErrorCode::STORE_DAMAGED, format!("{} {what}", base.display())).suggest(
        "restore it from a backup; or keep it as it is, and remove the lines without a `type` from events.jsonl beside it to \
         have its events applied again, or all its lines to give them up",
    )
}
