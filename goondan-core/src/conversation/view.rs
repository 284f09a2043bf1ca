//! Owns the read side of a conversation: borrowed views that copy nothing unless asked.

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::host::{ConversationHost, RemoteConversation, Snapshot};
use super::{Content, Message, MessageData, MessageEvent, Role, Source, Timestamp};

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

    /// What stands behind the view, for a linkage.
    #[doc(hidden)]
    pub fn host(self) -> &'a dyn ConversationHost {
        self.host
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
        Messages { host: self.host, snapshot: Snapshot::Next, cursor: 0, end: usize::MAX }
    }

    /// The messages as they were when the turn started (CONV-01).
    pub fn base(&self) -> Messages<'a> {
        Messages { host: self.host, snapshot: Snapshot::Base, cursor: 0, end: usize::MAX }
    }

    /// The events of the turn, in the order in which they were emitted (CONV-02).
    pub fn events(&self) -> &'a [MessageEvent] {
        self.host.message_events()
    }

    /// What a model is sent of the messages, in order (CONV-12).
    pub fn to_llm_messages(&self) -> Vec<MessageData> {
        self.iter()
            .map(|message| MessageData { role: message.role(), content: message.content().into_owned() })
            .collect()
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

/// Messages of a [`ConversationView`], oldest first; `.rev()` and `.last()` look at the newest without passing the others.
#[derive(Clone)]
pub struct Messages<'a> {
    host: &'a dyn ConversationHost,
    snapshot: Snapshot,
    cursor: usize,
    /// Messages from this cursor on were taken from the back.
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

/// A message that is looked at where it lies.
#[derive(Clone, Copy)]
pub struct MessageRef<'a> {
    place: Place<'a>,
}

#[derive(Clone, Copy)]
enum Place<'a> {
    Here(&'a Message),
    Remote(RemoteMessage<'a>),
}

/// A message that lies in another binary. The host names it by the snapshot and the cursor that lead to it.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct RemoteMessage<'a> {
    pub host: &'a dyn RemoteConversation,
    pub snapshot: Snapshot,
    pub cursor: usize,
    pub id: &'a str,
    pub role: Role,
    /// All its text, if it lies in one piece; otherwise it has to be asked for.
    pub text: Option<&'a str>,
}

impl<'a> MessageRef<'a> {
    /// The id, the target of [`MessageEvent::replace`] and [`MessageEvent::remove`].
    pub fn id(&self) -> &'a str {
        match self.place {
            Place::Here(message) => message.id().as_str(),
            Place::Remote(message) => message.id,
        }
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        match self.place {
            Place::Here(message) => message.role(),
            Place::Remote(message) => message.role,
        }
    }

    /// All text of the message.
    pub fn text(&self) -> Cow<'a, str> {
        match self.place {
            Place::Here(message) => message.text(),
            Place::Remote(RemoteMessage { text: Some(text), .. }) => Cow::Borrowed(text),
            Place::Remote(message) => Cow::Owned(message.host.text(message.snapshot, message.cursor)),
        }
    }

    /// What was said.
    pub fn content(&self) -> Cow<'a, Content> {
        match self.place {
            Place::Here(message) => Cow::Borrowed(message.content()),
            Place::Remote(message) => Cow::Owned(message.read("content")),
        }
    }

    /// A value that an extension left in the message.
    pub fn metadata(&self, key: &str) -> Option<Cow<'a, Value>> {
        match self.place {
            Place::Here(message) => message.metadata().get(key).map(Cow::Borrowed),
            Place::Remote(message) => message.read::<Map<String, Value>>("metadata").remove(key).map(Cow::Owned),
        }
    }

    /// When the message was made.
    pub fn created_at(&self) -> Timestamp {
        match self.place {
            Place::Here(message) => message.created_at(),
            Place::Remote(message) => message.read("createdAt"),
        }
    }

    /// Who made the message.
    pub fn source(&self) -> Cow<'a, Source> {
        match self.place {
            Place::Here(message) => Cow::Borrowed(message.source()),
            Place::Remote(message) => Cow::Owned(message.read("source")),
        }
    }

    /// A copy, for example to replace the message by a changed one.
    pub fn to_message(&self) -> Message {
        match self.place {
            Place::Here(message) => message.clone(),
            Place::Remote(message) => message.read(""),
        }
    }
}

impl<'a> From<&'a Message> for MessageRef<'a> {
    fn from(message: &'a Message) -> Self {
        Self { place: Place::Here(message) }
    }
}

impl<'a> From<RemoteMessage<'a>> for MessageRef<'a> {
    fn from(message: RemoteMessage<'a>) -> Self {
        Self { place: Place::Remote(message) }
    }
}

impl RemoteMessage<'_> {
    /// A field of the message, or with the empty name all of it.
    ///
    /// # Panics
    /// When the host does not keep to the contract. The panic stops at the border of the extension.
    #[expect(clippy::panic, reason = "there is no value to go on with")]
    fn read<T: DeserializeOwned>(&self, field: &'static str) -> T {
        let json = self.host.read(self.snapshot, self.cursor, field);
        let value = json.and_then(|json| Ok(serde_json::from_slice(&json)?));
        value.unwrap_or_else(|error| panic!("the host gave no `{field}` of the message {}: {error}", self.id))
    }
}

impl fmt::Debug for MessageRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Here(message) => message.fmt(f),
            Place::Remote(_) => self.to_message().fmt(f),
        }
    }
}
