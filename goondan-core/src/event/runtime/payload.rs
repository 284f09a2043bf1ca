//! Owns the parts of runtime events that several of them share, or that have a form of their own.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::conversation::{Content, MessageData, Part, Role};
use crate::name::{ToolCallId, TurnId};

/// Which step of a turn an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepRef {
    /// The turn's id, `-step-`, and the index.
    pub step_id: String,
    /// The index, from 0.
    pub step_index: u32,
}

impl StepRef {
    /// The step with the index `index` of `turn`.
    pub fn new(turn: &TurnId, index: u32) -> Self {
        Self { step_id: [turn.as_str(), "-step-", &index.to_string()].concat(), step_index: index }
    }
}

/// Which tool call of a step an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallRef {
    /// The step's [id](StepRef::step_id).
    pub step_id: String,
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool's name as the model wrote it, which need not be a legal one.
    pub tool_name: String,
}

/// How many tokens a model took in and gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// In what the model was sent.
    pub prompt_tokens: u64,
    /// In what it answered.
    pub completion_tokens: u64,
    /// Together, as the provider counts.
    pub total_tokens: u64,
}

impl AddAssign for TokenUsage {
    /// Adds what another model call of the same turn took.
    fn add_assign(&mut self, other: Self) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.total_tokens = self.total_tokens.saturating_add(other.total_tokens);
    }
}

/// A message as a model is sent it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LlmInputMessage {
    /// Who speaks.
    pub role: Role,
    /// What is said, as text.
    pub content: String,
    /// Whether that text is all that is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_source: Option<ContentSource>,
    /// Everything that is said, if it is more than text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Vec<Part>>,
}

/// How the text of an [`LlmInputMessage`] relates to the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentSource {
    /// It is the message.
    Verbatim,
    /// It is the text within the message; the rest stands in the parts.
    Summary,
}

/// Without secrets: events are for those who watch, not for the model.
impl From<&MessageData> for LlmInputMessage {
    fn from(message: &MessageData) -> Self {
        let said = message.content.masked();
        let content = said.text().into_owned();
        let (source, parts) = match said.into_owned() {
            Content::Text(_) => (ContentSource::Verbatim, None),
            Content::Parts(parts) => (ContentSource::Summary, Some(parts)),
        };
        Self { role: message.role, content, content_source: Some(source), parts }
    }
}

/// How durations stand in events: as whole milliseconds.
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
