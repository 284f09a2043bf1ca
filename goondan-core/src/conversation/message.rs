//! Owns the message: what one participant of a conversation said (F-MSG).

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::Timestamp;
use crate::name::{ExtensionName, MessageId, ToolCallId};
use crate::secret::{self, mask_json, mask_text};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions and context for the model.
    System,
    /// The person, program or agent that gave the input.
    User,
    /// The model.
    Assistant,
    /// A tool, answering a call.
    Tool,
}

impl Role {
    /// The role as it stands in files and requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One message of a conversation. It is made once and never changed: a [`MessageEvent`](super::MessageEvent) puts
/// another one in its place.
///
/// ```
/// use goondan::{Message, Role};
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
    /// Members that a newer or foreign writer added: kept, so that rewriting a file loses nothing.
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// The part of a message that a model sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageData {
    /// Who speaks.
    pub role: Role,
    /// What was said.
    pub content: Content,
}

/// What was said: plain text, or parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// Text, tool calls, tool results and whatever else, in order.
    Parts(Vec<Part>),
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Part {
    /// Plain text.
    Text(TextPart),
    /// The model asks for a tool to be run.
    ToolCall(ToolCallPart),
    /// A tool's answer.
    ToolResult(ToolResultPart),
    /// A part of a type that goondan does not interpret; it is passed on unchanged.
    Other(Map<String, Value>),
}

/// See [`Part::Text`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "text")]
pub struct TextPart {
    /// The text.
    pub text: String,
}

/// See [`Part::ToolCall`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "tool-call", rename_all = "camelCase")]
pub struct ToolCallPart {
    /// The id that joins the call and its result.
    pub tool_call_id: ToolCallId,
    /// The tool's name as the model wrote it, which need not be a legal one.
    pub tool_name: String,
    /// The arguments as the model wrote them.
    pub input: Value,
}

/// See [`Part::ToolResult`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "tool-result", rename_all = "camelCase")]
pub struct ToolResultPart {
    /// The call that this answers.
    pub tool_call_id: ToolCallId,
    /// The tool's name as the model wrote it.
    pub tool_name: String,
    /// The answer.
    pub output: ToolOutput,
}

/// A tool's answer as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "lowercase")]
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
        /// Reads `map` as `T`, whatever of its accepted spellings the type has.
        fn read<T: serde::de::DeserializeOwned, E: serde::de::Error>(
            mut map: Map<String, Value>,
            spelling: &str,
        ) -> Result<T, E> {
            map.insert("type".to_owned(), spelling.into());
            serde_json::from_value(Value::Object(map)).map_err(E::custom)
        }
        let map = Map::deserialize(deserializer)?;
        // Other implementations of these documents spell the types with underscores (F-MSG).
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
    /// The same without secrets, for records and events.
    pub(crate) fn masked(&self) -> Cow<'_, Self> {
        if !secret::any() {
            return Cow::Borrowed(self);
        }
        let mut said = self.clone();
        match &mut said {
            Self::Text(text) => mask_text(text),
            Self::Parts(parts) => parts.iter_mut().for_each(Part::mask),
        }
        Cow::Owned(said)
    }

    /// The parts; none for plain text.
    pub fn parts(&self) -> &[Part] {
        match self {
            Self::Text(_) => &[],
            Self::Parts(parts) => parts,
        }
    }

    /// All text, that of tool results included; several parts are joined by line ends.
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

/// Who made a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Source {
    /// The input of a turn.
    User,
    /// The model, in a step.
    Assistant {
        /// The step, `<turn id>-step-<index>`.
        step_id: String,
    },
    /// A tool.
    Tool {
        /// The call that was answered.
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
    /// A message with a new id, made now.
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

    /// A message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content, Source::User)
    }

    /// A message with instructions or context for the model.
    pub fn system(content: impl Into<Content>) -> Self {
        Self::new(Role::System, content, Source::System)
    }

    /// Adds a value for extensions to find; it is never sent to a model.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// The same message with other content; id, time and source stay.
    #[must_use]
    pub fn with_content(mut self, content: impl Into<Content>) -> Self {
        self.data.content = content.into();
        self
    }

    /// The same message under an id of the caller's choice.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<MessageId>) -> Self {
        self.id = id.into();
        self
    }

    pub(crate) fn set_source(&mut self, source: Source) {
        self.source = source;
    }

    /// The id, the target of [`MessageEvent::replace`](super::MessageEvent::replace) and
    /// [`MessageEvent::remove`](super::MessageEvent::remove).
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// What a model sees of the message.
    pub fn data(&self) -> &MessageData {
        &self.data
    }

    /// Who speaks.
    pub fn role(&self) -> Role {
        self.data.role
    }

    /// What was said.
    pub fn content(&self) -> &Content {
        &self.data.content
    }

    /// All text of the message.
    pub fn text(&self) -> Cow<'_, str> {
        self.data.content.text()
    }

    /// Values that extensions left here.
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// When the message was made.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// Who made the message.
    pub fn source(&self) -> &Source {
        &self.source
    }
}
