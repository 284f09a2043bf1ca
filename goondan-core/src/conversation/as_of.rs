//! The conversation as it was earlier in the same turn.

use super::host::{ConversationHost, Snapshot};
use super::{Conversation, MessageEvent, MessageRef};

/// A conversation without what was appended since a mark was set. In between, messages may only be appended.
#[derive(Clone, Copy)]
pub(crate) struct AsOf<'a> {
    conversation: &'a Conversation,
    mark: Mark,
}

/// A moment of a conversation, until its turn is folded.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    /// The position after the last message.
    end: usize,
    count: usize,
    events: usize,
}

impl Conversation {
    /// Returns the present moment.
    pub(crate) fn mark(&self) -> Mark {
        Mark { end: self.end(), count: self.len(), events: self.events().len() }
    }

    /// Returns the conversation as it was at `mark`.
    pub(crate) fn as_of(&self, mark: Mark) -> AsOf<'_> {
        AsOf { conversation: self, mark }
    }
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
