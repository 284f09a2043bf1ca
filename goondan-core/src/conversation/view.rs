//! Owns the read side of a conversation: borrowed views that copy nothing unless asked.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::{Content, Message, MessageData, MessageEvent, Role, Source, Timestamp};
use crate::context::host::{ConversationHost, Snapshot};

/// The conversation as a middleware sees it: the messages at the start of the turn, the events since, and their sum
/// (CONV-01..04). There is no way to change it but [`emit`](crate::TurnContext::emit) (CONV-09).
#[derive(Clone, Copy)]
pub struct ConversationView<'a> {
    host: &'a dyn ConversationHost,
}

impl<'a> ConversationView<'a> {
    pub(crate) fn new(host: &'a dyn ConversationHost) -> Self {
        Self { host }
    }

    /// How many messages the conversation holds now.
    pub fn len(&self) -> usize {
        self.host.message_count(Snapshot::Next)
    }

    /// Whether the conversation holds no message now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The messages as they are now: base plus all events of the turn (CONV-04).
    pub fn iter(&self) -> Messages<'a> {
        Messages { host: self.host, snapshot: Snapshot::Next, cursor: 0 }
    }

    /// The messages as they were when the turn started (CONV-01).
    pub fn base(&self) -> Messages<'a> {
        Messages { host: self.host, snapshot: Snapshot::Base, cursor: 0 }
    }

    /// The events of the turn, in the order in which they were emitted (CONV-02).
    pub fn events(&self) -> &'a [MessageEvent] {
        self.host.message_events()
    }

    /// What a model is sent of the messages, in order (CONV-12).
    pub fn to_llm_messages(&self) -> Vec<MessageData> {
        self.iter().map(|message| message.message.data().clone()).collect()
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

/// Messages of a [`ConversationView`], oldest first.
#[derive(Clone)]
pub struct Messages<'a> {
    host: &'a dyn ConversationHost,
    snapshot: Snapshot,
    cursor: usize,
}

impl<'a> Iterator for Messages<'a> {
    type Item = MessageRef<'a>;

    fn next(&mut self) -> Option<MessageRef<'a>> {
        let (message, next) = self.host.message_from(self.snapshot, self.cursor)?;
        self.cursor = next;
        Some(message)
    }
}

/// A message that is looked at where it lies.
#[derive(Clone, Copy)]
pub struct MessageRef<'a> {
    message: &'a Message,
}

impl<'a> MessageRef<'a> {
    /// The id, the target of [`MessageEvent::replace`] and [`MessageEvent::remove`].
    pub fn id(&self) -> &'a str {
        self.message.id().as_str()
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.message.role()
    }

    /// All text of the message.
    pub fn text(&self) -> Cow<'a, str> {
        self.message.text()
    }

    /// What was said.
    pub fn content(&self) -> Cow<'a, Content> {
        Cow::Borrowed(self.message.content())
    }

    /// A value that an extension left in the message.
    pub fn metadata(&self, key: &str) -> Option<Cow<'a, Value>> {
        self.message.metadata().get(key).map(Cow::Borrowed)
    }

    /// When the message was made.
    pub fn created_at(&self) -> Timestamp {
        self.message.created_at()
    }

    /// Who made the message.
    pub fn source(&self) -> Cow<'a, Source> {
        Cow::Borrowed(self.message.source())
    }

    /// A copy, for example to replace the message by a changed one.
    pub fn to_message(&self) -> Message {
        self.message.clone()
    }
}

impl<'a> From<&'a Message> for MessageRef<'a> {
    fn from(message: &'a Message) -> Self {
        Self { message }
    }
}

impl fmt::Debug for MessageRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}
