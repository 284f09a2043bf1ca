//! Messages and their content.
// F-MSG

use std::borrow::Cow;

use serde::de::IntoDeserializer;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::content::Content;
use super::source::{MessageSource, Source};
use super::timestamp::Timestamp;
use super::unknown::UnknownMembers;
use crate::depth::{self, TooDeep};
use crate::name::{MessageId, TurnId};

/// The author of a message, as the model distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// Instructions and context for the model.
    System,
    /// The person, program or agent that sent the input.
    User,
    /// The model.
    Assistant,
    /// A tool that answers a call.
    Tool,
    /// An author that this version does not know. A message keeps the name; models are sent it as one of the user.
    #[serde(other)]
    Other,
}

impl Role {
    /// Returns the role as it is written in files and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other => "other",
        }
    }
}

/// One message of a conversation. A message in a conversation never changes: a [`MessageEvent`](super::MessageEvent)
/// replaces it with another one.
///
/// ```
/// use goondan::conversation::{Message, Role};
/// let message = Message::user("hello").with_metadata("pinned", true);
/// assert_eq!((message.role(), &*message.text()), (Role::User, "hello"));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    id: MessageId,
    data: MessageData,
    #[serde(default)]
    metadata: Map<String, Value>,
    created_at: Timestamp,
    source: MessageSource,
    /// The turn that made the message. Conversations of before have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnId>,
    #[serde(flatten)]
    unknown: UnknownMembers,
}

/// The part of a message that a model sees.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MessageData {
    /// The author.
    pub role: Role,
    /// The content.
    pub content: Content,
    /// Has the name of an author that is not known, too.
    unknown: UnknownMembers,
}

impl Serialize for MessageData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut data = serializer.serialize_map(None)?;
        match (self.role, self.unknown.get("role")) {
            (Role::Other, Some(name)) => data.serialize_entry("role", name)?,
            (role, _) => data.serialize_entry("role", &role)?,
        }
        data.serialize_entry("content", &self.content)?;
        let mut rest = self.unknown.iter().filter(|(name, _)| *name != "role");
        rest.try_for_each(|(name, value)| data.serialize_entry(name, value))?;
        data.end()
    }
}

impl<'de> Deserialize<'de> for MessageData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Members {
            role: String,
            content: Content,
            #[serde(flatten)]
            unknown: Map<String, Value>,
        }
        let Members { role: name, content, mut unknown } = Members::deserialize(deserializer)?;
        let role = Role::deserialize(IntoDeserializer::<D::Error>::into_deserializer(&*name))?;
        if role == Role::Other {
            unknown.insert("role".to_owned(), name.into());
        }
        Ok(Self { role, content, unknown: unknown.into() })
    }
}

impl MessageData {
    /// A message of `role` with this content.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self { role, content: content.into(), unknown: UnknownMembers::default() }
    }
}

impl Message {
    /// Returns a message with a new id and the current time.
    pub fn new(role: Role, content: impl Into<Content>, source: Source) -> Self {
        Self {
            id: MessageId::random(),
            data: MessageData::new(role, content),
            metadata: Map::new(),
            created_at: Timestamp::now(),
            source: source.into(),
            turn: None,
            unknown: UnknownMembers::default(),
        }
    }

    /// Returns a message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content, Source::User)
    }

    /// Returns a message with instructions or context for the model.
    pub fn system(content: impl Into<Content>) -> Self {
        Self::new(Role::System, content, Source::System)
    }

    /// Adds a value for extensions; it is never sent to a model.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Replaces the content; id, time and source stay.
    #[must_use]
    pub fn with_content(mut self, content: impl Into<Content>) -> Self {
        self.data.content = content.into();
        self
    }

    /// Rewrites each text that a model or a person reads, with the rules of [`Content::map_text`]. The metadata stays:
    /// no model reads it.
    #[must_use]
    pub fn map_text(mut self, map: impl FnMut(&str) -> Cow<'_, str>) -> Self {
        self.data.content = self.data.content.map_text(map);
        self
    }

    /// Replaces the id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<MessageId>) -> Self {
        self.id = id.into();
        self
    }

    /// Checks that no value in the message has more than `levels` levels.
    ///
    /// # Errors
    /// The place of the first that is too deep.
    pub(crate) fn check_depth(&self, levels: usize) -> Result<(), TooDeep> {
        let within = |place: &'static str| move |error: TooDeep| error.within(place);
        depth::check_map_within(&self.metadata, levels).map_err(within("/metadata"))?;
        self.unknown.check_depth(levels).map_err(within(""))?;
        self.data.unknown.check_depth(levels).map_err(within("/data"))?;
        self.source.check_depth(levels).map_err(within("/source"))?;
        self.content().check_depth(levels).map_err(within("/data"))
    }

    /// Drops the message without recursion.
    pub(crate) fn discard(self) {
        depth::discard(self.metadata.into_values());
        self.unknown.discard();
        self.data.unknown.discard();
        self.source.discard();
        self.data.content.discard();
    }

    pub(crate) fn set_source(&mut self, source: Source) {
        self.source = source.into();
    }

    /// Returns the id, the target of [`MessageEvent::replace`](super::MessageEvent::replace) and
    /// [`MessageEvent::remove`](super::MessageEvent::remove).
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Returns the part of the message that a model sees.
    pub fn data(&self) -> &MessageData {
        &self.data
    }

    /// Returns the author.
    pub fn role(&self) -> Role {
        self.data.role
    }

    /// Returns the content.
    pub fn content(&self) -> &Content {
        &self.data.content
    }

    /// Returns the text of the message: see [`Content::text`].
    pub fn text(&self) -> Cow<'_, str> {
        self.data.content.text()
    }

    /// Returns the values that extensions added.
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// Returns the time at which the message was created.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// Returns the origin of the message.
    pub fn source(&self) -> &Source {
        &self.source.known
    }

    /// Returns the turn that made the message. The runtime sets it when the message comes into the conversation; one
    /// that replaces another and has its id is the same message, changed, and keeps its turn. It is `None` before, and
    /// for messages that were stored by a version that did not keep it.
    pub fn turn(&self) -> Option<&TurnId> {
        self.turn.as_ref()
    }
}

/// The members of a [`Message`] for the runtime.
pub trait MessageExt {
    /// Sets the turn that made the message.
    fn set_turn(&mut self, turn: Option<TurnId>);
    /// Removes a value that was added for extensions.
    fn remove_metadata(&mut self, key: &str);
}

impl MessageExt for Message {
    fn set_turn(&mut self, turn: Option<TurnId>) {
        self.turn = turn;
    }

    fn remove_metadata(&mut self, key: &str) {
        self.metadata.shift_remove(key);
    }
}

/// The members of [`MessageData`] for the runtime.
pub trait MessageDataExt {
    /// The same message with other content.
    fn with_content(&self, content: Content) -> Self;
}

impl MessageDataExt for MessageData {
    fn with_content(&self, content: Content) -> Self {
        Self { role: self.role, content, unknown: self.unknown.clone() }
    }
}
