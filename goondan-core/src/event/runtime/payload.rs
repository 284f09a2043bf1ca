//! The fields of runtime events that have their own types.

use serde::{Deserialize, Serialize};

use crate::conversation::{Content, MessageData, Part, Role};
use crate::name::{ToolCallId, TurnId};

/// The step of a runtime event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRef {
    /// The id of the step: `<turn id>-step-<index>`.
    pub step_id: String,
    /// The index of the step in its turn, from 0.
    pub step_index: u32,
}

impl StepRef {
    /// Returns the reference to the step of `turn` with this index.
    pub fn new(turn: &TurnId, index: u32) -> Self {
        let mut step_id = String::with_capacity(turn.as_str().len() + "-step-00".len());
        step_id.push_str(turn.as_str());
        step_id.push_str("-step-");
        // Few turns have more than ten steps, and formatting costs several times what pushing a digit does.
        match char::from_digit(index, 10) {
            Some(digit) => step_id.push(digit),
            None => step_id.push_str(&index.to_string()),
        }
        Self { step_id, step_index: index }
    }
}

/// The tool call of a runtime event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallRef {
    /// The [id](StepRef::step_id) of the step.
    pub step_id: String,
    /// The id of the call.
    pub tool_call_id: ToolCallId,
    /// The tool's name as the model wrote it; it may be illegal.
    pub tool_name: String,
}

/// A message as it is sent to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LlmInputMessage {
    /// The author.
    pub role: Role,
    /// The text of the content.
    pub content: String,
    /// Whether that text is the whole content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_source: Option<ContentSource>,
    /// All parts of the content, if it has parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<Part>>,
}

/// How the text of an [`LlmInputMessage`] relates to the content of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ContentSource {
    /// The text is the content.
    Verbatim,
    /// The text is that of all parts, joined; the field `parts` has the content.
    Summary,
}

/// Masks secrets, because observers read the result, not the model.
impl From<&MessageData> for LlmInputMessage {
    fn from(message: &MessageData) -> Self {
        let masked = message.content.masked();
        let content = masked.text().into_owned();
        let (source, parts) = match masked.into_owned() {
            Content::Text(_) => (ContentSource::Verbatim, None),
            Content::Parts(parts) => (ContentSource::Summary, Some(parts)),
        };
        Self { role: message.role, content, content_source: Some(source), parts }
    }
}

/// Serializes durations in runtime events as whole milliseconds.
pub(super) mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
