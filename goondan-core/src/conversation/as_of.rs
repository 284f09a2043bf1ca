//! The conversation as it was earlier in the same turn.

use super::Conversation;
use super::event::MessageEvent;
use super::host::ConversationHost;
use super::message_ref::MessageRef;
use super::remote::Snapshot;

/// A conversation without the messages that were appended since a mark was set. In between, messages may only be
/// appended.
#[derive(Clone, Copy)]
pub struct AsOf<'a> {
    pub(super) conversation: &'a Conversation,
    pub(super) mark: Mark,
}

/// A moment of a conversation, until its turn is folded.
#[derive(Clone, Copy)]
pub struct Mark {
    /// The position after the last message.
    pub(super) end: usize,
    pub(super) count: usize,
    pub(super) events: usize,
}

impl AsOf<'_> {
    /// Returns the cursor after the last message of `snapshot`.
    fn end(&self, snapshot: Snapshot) -> usize {
        match snapshot {
            Snapshot::Base => usize::MAX,
            Snapshot::Current => self.mark.end,
        }
    }
}

impl ConversationHost for AsOf<'_> {
    fn message_count(&self, snapshot: Snapshot) -> usize {
        match snapshot {
            Snapshot::Base => self.conversation.message_count(snapshot),
            Snapshot::Current => self.mark.count,
        }
    }

    fn message_from(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)> {
        let found = self.conversation.message_from(snapshot, cursor);
        found.filter(|(_, next)| *next <= self.end(snapshot))
    }

    fn message_before(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)> {
        self.conversation.message_before(snapshot, cursor.min(self.end(snapshot)))
    }

    fn message_events(&self) -> &[MessageEvent] {
        let events = self.conversation.events();
        events.get(..self.mark.events).unwrap_or(events)
    }
}
