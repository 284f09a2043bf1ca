//! Messages and their content.
// F-MSG

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::Timestamp;
use crate::name::{ExtensionName, MessageId, ToolCallId};
use crate::secret::{self, mask_json, mask_text};

/// The author of a message, as the model distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions and context for the model.
    System,
    /// The person, program or agent that sent the input.
    User,
    /// The model.
    Assistant,
    /// A tool that answers a call.
    Tool,
}

impl Role {
    /// Returns the role as it is written in files and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
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
    source: Source,
    /// Members that a newer or foreign writer added. They are kept so that rewriting a file loses nothing.
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// The part of a message that a model sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageData {
    /// The author.
    pub role: Role,
    /// The content.
    pub content: Content,
}

impl MessageData {
    /// A message of `role` with this content.
    pub fn new(role: Role, content: impl Into<Content>) -> Self {
        Self { role, content: content.into() }
    }
}

/// The content of a message: plain text, or parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Text, tool calls, tool results and parts of other types, in order.
    Parts(Vec<Part>),
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Part {
    /// Plain text.
    Text(TextPart),
    /// A request of the model to run a tool.
    ToolCall(ToolCallPart),
    /// The result of a tool call.
    ToolResult(ToolResultPart),
    /// A part of a type that goondan does not interpret; it is stored and sent unchanged.
    Other(Map<String, Value>),
}

/// See [`Part::Text`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "text")]
#[non_exhaustive]
pub struct TextPart {
    /// The text.
    pub text: String,
}

impl TextPart {
    /// A part with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

/// See [`Part::ToolCall`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "tool-call", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolCallPart {
    /// The id that the call and its result share.
    pub tool_call_id: ToolCallId,
    /// The tool's name as the model wrote it; it may be illegal.
    pub tool_name: String,
    /// The arguments as the model wrote them.
    pub input: Value,
}

impl ToolCallPart {
    /// A call of the tool `tool_name` with the arguments `input`.
    pub fn new(tool_call_id: ToolCallId, tool_name: impl Into<String>, input: Value) -> Self {
        Self { tool_call_id, tool_name: tool_name.into(), input }
    }
}

/// See [`Part::ToolResult`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "tool-result", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolResultPart {
    /// The id of the call that this answers.
    pub tool_call_id: ToolCallId,
    /// The tool's name as the model wrote it.
    pub tool_name: String,
    /// The output.
    pub output: ToolOutput,
}

impl ToolResultPart {
    /// The result of the call `tool_call_id`.
    pub fn new(tool_call_id: ToolCallId, tool_name: impl Into<String>, output: ToolOutput) -> Self {
        Self { tool_call_id, tool_name: tool_name.into(), output }
    }
}

/// The output of a tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolOutput {
    /// Text.
    Text(String),
    /// Any JSON value.
    Json(Value),
}

impl Part {
    fn mask(&mut self) {
        match self {
            Self::Text(part) => mask_text(&mut part.text),
            Self::ToolCall(call) => mask_json(&mut call.input),
            Self::ToolResult(result) => match &mut result.output {
                ToolOutput::Text(text) => mask_text(text),
                ToolOutput::Json(value) => mask_json(value),
            },
            Self::Other(members) => members.values_mut().for_each(mask_json),
        }
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Reads `map` as `T`, whose `type` is `spelling`, whichever accepted spelling the document has.
        fn read<T: serde::de::DeserializeOwned, E: serde::de::Error>(
            mut map: Map<String, Value>,
            spelling: &str,
        ) -> Result<T, E> {
            map.insert("type".to_owned(), spelling.into());
            serde_json::from_value(Value::Object(map)).map_err(E::custom)
        }
        let map = Map::deserialize(deserializer)?;
        // F-MSG: other implementations of this format spell the types with underscores.
        match map.get("type").and_then(Value::as_str) {
            Some("text") => read(map, "text").map(Self::Text),
            Some("tool-call" | "tool_call" | "tool_use") => read(map, "tool-call").map(Self::ToolCall),
            Some("tool-result" | "tool_result") => read(map, "tool-result").map(Self::ToolResult),
            Some(_) => Ok(Self::Other(map)),
            None => Err(serde::de::Error::missing_field("type")),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<Part>> for Content {
    fn from(parts: Vec<Part>) -> Self {
        Self::Parts(parts)
    }
}

impl Content {
    /// Returns the content with secrets masked, for recorded requests and runtime events.
    pub(crate) fn masked(&self) -> Cow<'_, Self> {
        if !secret::any() {
            return Cow::Borrowed(self);
        }
        let mut masked = self.clone();
        match &mut masked {
            Self::Text(text) => mask_text(text),
            Self::Parts(parts) => parts.iter_mut().for_each(Part::mask),
        }
        Cow::Owned(masked)
    }

    /// Returns the parts; plain text has none.
    pub fn parts(&self) -> &[Part] {
        match self {
            Self::Text(_) => &[],
            Self::Parts(parts) => parts,
        }
    }

    /// Returns all text, that of tool results included; several parts are joined by newlines.
    pub fn text(&self) -> Cow<'_, str> {
        let parts = match self {
            Self::Text(text) => return Cow::Borrowed(text),
            Self::Parts(parts) => parts,
        };
        let mut texts = parts.iter().filter_map(|part| match part {
            Part::Text(part) => Some(Cow::Borrowed(part.text.as_str())),
            Part::ToolResult(part) => Some(match &part.output {
                ToolOutput::Text(text) => Cow::Borrowed(text.as_str()),
                ToolOutput::Json(value) => Cow::Owned(value.to_string()),
            }),
            Part::ToolCall(_) | Part::Other(_) => None,
        });
        let first = texts.next().unwrap_or_default();
        texts.fold(first, |all, text| Cow::Owned(format!("{all}\n{text}")))
    }
}

/// The origin of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Source {
    /// The input of a turn.
    User,
    /// The model, in a step.
    Assistant {
        /// The id of the step, `<turn id>-step-<index>`.
        step_id: String,
    },
    /// A tool.
    Tool {
        /// The id of the call that the message answers.
        tool_call_id: ToolCallId,
        /// The tool's name as the model wrote it.
        tool_name: String,
    },
    /// The runtime.
    System,
    /// An extension.
    Extension {
        /// The extension's name.
        extension_name: ExtensionName,
    },
}

impl Message {
    /// Returns a message with a new id and the current time.
    pub fn new(role: Role, content: impl Into<Content>, source: Source) -> Self {
        Self {
            id: MessageId::random(),
            data: MessageData { role, content: content.into() },
            metadata: Map::new(),
            created_at: Timestamp::now(),
            source,
            other: Map::new(),
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

    /// Replaces the id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<MessageId>) -> Self {
        self.id = id.into();
        self
    }

    pub(crate) fn set_source(&mut self, source: Source) {
        self.source = source;
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

    /// Returns all text of the message.
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
        &self.source
    }
}
