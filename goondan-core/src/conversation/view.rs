//! Borrowed, read-only views of a conversation and its messages.

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::host::{ConversationHost, RemoteConversation, Snapshot};
use super::{Content, Message, MessageData, MessageEvent, Role, Source, Timestamp};
use crate::error::Error;
use crate::name::MessageId;

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

/// A reference to a message of a conversation. In an extension that was loaded from a library, the message is in the
/// program, and its fields are read when they are used.
#[derive(Clone, Copy)]
pub struct MessageRef<'a> {
    repr: Repr<'a>,
}

#[derive(Clone, Copy)]
enum Repr<'a> {
    Local(&'a Message),
    Remote(RemoteMessage<'a>),
}

/// A message in another binary, addressed by its snapshot and cursor.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct RemoteMessage<'a> {
    pub host: &'a dyn RemoteConversation,
    pub snapshot: Snapshot,
    pub cursor: usize,
    pub id: &'a str,
    pub role: Role,
    /// All its text, if it is one string in the host; otherwise `host.text` returns it.
    pub text: Option<&'a str>,
}

impl<'a> MessageRef<'a> {
    /// Returns the id, the target of [`MessageEvent::replace`] and [`MessageEvent::remove`].
    pub fn id(&self) -> &'a str {
        match self.repr {
            Repr::Local(message) => message.id().as_str(),
            Repr::Remote(message) => message.id,
        }
    }

    /// Returns the id as a value that outlives the borrow of the conversation, for an event that is emitted later. In
    /// the host it copies no text.
    pub fn to_id(&self) -> MessageId {
        match self.repr {
            Repr::Local(message) => message.id().clone(),
            Repr::Remote(message) => message.id.into(),
        }
    }

    /// Returns the author.
    pub fn role(&self) -> Role {
        match self.repr {
            Repr::Local(message) => message.role(),
            Repr::Remote(message) => message.role,
        }
    }

    /// Returns all text of the message.
    pub fn text(&self) -> Cow<'a, str> {
        match self.repr {
            Repr::Local(message) => message.text(),
            Repr::Remote(RemoteMessage { text: Some(text), .. }) => Cow::Borrowed(text),
            Repr::Remote(message) => Cow::Owned(message.host.text(message.snapshot, message.cursor)),
        }
    }

    /// Returns the content.
    pub fn content(&self) -> Cow<'a, Content> {
        match self.repr {
            Repr::Local(message) => Cow::Borrowed(message.content()),
            Repr::Remote(RemoteMessage { text: Some(text), .. }) => Cow::Owned(text.into()),
            Repr::Remote(message) => Cow::Owned(message.read("content")),
        }
    }

    /// Returns the value that an extension added under `key`, if any.
    pub fn metadata(&self, key: &str) -> Option<Cow<'a, Value>> {
        match self.repr {
            Repr::Local(message) => message.metadata().get(key).map(Cow::Borrowed),
            Repr::Remote(message) => message.metadata(key).map(Cow::Owned),
        }
    }

    /// Returns the time at which the message was created.
    pub fn created_at(&self) -> Timestamp {
        match self.repr {
            Repr::Local(message) => message.created_at(),
            Repr::Remote(message) => message.read("createdAt"),
        }
    }

    /// Returns the origin of the message.
    pub fn source(&self) -> Cow<'a, Source> {
        match self.repr {
            Repr::Local(message) => Cow::Borrowed(message.source()),
            Repr::Remote(message) => Cow::Owned(message.read("source")),
        }
    }

    /// Returns a copy, for example to replace the message by a changed one.
    pub fn to_message(&self) -> Message {
        match self.repr {
            Repr::Local(message) => message.clone(),
            Repr::Remote(message) => message.read("whole"),
        }
    }
}

impl<'a> From<&'a Message> for MessageRef<'a> {
    fn from(message: &'a Message) -> Self {
        Self { repr: Repr::Local(message) }
    }
}

impl<'a> From<RemoteMessage<'a>> for MessageRef<'a> {
    fn from(message: RemoteMessage<'a>) -> Self {
        Self { repr: Repr::Remote(message) }
    }
}

impl RemoteMessage<'_> {
    /// Reads a field of the message, or all of it as `whole`.
    ///
    /// # Panics
    /// When the host violates the contract. The runtime catches panics of extensions.
    fn read<T: DeserializeOwned>(&self, field: &'static str) -> T {
        let json = self.host.read(self.snapshot, self.cursor, field);
        let value = json.and_then(|json| Ok(serde_json::from_slice(&json)?));
        value.unwrap_or_else(|error| self.broken(field, &error))
    }

    /// # Panics
    /// As [`RemoteMessage::read`].
    fn metadata(&self, key: &str) -> Option<Value> {
        let value = self.host.metadata(self.snapshot, self.cursor, key);
        value.unwrap_or_else(|error| self.broken("metadata", &error))
    }

    #[cold]
    #[expect(clippy::panic, reason = "there is no value to go on with")]
    fn broken(&self, field: &str, error: &Error) -> ! {
        panic!("the host did not return `{field}` of the message {}: {error}", self.id)
    }
}

impl fmt::Debug for MessageRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repr {
            Repr::Local(message) => message.fmt(f),
            Repr::Remote(_) => self.to_message().fmt(f),
        }
    }
}
