//! The conversation of an instance: the messages at the start of a turn, the events since, and the current messages,
//! which are maintained incrementally.

mod as_of;
mod content;
mod event;
mod ext;
mod extra;
pub(crate) mod host;
mod media;
mod message;
mod message_ref;
mod of_model;
mod pairs;
mod part;
mod part_ext;
mod projection;
mod provider;
pub(crate) mod remote;
mod source;
mod standing;
mod texts;
mod timestamp;
mod tokens;
mod unknown;
mod view;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

pub use as_of::{AsOf, Mark};
pub use content::{Content, answer_content};
pub use event::MessageEvent;
pub use ext::ConversationExt;
pub use message::{Message, MessageData, MessageDataExt, MessageExt, Role};
pub use message_ref::{MessageRef, RemoteMessage};
pub use of_model::{ProviderPart, ReasoningPart};
pub use part::{FilePart, Part, TextPart, ToolCallPart, ToolOutput, ToolResultPart, text_of};
pub use part_ext::PartExt;
pub use projection::Projection;
pub use provider::ProviderData;
pub use source::Source;
pub(crate) use texts::{Rewrite, Texts};
pub use timestamp::Timestamp;
pub use tokens::{message_tokens, tokens_of};
pub use view::{ConversationView, Messages};

use crate::error::{Error, ErrorCode, Result};
use crate::name::MessageId;
use host::ConversationHost;
use pairs::{Orphans, Pairs};
use remote::Snapshot;

/// A map with ids as keys. Every message passes several, so the hash is a fast one; it is seeded randomly nevertheless,
/// because the ids of tool calls come from models.
pub type IdMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
/// A set of ids, with the hash of `IdMap`.
pub type IdSet<T> = std::collections::HashSet<T, foldhash::fast::RandomState>;

/// The messages of an instance: the base, and the events of the running turn applied to it.
///
/// Events are applied as they arrive. The cost of an event does not depend on the length of the conversation, and
/// nothing is copied when a turn starts or ends.
// CONV-04: next = base + Σ events.
#[derive(Debug, Default)]
pub struct Conversation {
    /// A message keeps its position as long as it is in the conversation. Entries of the base do not change until the
    /// turn is folded, so the base can be read meanwhile; changes to them are kept in `overlay`.
    entries: Vec<Option<Arc<Message>>>,
    /// Entries below this position are empty, in the base too: readers of the oldest messages skip them.
    empty_end: usize,
    /// Entries below this position belong to the base.
    base_end: usize,
    base_count: usize,
    /// Entries of the base that events of this turn have replaced, or removed (`None`).
    overlay: BTreeMap<usize, Option<Arc<Message>>>,
    /// Entries below this position were truncated in this turn.
    truncated_end: usize,
    count: usize,
    /// The position of each message. Truncated messages stay in the map until the fold: removing them would make the
    /// cost of a truncation proportional to the length of the conversation.
    positions: IdMap<MessageId, usize>,
    events: Vec<MessageEvent>,
    pairs: Pairs,
}

/// The outcome of applying an event to a [`Conversation`].
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// The conversation has changed as the event says.
    Done,
    /// Nothing has changed: the target of the event is not in the conversation. This is a warning, not an error.
    // F-CONV
    TargetNotFound,
}

impl Conversation {
    /// Returns a conversation with the base `messages`. Of messages with the same id, the first one is kept; the ids of
    /// the others are returned.
    // D-20
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

    /// Applies `event` and adds it to the events of this turn.
    ///
    /// # Errors
    /// `E_MESSAGE_DUPLICATE_ID` when the event adds a message with the id of another message; nothing changes.
    // D-20
    pub fn apply(&mut self, event: MessageEvent) -> Result<Applied> {
        let target = match &event {
            MessageEvent::Append { message } => {
                if !self.push(message) {
                    return Err(duplicate(message.id()));
                }
                None
            }
            MessageEvent::Truncate => {
                self.truncated_end = self.entries.len();
                self.count = 0;
                self.pairs.clear();
                None
            }
            MessageEvent::Remove { target_id } => Some((target_id, None)),
            MessageEvent::Replace { target_id, message } => {
                if message.id() != target_id && self.position_of(message.id()).is_some() {
                    return Err(duplicate(message.id()));
                }
                Some((target_id, Some(message.clone())))
            }
        };
        let applied = match target {
            // The successor may have another id.
            Some((id, successor)) => match self.positions.remove(id) {
                Some(position) if position >= self.truncated_end => {
                    self.put(position, successor);
                    Applied::Done
                }
                _ => Applied::TargetNotFound,
            },
            None => Applied::Done,
        };
        self.events.push(event);
        Ok(applied)
    }

    /// Makes the current messages the new base and clears the events.
    pub fn fold(&mut self) {
        self.events.clear();
        for (position, message) in std::mem::take(&mut self.overlay) {
            self.entries[position] = message;
        }
        let removed = self.truncated_end.max(self.empty_end);
        let holes = self.entries.len() - self.truncated_end - self.count;
        if self.truncated_end > 0 || holes > self.count {
            self.entries.drain(..removed);
            (self.truncated_end, self.empty_end) = (0, 0);
            self.entries.retain(Option::is_some);
            let mut positions = IdMap::with_capacity_and_hasher(self.count, Default::default());
            let entries = self.entries.iter().enumerate();
            positions.extend(entries.filter_map(|(position, entry)| Some((entry.as_ref()?.id().clone(), position))));
            self.positions = positions;
        }
        // Passes each entry once, however often the conversation is folded.
        while self.entries.get(self.empty_end).is_some_and(Option::is_none) {
            self.empty_end += 1;
        }
        self.seal_base();
    }

    /// Returns whether the events of this turn only append, so that the new base starts with the old one.
    pub fn only_appends(&self) -> bool {
        self.events.iter().all(|event| matches!(event, MessageEvent::Append { .. }))
    }

    /// Returns the events of this turn.
    #[inline]
    pub fn events(&self) -> &[MessageEvent] {
        &self.events
    }

    /// Returns the current messages.
    #[inline]
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        (self.truncated_end.max(self.empty_end)..self.entries.len()).filter_map(|position| self.message(position))
    }

    /// Returns the newest message.
    #[inline]
    pub fn newest(&self) -> Option<&Arc<Message>> {
        self.newest_first().next()
    }

    /// Returns the current number of messages.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether the conversation has no message now.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of messages in the base: those at the start of the turn.
    #[inline]
    pub fn base_len(&self) -> usize {
        self.base_count
    }

    /// Returns the current messages, each with its index in the base if it is there unchanged. A store that keeps the
    /// base in order writes only the others.
    pub fn messages_of_base(&self) -> impl Iterator<Item = (Option<usize>, &Arc<Message>)> {
        let mut base_index = 0;
        (self.empty_end..self.entries.len()).filter_map(move |position| {
            let in_base = position < self.base_end && self.entries[position].is_some();
            let index = base_index;
            base_index += usize::from(in_base);
            let message = if position < self.truncated_end { None } else { self.message(position) }?;
            Some(((in_base && !self.overlay.contains_key(&position)).then_some(index), message))
        })
    }

    /// Returns the messages that are sent to a model: the current messages, without tool calls that have no result
    /// and results that have no call.
    pub fn model_input(&self) -> impl Iterator<Item = Cow<'_, MessageData>> {
        let orphans = self.orphans();
        self.messages().filter_map(move |message| orphans.visible(message))
    }

    /// Returns the current messages with the edits of a projection.
    fn projected<'a>(&'a self, projection: Option<&'a Projection>) -> impl Iterator<Item = &'a Arc<Message>> + use<'a> {
        let start = self.truncated_end.max(self.empty_end).max(projection.map_or(0, Projection::start));
        let messages = (start..self.entries.len()).filter_map(move |position| match projection {
            None => self.message(position),
            Some(projection) => projection.message(self, position),
        });
        messages.chain(projection.into_iter().flat_map(Projection::appended))
    }

    /// Returns the tool calls that the events of this turn added and did not answer.
    pub fn unanswered_calls(&self) -> Vec<ToolCallPart> {
        if !self.pairs.has_orphans() {
            return Vec::new();
        }
        let positions = self.base_end.max(self.truncated_end)..self.entries.len();
        let new = positions.filter_map(|position| self.message(position));
        let parts =
            new.flat_map(|message| message.content().parts().iter().enumerate().map(move |part| (message.id(), part)));
        let calls = parts.filter_map(|(message, (index, part))| match part {
            Part::ToolCall(call) => Some((message, index, call)),
            _ => None,
        });
        let mut candidates = calls.filter(|(_, _, call)| self.pairs.may_be_orphan(&call.tool_call_id)).peekable();
        if candidates.peek().is_none() {
            return Vec::new();
        }
        let orphans = self.orphans();
        let unanswered = candidates.filter(|(message, index, _)| orphans.contains(message, *index));
        unanswered.map(|(_, _, call)| ToolCallPart::clone(call)).collect()
    }

    /// Returns the tool calls without a result and the results without a call.
    // PAIR-01: they are not sent to a model.
    fn orphans(&self) -> Orphans<'_> {
        let find = |id: &MessageId| self.message(self.position_of(id)?).map(|message| &**message);
        self.pairs.orphans(find, || self.messages().map(|message| &**message))
    }

    /// Adds `message` at the end. Returns false, and does nothing, when its id is already in the conversation.
    fn push(&mut self, message: &Arc<Message>) -> bool {
        match self.positions.entry(message.id().clone()) {
            Entry::Occupied(known) if *known.get() >= self.truncated_end => return false,
            entry => entry.insert_entry(self.entries.len()),
        };
        self.pairs.add(message);
        self.entries.push(Some(Arc::clone(message)));
        self.count += 1;
        true
    }

    /// Replaces the message at `position`, or removes it when `successor` is `None`. Its id has no position any more.
    fn put(&mut self, position: usize, successor: Option<Arc<Message>>) {
        let old = self.message(position).cloned();
        match (&old, &successor) {
            (Some(old), Some(new)) => self.pairs.replace(old, new),
            (Some(old), None) => self.pairs.remove(old),
            (None, _) => {}
        }
        match &successor {
            Some(new) => {
                self.positions.insert(new.id().clone(), position);
            }
            None => self.count -= 1,
        }
        if position < self.base_end {
            self.overlay.insert(position, successor);
        } else {
            self.entries[position] = successor;
        }
    }

    fn seal_base(&mut self) {
        self.base_end = self.entries.len();
        self.base_count = self.count;
    }

    fn position_of(&self, id: &MessageId) -> Option<usize> {
        self.positions.get(id).copied().filter(|position| *position >= self.truncated_end)
    }

    #[inline]
    fn message(&self, position: usize) -> Option<&Arc<Message>> {
        if position < self.base_end
            && let Some(changed) = self.overlay.get(&position)
        {
            return changed.as_ref();
        }
        self.entries[position].as_ref()
    }
}

impl ConversationHost for Conversation {
    fn message_count(&self, snapshot: Snapshot) -> usize {
        match snapshot {
            Snapshot::Base => self.base_count,
            Snapshot::Current => self.count,
        }
    }

    fn message_from(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)> {
        let (message, position) = match snapshot {
            Snapshot::Base => {
                let mut positions = self.entries[..self.base_end].iter().enumerate().skip(cursor.max(self.empty_end));
                positions.find_map(|(position, message)| Some((message.as_ref()?, position)))?
            }
            Snapshot::Current => {
                let mut positions = cursor.max(self.truncated_end).max(self.empty_end)..self.entries.len();
                positions.find_map(|position| Some((self.message(position)?, position)))?
            }
        };
        Some((MessageRef::from(&**message), position + 1))
    }

    fn message_before(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)> {
        let (message, position) = match snapshot {
            Snapshot::Base => {
                let mut positions = (self.empty_end..self.base_end.min(cursor)).rev();
                positions.find_map(|position| Some((self.entries[position].as_ref()?, position)))?
            }
            Snapshot::Current => {
                let mut positions = (self.truncated_end.max(self.empty_end)..self.entries.len().min(cursor)).rev();
                positions.find_map(|position| Some((self.message(position)?, position)))?
            }
        };
        Some((MessageRef::from(&**message), position))
    }

    fn message_events(&self) -> &[MessageEvent] {
        &self.events
    }
}

fn duplicate(id: &MessageId) -> Error {
    Error::new(ErrorCode::MESSAGE_DUPLICATE_ID, format!("the conversation already holds a message `{id}`"))
        .suggest("give the message a new id, or emit `replace` to change the one that is there")
}
