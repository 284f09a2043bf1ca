//! Owns the conversation: the messages at the start of a turn, the events since, and their sum, kept incrementally.

mod event;
pub(crate) mod host;
mod message;
mod pairs;
mod timestamp;
mod view;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

pub use event::MessageEvent;
pub use message::{
    Content, Message, MessageData, Part, Role, Source, TextPart, ToolCallPart, ToolOutput, ToolResultPart,
};
pub use timestamp::Timestamp;
pub use view::{ConversationView, MessageRef, Messages, RemoteMessage};

use crate::error::{Error, ErrorCode, Result};
use crate::name::{MessageId, ToolCallId};
use host::{ConversationHost, Snapshot};
use pairs::{Orphans, Pairs};

/// A map by ids. Every message passes several, so they hash fast; their seeds are random all the same, as ids of tool calls
/// come from models.
type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
/// A set of ids; see [`HashMap`].
pub(crate) type HashSet<T> = std::collections::HashSet<T, foldhash::fast::RandomState>;

/// `next = base + Σ events` (CONV-04), maintained as the events arrive: each costs the same however long the history is,
/// and nothing is copied when a turn starts or ends.
///
/// A slot holds one message for as long as the conversation holds it. Slots of the base are left alone until the turn is
/// folded, so that the base can be read meanwhile; what events do to them stands in `overlay`.
#[derive(Debug, Default)]
pub struct Conversation {
    slots: Vec<Option<Arc<Message>>>,
    /// Slots below this are empty, in the base too: whoever looks at the oldest messages need not pass them.
    first: usize,
    /// Slots below this belong to the base.
    base_end: usize,
    base_count: usize,
    /// What the events of this turn made of slots of the base: another message, or none.
    overlay: BTreeMap<usize, Option<Arc<Message>>>,
    /// Slots below this were truncated in this turn.
    start: usize,
    count: usize,
    /// Where each message lies. Entries of truncated messages stay until the fold: clearing them would make truncation
    /// cost as much as the history is long.
    index: HashMap<MessageId, usize>,
    events: Vec<MessageEvent>,
    pairs: Pairs,
}

/// What an event did.
#[derive(Debug, PartialEq, Eq)]
pub enum Applied {
    /// What it says.
    Done,
    /// Nothing: the conversation does not hold the message that it aims at (F-CONV: a warning, not a failure).
    TargetNotFound,
}

impl Conversation {
    /// A conversation whose base is `messages`. Of messages with the same id the first wins; the ids of the others are
    /// returned (D-20).
    pub fn from_base(messages: impl IntoIterator<Item = Arc<Message>>) -> (Self, Vec<MessageId>) {
        let mut conversation = Self::default();
        let mut duplicates = Vec::new();
        for message in messages {
            if !conversation.push(&message) {
                duplicates.push(message.id().clone());
            }
        }
        conversation.seal_base();
        (conversation, duplicates)
    }

    /// Applies `event` and remembers it as one of this turn.
    ///
    /// # Errors
    /// `E_MESSAGE_DUPLICATE_ID` when a message comes in under an id that another message has (D-20); nothing changes.
    pub fn apply(&mut self, event: MessageEvent) -> Result<Applied> {
        let target = match &event {
            MessageEvent::Append { message } => {
                if !self.push(message) {
                    return Err(duplicate(message.id()));
                }
                None
            }
            MessageEvent::Truncate => {
                self.start = self.slots.len();
                self.count = 0;
                self.pairs.clear();
                None
            }
            MessageEvent::Remove { target_id } => Some((target_id, None)),
            MessageEvent::Replace { target_id, message } => {
                if message.id() != target_id && self.slot_of(message.id()).is_some() {
                    return Err(duplicate(message.id()));
                }
                Some((target_id, Some(message.clone())))
            }
        };
        let applied = match target {
            Some((id, successor)) => match self.slot_of(id) {
                Some(slot) => {
                    self.put(slot, successor);
                    Applied::Done
                }
                None => Applied::TargetNotFound,
            },
            None => Applied::Done,
        };
        self.events.push(event);
        Ok(applied)
    }

    /// Makes the sum the new base and forgets the events.
    pub fn fold(&mut self) {
        self.events.clear();
        for (slot, message) in std::mem::take(&mut self.overlay) {
            self.slots[slot] = message;
        }
        let gone = self.start.max(self.first);
        let holes = self.slots.len() - self.start - self.count;
        if self.start > 0 || holes > self.count {
            self.slots.drain(..gone);
            (self.start, self.first) = (0, 0);
            self.slots.retain(Option::is_some);
            let ids = self.slots.iter().enumerate().filter_map(|(slot, message)| Some((message.as_ref()?.id(), slot)));
            let mut index = HashMap::with_capacity_and_hasher(self.count, Default::default());
            index.extend(ids.map(|(id, slot)| (id.clone(), slot)));
            self.index = index;
        }
        // Once for each slot, however often the conversation is folded.
        while self.slots.get(self.first).is_some_and(Option::is_none) {
            self.first += 1;
        }
        self.seal_base();
    }

    /// Whether the events of this turn only append, so that the new base is the old one and more.
    pub fn only_appends(&self) -> bool {
        self.events.iter().all(|event| matches!(event, MessageEvent::Append { .. }))
    }

    /// The events of this turn.
    pub fn events(&self) -> &[MessageEvent] {
        &self.events
    }

    /// The messages as they are now.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        (self.start.max(self.first)..self.slots.len()).filter_map(|slot| self.message(slot))
    }

    /// The messages as they are now, each with its place in the base if it stands there as it is.
    #[cfg(feature = "runtime")]
    pub(crate) fn messages_of_base(&self) -> impl Iterator<Item = (Option<usize>, &Arc<Message>)> {
        let mut of_base = 0;
        (self.first..self.slots.len()).filter_map(move |slot| {
            let in_base = slot < self.base_end && self.slots[slot].is_some();
            let place = of_base;
            of_base += usize::from(in_base);
            let message = if slot < self.start { None } else { self.message(slot) }?;
            Some(((in_base && !self.overlay.contains_key(&slot)).then_some(place), message))
        })
    }

    /// How many messages the base has.
    #[cfg(feature = "runtime")]
    pub(crate) fn base_len(&self) -> usize {
        self.base_count
    }

    /// The newest message.
    pub fn newest(&self) -> Option<&Arc<Message>> {
        (self.start..self.slots.len()).rev().find_map(|slot| self.message(slot))
    }

    /// How many messages there are now.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is no message now.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What a model is sent: the messages as they are now, without tool calls that have no result and results that have
    /// no call (PAIR-01).
    pub fn model_input(&self) -> impl Iterator<Item = Cow<'_, MessageData>> {
        let orphans = self.orphans();
        self.messages().filter_map(move |message| orphans.visible(message))
    }

    /// The tool calls that the events of this turn brought in and did not answer.
    pub fn unanswered_calls(&self) -> Vec<ToolCallPart> {
        let said = (self.base_end.max(self.start)..self.slots.len()).filter_map(|slot| self.message(slot));
        let parts = said.flat_map(|said| said.content().parts().iter().enumerate().map(move |part| (said.id(), part)));
        let calls = parts.filter_map(|(message, (at, part))| match part {
            Part::ToolCall(call) => Some((message, at, call)),
            _ => None,
        });
        let alone = self.orphan_ids();
        let mut alone = calls.filter(|(_, _, call)| alone.contains(&call.tool_call_id)).peekable();
        if alone.peek().is_none() {
            return Vec::new();
        }
        let orphans = self.orphans();
        alone.filter(|(message, at, _)| orphans.contain(message, *at)).map(|(_, _, call)| call.clone()).collect()
    }

    /// The ids of the tool calls without a result and the results without a call.
    pub(crate) fn orphan_ids(&self) -> Cow<'_, HashSet<ToolCallId>> {
        self.pairs.orphan_ids(|| self.messages().map(|message| &**message))
    }

    /// The tool calls without a result and the results without a call, which a model is not sent (PAIR-01).
    fn orphans(&self) -> Orphans<'_> {
        let find = |id: &MessageId| self.message(self.slot_of(id)?).map(|message| &**message);
        self.pairs.orphans(find, || self.messages().map(|message| &**message))
    }

    /// Adds `message` at the end; false when there is one with its id.
    fn push(&mut self, message: &Arc<Message>) -> bool {
        match self.index.entry(message.id().clone()) {
            Entry::Occupied(known) if *known.get() >= self.start => return false,
            entry => entry.insert_entry(self.slots.len()),
        };
        self.pairs.add(message);
        self.slots.push(Some(Arc::clone(message)));
        self.count += 1;
        true
    }

    fn put(&mut self, slot: usize, successor: Option<Arc<Message>>) {
        let old = self.message(slot).cloned();
        if let Some(old) = &old {
            self.index.remove(old.id());
        }
        match (&old, &successor) {
            (Some(old), Some(new)) => self.pairs.replace(old, new),
            (Some(old), None) => self.pairs.subtract(old),
            (None, _) => {}
        }
        match &successor {
            Some(new) => {
                self.index.insert(new.id().clone(), slot);
            }
            None => self.count -= 1,
        }
        if slot < self.base_end {
            self.overlay.insert(slot, successor);
        } else {
            self.slots[slot] = successor;
        }
    }

    fn seal_base(&mut self) {
        self.base_end = self.slots.len();
        self.base_count = self.count;
    }

    fn slot_of(&self, id: &MessageId) -> Option<usize> {
        self.index.get(id).copied().filter(|slot| *slot >= self.start)
    }

    fn message(&self, slot: usize) -> Option<&Arc<Message>> {
        if slot < self.base_end
            && let Some(changed) = self.overlay.get(&slot)
        {
            return changed.as_ref();
        }
        self.slots[slot].as_ref()
    }
}

impl ConversationHost for Conversation {
    fn message_count(&self, snapshot: Snapshot) -> usize {
        match snapshot {
            Snapshot::Base => self.base_count,
            Snapshot::Next => self.count,
        }
    }

    fn message_from(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)> {
        let (message, slot) = match snapshot {
            Snapshot::Base => {
                let mut slots = self.slots[..self.base_end].iter().enumerate().skip(cursor.max(self.first));
                slots.find_map(|(slot, message)| Some((message.as_ref()?, slot)))?
            }
            Snapshot::Next => {
                let mut slots = cursor.max(self.start).max(self.first)..self.slots.len();
                slots.find_map(|slot| Some((self.message(slot)?, slot)))?
            }
        };
        Some((MessageRef::from(&**message), slot + 1))
    }

    fn message_before(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)> {
        let (message, slot) = match snapshot {
            Snapshot::Base => {
                let mut slots = (self.first..self.base_end.min(cursor)).rev();
                slots.find_map(|slot| Some((self.slots[slot].as_ref()?, slot)))?
            }
            Snapshot::Next => {
                let mut slots = (self.start.max(self.first)..self.slots.len().min(cursor)).rev();
                slots.find_map(|slot| Some((self.message(slot)?, slot)))?
            }
        };
        Some((MessageRef::from(&**message), slot))
    }

    fn message_events(&self) -> &[MessageEvent] {
        &self.events
    }
}

fn duplicate(id: &MessageId) -> Error {
    Error::new(ErrorCode::MESSAGE_DUPLICATE_ID, format!("the conversation already holds a message `{id}`"))
        .suggest("give the message a new id, or emit `replace` to change the one that is there")
}
