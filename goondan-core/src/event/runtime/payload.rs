//! The fields of runtime events that have their own types.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::conversation::{Content, MessageData, Part, Role};
use crate::name::{ToolCallId, TurnId};

/// The step of a runtime event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
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
        // Few turns have more than ten steps, and formatting costs several times as much as pushing a digit.
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
#[non_exhaustive]
pub struct ToolCallRef {
    /// The [id](StepRef::step_id) of the step.
    pub step_id: String,
    /// The id of the call.
    pub tool_call_id: ToolCallId,
    /// The tool's name as the model wrote it; it may be illegal.
    pub tool_name: String,
}

impl ToolCallRef {
    /// Returns the reference to a call of the step `step_id`.
    pub fn new(step_id: impl Into<String>, tool_call_id: ToolCallId, tool_name: impl Into<String>) -> Self {
        Self { step_id: step_id.into(), tool_call_id, tool_name: tool_name.into() }
    }
}

/// A message as it is sent to a model, with secrets masked.
///
/// In JSON, `content` is the text. `contentSource` is `verbatim` if that is all, and `summary` if the member `parts`
/// has the parts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LlmInputMessage {
    /// The author.
    pub role: Role,
    /// The content.
    pub content: Content,
}

/// Masks secrets, because observers read the result, not the model.
impl From<&MessageData> for LlmInputMessage {
    fn from(message: &MessageData) -> Self {
        Self { role: message.role, content: message.content.masked().into_owned() }
    }
}

impl Serialize for LlmInputMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.content.as_plain().is_none().then(|| self.content.parts());
        let mut message = serializer.serialize_struct("LlmInputMessage", 3 + usize::from(parts.is_some()))?;
        message.serialize_field("role", &self.role)?;
        message.serialize_field("content", &self.content.text())?;
        message.serialize_field("contentSource", if parts.is_some() { "summary" } else { "verbatim" })?;
        if let Some(parts) = parts {
            message.serialize_field("parts", parts)?;
        }
        message.end()
    }
}

impl<'de> Deserialize<'de> for LlmInputMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Members {
            role: Role,
            content: String,
            parts: Option<Vec<Part>>,
        }
        let Members { role, content, parts } = Members::deserialize(deserializer)?;
        Ok(Self { role, content: parts.map_or_else(|| content.into(), Content::from) })
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

/// Serializes how long something took as whole milliseconds, with the whole microseconds beside them.
pub(super) mod elapsed {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::micros;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Members {
        #[serde(with = "super::millis")]
        duration: Duration,
        #[serde(default)]
        duration_micros: Option<u64>,
    }

    pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        Members { duration: *duration, duration_micros: Some(micros(*duration)) }.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        // Earlier versions wrote no microseconds.
        let Members { duration, duration_micros } = Members::deserialize(deserializer)?;
        Ok(duration_micros.map_or(duration, Duration::from_micros))
    }
}

/// Serializes the time to the first piece of an answer like [`elapsed`], if there is one.
pub(super) mod first_piece {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::micros;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Members {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_to_first_piece: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_to_first_piece_micros: Option<u64>,
    }

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(crate) fn serialize<S: Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        let micros = time.map(micros);
        Members { time_to_first_piece: micros.map(|micros| micros / 1000), time_to_first_piece_micros: micros }
            .serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        let Members { time_to_first_piece, time_to_first_piece_micros } = Members::deserialize(deserializer)?;
        let micros = time_to_first_piece_micros.map(Duration::from_micros);
        Ok(micros.or_else(|| time_to_first_piece.map(Duration::from_millis)))
    }
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
