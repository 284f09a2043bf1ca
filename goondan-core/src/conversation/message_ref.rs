//! Reference to a message of a conversation.

use std::borrow::Cow;
use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::content::Content;
use super::message::{Message, Role};
use super::remote::{RemoteConversation, Snapshot};
use super::source::Source;
use super::texts::Texts;
use super::timestamp::Timestamp;
use crate::error::Error;
use crate::name::{MessageId, TurnId};

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
    /// Returns the id, the target of [`MessageEvent::replace`](super::MessageEvent::replace) and
    /// [`MessageEvent::remove`](super::MessageEvent::remove).
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

    /// Returns the text of the message: see [`Content::text`].
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

    /// Returns each text of the message that a model or a person reads: see [`Content::texts`].
    pub fn texts(&self) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
        let mut texts = Texts::default();
        match (self.as_plain(), self.repr) {
            (Some(text), _) => texts.add(text),
            (None, Repr::Local(message)) => texts.parts(message.content().parts()),
            (None, Repr::Remote(_)) => self.content().texts().for_each(|text| texts.add(text.into_owned())),
        }
        texts.into_iter()
    }

    /// Returns a copy of the message with each text rewritten that a model or a person reads, with the rules of
    /// [`Content::map_text`], or `None` if none changes.
    ///
    /// ```
    /// use goondan::prelude::*;
    ///
    /// # fn hide(ctx: &mut TurnContext<'_>) {
    /// let messages = ctx.conversation().iter();
    /// let changed = messages.filter_map(|message| message.map_text(|text| text.replace("4711", "[code]").into()));
    /// for message in changed.collect::<Vec<_>>() {
    ///     ctx.emit(MessageEvent::replace(message.id().clone(), message));
    /// }
    /// # }
    /// ```
    pub fn map_text(&self, mut map: impl FnMut(&str) -> Cow<'_, str>) -> Option<Message> {
        let content = match self.as_plain() {
            // Nothing is copied to find out that nothing changes.
            Some(text) => {
                let mapped = map(text);
                (*mapped != *text).then(|| mapped.into_owned().into())
            }
            None => {
                let (content, has_changed) = self.content().into_owned().rewritten(map);
                has_changed.then_some(content)
            }
        };
        content.map(|content: Content| self.to_message().with_content(content))
    }

    /// Returns the text if the content is plain text.
    fn as_plain(&self) -> Option<&'a str> {
        match self.repr {
            Repr::Local(message) => message.content().as_plain(),
            Repr::Remote(message) => message.text,
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

    /// Returns the turn that made the message: see [`Message::turn`].
    pub fn turn(&self) -> Option<TurnId> {
        match self.repr {
            Repr::Local(message) => message.turn().cloned(),
            Repr::Remote(message) => message.read("turn"),
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
