//! Read-only view of a conversation.

use std::fmt;

use super::event::MessageEvent;
use super::host::ConversationHost;
use super::message::MessageData;
use super::message_ref::MessageRef;
use super::remote::Snapshot;

/// The conversation as a middleware sees it: the messages at the start of the turn, the events since, and the current
/// messages. [`emit`](crate::TurnContext::emit) is the only way to change it.
// CONV-01..04, CONV-09
#[derive(Clone, Copy)]
pub struct ConversationView<'a> {
    host: &'a dyn ConversationHost,
}

impl<'a> ConversationView<'a> {
    pub(crate) fn new(host: &'a dyn ConversationHost) -> Self {
        Self { host }
    }

    /// Returns the host behind the view, for a linkage.
    #[doc(hidden)]
    pub fn host(self) -> &'a dyn ConversationHost {
        self.host
    }

    /// Returns the current number of messages.
    pub fn len(&self) -> usize {
        self.host.message_count(Snapshot::Current)
    }

    /// Returns whether the conversation has no message now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the current messages: the base with all events of the turn applied.
    pub fn iter(&self) -> Messages<'a> {
        Messages { host: self.host, snapshot: Snapshot::Current, cursor: 0, end: usize::MAX }
    }

    /// Iterates over the messages as they were when the turn started.
    pub fn base(&self) -> Messages<'a> {
        Messages { host: self.host, snapshot: Snapshot::Base, cursor: 0, end: usize::MAX }
    }

    /// Returns the events of the turn, in the order in which they were emitted.
    pub fn events(&self) -> &'a [MessageEvent] {
        self.host.message_events()
    }

    /// Returns a copy of the part of each current message that a model sees, in order.
    pub fn to_llm_messages(&self) -> Vec<MessageData> {
        self.iter().map(|message| MessageData::new(message.role(), message.content().into_owned())).collect()
    }
}

impl<'a> IntoIterator for ConversationView<'a> {
    type Item = MessageRef<'a>;
    type IntoIter = Messages<'a>;

    fn into_iter(self) -> Messages<'a> {
        self.iter()
    }
}

impl fmt::Debug for ConversationView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// An iterator over the messages of a [`ConversationView`], oldest first; `.rev()` and `.last()` start at the newest.
#[derive(Clone)]
pub struct Messages<'a> {
    host: &'a dyn ConversationHost,
    snapshot: Snapshot,
    cursor: usize,
    /// Messages from this cursor on have been returned by `next_back`.
    end: usize,
}

impl<'a> Iterator for Messages<'a> {
    type Item = MessageRef<'a>;

    fn next(&mut self) -> Option<MessageRef<'a>> {
        let (message, next) = self.host.message_from(self.snapshot, self.cursor)?;
        self.cursor = next;
        (next <= self.end).then_some(message)
    }

    fn last(mut self) -> Option<MessageRef<'a>> {
        self.next_back()
    }
}

impl<'a> DoubleEndedIterator for Messages<'a> {
    fn next_back(&mut self) -> Option<MessageRef<'a>> {
        let (message, at) = self.host.message_before(self.snapshot, self.end)?;
        self.end = at;
        (self.cursor <= at).then_some(message)
    }
}
