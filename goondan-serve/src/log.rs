//! The log of a turn, which any number of watchers read from any place.
// SERVE-01

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Bytes;
use goondan_core::{AgentName, Error, EventId, InstanceKey, MessageEvent, Role};
use goondan_lock::Lock;
use goondan_wire::{TurnEnd, Update};
use tokio::sync::watch;

use crate::sse::Event;

/// The most updates that are read at once. What a watcher has read and its client has not is in memory.
const AT_ONCE: usize = 64;

/// The log of a turn.
pub(crate) struct Log {
    /// Another one for each log, so that places in the log of an earlier process are known as such.
    epoch: u32,
    /// The place of an update but for its number. `None` for a turn whose id has no place in a line.
    places: Option<String>,
    state: Lock<State>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    next: u64,
    bytes: usize,
    /// Whether a message of a model has come since pieces were left out. It has the text of the pieces before it.
    has_new_answer: bool,
    end: Option<End>,
}

/// An update, with its number in the log.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) update: Arc<Update>,
    /// The event that tells it in the native interface.
    pub(crate) event: Bytes,
}

/// The end of a log.
#[derive(Clone)]
pub(crate) enum End {
    /// With the turn.
    Turn(Arc<TurnEnd>),
    /// With an error before anything was told.
    Refused(Arc<Error>),
    /// The program ends, and the turn goes on in another one.
    Handover,
}

/// The updates that a watcher reads at once, and the end if nothing comes between.
pub(crate) struct Read {
    pub(crate) entries: Vec<Entry>,
    pub(crate) end: Option<End>,
}

impl Entry {
    /// Returns an update that is in no log.
    pub(crate) fn without_place(update: Update) -> Option<Self> {
        let event = event_of(&update)?.bytes();
        Some(Self { number: 0, update: Arc::new(update), event })
    }
}

fn event_of(update: &Update) -> Option<Event> {
    match update.to_json() {
        Ok(json) => Some(Event::new(&json)),
        Err(error) => {
            tracing::error!("an update of a turn has no JSON: {error}");
            None
        }
    }
}

impl Log {
    pub(crate) fn new(turn: &EventId, epoch: u32) -> Self {
        let is_line = !turn.as_str().contains(['\n', '\r', '\0']);
        let places = is_line.then(|| format!("{turn}:{epoch:x}:"));
        Self { epoch, places, state: Lock::default(), changed: watch::Sender::new(()) }
    }

    /// Returns a log that has the end alone.
    pub(crate) fn ended_with(turn: &EventId, epoch: u32, end: TurnEnd) -> Self {
        let log = Self::new(turn, epoch);
        log.push(Update::Turn(Box::new(end.clone())), usize::MAX);
        log.end(End::Turn(Arc::new(end)));
        log
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns how many updates have come.
    pub(crate) fn length(&self) -> u64 {
        self.state.lock().next
    }

    /// Adds an update, and returns it with its number. Once the log has more than `most` bytes, pieces are left out
    /// that a message has whole.
    pub(crate) fn push(&self, update: Update, most: usize) -> Option<Entry> {
        let (mut event, update) = (event_of(&update)?, Arc::new(update));
        let mut state = self.state.lock();
        let number = state.next;
        if let Some(before) = &self.places {
            event = event.field("id", &[before.as_str(), &number.to_string()].concat());
        }
        let entry = Entry { number, update, event: event.bytes() };
        state.next += 1;
        state.bytes += entry.event.len();
        state.has_new_answer |= is_answer(told_in(&entry.update).1);
        state.entries.push(entry.clone());
        if state.bytes > most && std::mem::take(&mut state.has_new_answer) {
            state.leave_out_pieces();
        }
        drop(state);
        self.changed.send_replace(());
        Some(entry)
    }

    pub(crate) fn end(&self, end: End) {
        let mut state = self.state.lock();
        state.end.get_or_insert(end);
        drop(state);
        self.changed.send_replace(());
    }

    /// Returns the next entries from the number `from` on.
    pub(crate) fn read(&self, from: u64) -> Read {
        let state = self.state.lock();
        let rest = &state.entries[state.entries.partition_point(|entry| entry.number < from)..];
        let entries = rest[..rest.len().min(AT_ONCE)].to_vec();
        Read { end: state.end.clone().filter(|_| entries.len() == rest.len()), entries }
    }

    /// Returns how the turn has ended, if it has.
    pub(crate) fn ended(&self) -> Option<End> {
        self.state.lock().end.clone()
    }

    /// Returns whether the turn has ended before it began.
    pub(crate) fn never_began(&self) -> bool {
        matches!(self.ended(), Some(End::Turn(end)) if end.turn_id.is_none())
    }

    /// Waits for the end.
    pub(crate) async fn wait(&self) -> End {
        let mut changes = self.changes();
        loop {
            if let Some(end) = self.ended() {
                return end;
            }
            // It fails when this is dropped.
            _ = changes.changed().await;
        }
    }

    /// Returns how many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Returns a receiver that is told of later changes.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Waits until the log has something, or has ended.
    pub(crate) async fn begun(&self) {
        let mut changes = self.changes();
        while self.length() == 0 && self.ended().is_none() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}

impl State {
    /// Leaves out the pieces of answers that have come as messages.
    fn leave_out_pieces(&mut self) {
        let mut answered = HashSet::new();
        let has_message = self.entries.iter().rev().map(|entry| {
            let (conversation, update) = told_in(&entry.update);
            if is_answer(update) {
                answered.insert(conversation);
            }
            is_piece(update) && answered.contains(&conversation)
        });
        let mut has_message: Vec<_> = has_message.collect();
        self.entries.retain(|_| has_message.pop() == Some(false));
        self.bytes = self.entries.iter().map(|entry| entry.event.len()).sum();
    }
}

/// Returns the update of a turn, with the conversation of that turn if another agent was asked.
fn told_in(mut update: &Update) -> (Option<(&AgentName, &InstanceKey)>, &Update) {
    let mut conversation = None;
    while let Update::Child { agent_name, instance_key, update: told, .. } = update {
        (conversation, update) = (Some((agent_name, instance_key)), told);
    }
    (conversation, update)
}

fn is_answer(update: &Update) -> bool {
    matches!(update, Update::Message { event: MessageEvent::Append { message }, .. } if message.role() == Role::Assistant)
}

fn is_piece(update: &Update) -> bool {
    matches!(
        update,
        Update::Text { .. }
            | Update::Reasoning { .. }
            | Update::ToolCall { .. }
            | Update::Arguments { .. }
            | Update::Progress { .. }
            | Update::Restart { .. }
    )
}

#[cfg(test)]
mod tests {
    use goondan_core::{Message, Source};

    use super::*;

    fn child(key: &str, update: Update) -> Update {
        let (agent_name, instance_key) = ("worker".parse().unwrap(), key.parse().unwrap());
        Update::Child { turn_id: "t".into(), tool_call_id: None, agent_name, instance_key, update: Box::new(update) }
    }

    fn piece() -> Update {
        Update::Text { turn_id: "t".into(), step_index: 0, part: 0, text: "x".repeat(100) }
    }

    fn answer() -> Update {
        let message = Message::new(Role::Assistant, "x".repeat(100), Source::System).into();
        Update::Message { turn_id: "t".into(), event: MessageEvent::Append { message } }
    }

    /// D-40.
    #[test]
    fn the_answer_of_a_turn_is_in_place_of_its_own_pieces_alone() {
        let log = Log::new(&"e".into(), 0);
        let updates = [child("a", piece()), child("b", piece()), piece(), child("a", child("c", piece()))];
        updates.into_iter().for_each(|update| _ = log.push(update, 500));
        let numbers = || log.read(0).entries.iter().map(|entry| entry.number).collect::<Vec<_>>();
        assert_eq!(numbers(), [0, 1, 2, 3], "there is no answer yet");
        log.push(child("a", answer()), 500);
        assert_eq!(numbers(), [1, 2, 3, 4]);
        log.push(answer(), 500);
        log.push(child("a", piece()), 500);
        assert_eq!(numbers(), [1, 3, 4, 5, 6]);
        log.push(child("a", child("c", answer())), 500);
        assert_eq!(numbers(), [1, 4, 5, 6, 7]);
    }

    #[test]
    fn a_log_is_read_in_parts_and_its_events_are_shared() {
        let log = Log::new(&"e".into(), 0);
        (0..200).for_each(|_| _ = log.push(piece(), usize::MAX));
        log.end(End::Handover);
        let (mut numbers, mut lengths) = (Vec::new(), Vec::new());
        while numbers.len() < 200 {
            let (read, again) = (log.read(numbers.len() as u64), log.read(numbers.len() as u64));
            let shared = read.entries.iter().zip(&again.entries);
            assert!(shared.into_iter().all(|(one, other)| one.event.as_ptr() == other.event.as_ptr()));
            lengths.push((read.entries.len(), read.end.is_some()));
            numbers.extend(read.entries.iter().map(|entry| entry.number));
        }
        assert!(numbers.into_iter().eq(0..200));
        assert_eq!(lengths, [(AT_ONCE, false), (AT_ONCE, false), (AT_ONCE, false), (200 - 3 * AT_ONCE, true)]);
    }
}
