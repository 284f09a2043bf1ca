//! Parts of a message: text, tool calls and tool results.
// F-MSG

use std::borrow::Cow;

use serde::de::Error;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::unknown::{UnknownMembers, take};
use crate::name::ToolCallId;
use crate::secret::{mask_json, mask_text};

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
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "text")]
#[non_exhaustive]
pub struct TextPart {
    /// The text.
    pub text: String,
    #[serde(flatten)]
    unknown: UnknownMembers,
}

impl TextPart {
    /// A part with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), unknown: UnknownMembers::default() }
    }
}

/// See [`Part::ToolCall`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "tool-call", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolCallPart {
    /// The id that the call and its result share.
    pub tool_call_id: ToolCallId,
    /// The tool's name as the model wrote it; it may be illegal.
    pub tool_name: String,
    /// The arguments as the model wrote them.
    pub input: Value,
    #[serde(flatten)]
    unknown: UnknownMembers,
}

impl ToolCallPart {
    /// A call of the tool `tool_name` with the arguments `input`.
    pub fn new(tool_call_id: ToolCallId, tool_name: impl Into<String>, input: Value) -> Self {
        Self { tool_call_id, tool_name: tool_name.into(), input, unknown: UnknownMembers::default() }
    }
}

/// See [`Part::ToolResult`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolResultPart {
    /// The id of the call that this answers.
    pub tool_call_id: ToolCallId,
    /// The tool's name as the model wrote it.
    pub tool_name: String,
    /// The output.
    pub output: ToolOutput,
    /// The members of `output` beside its type and value.
    output_unknown: UnknownMembers,
    unknown: UnknownMembers,
}

impl ToolResultPart {
    /// The result of the call `tool_call_id`.
    pub fn new(tool_call_id: ToolCallId, tool_name: impl Into<String>, output: ToolOutput) -> Self {
        let (output_unknown, unknown) = Default::default();
        Self { tool_call_id, tool_name: tool_name.into(), output, output_unknown, unknown }
    }
}

impl Serialize for ToolResultPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// The output with its unknown members.
        #[derive(Serialize)]
        struct Output<'a> {
            #[serde(flatten)]
            known: &'a ToolOutput,
            #[serde(flatten)]
            unknown: &'a UnknownMembers,
        }
        let mut part = serializer.serialize_map(None)?;
        part.serialize_entry("type", "tool-result")?;
        part.serialize_entry("toolCallId", &self.tool_call_id)?;
        part.serialize_entry("toolName", &self.tool_name)?;
        match &self.output {
            ToolOutput::Other(output) => part.serialize_entry("output", output)?,
            known => part.serialize_entry("output", &Output { known, unknown: &self.output_unknown })?,
        }
        self.unknown.serialize_into(&mut part)?;
        part.end()
    }
}

/// The output of a tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", content = "value", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolOutput {
    /// Text.
    Text(String),
    /// Any JSON value.
    Json(Value),
    /// An output of a type that goondan does not interpret; it is stored and sent unchanged.
    #[serde(untagged)]
    Other(Value),
}

impl ToolOutput {
    /// Returns the output as text; JSON as it is written.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json(value) | Self::Other(value) => Cow::Owned(value.to_string()),
        }
    }

    /// Reads an output, and returns the members beside its type and value too.
    fn from_json<E: Error>(output: Value) -> Result<(Self, UnknownMembers), E> {
        let Value::Object(mut members) = output else { return Ok((Self::Other(output), UnknownMembers::default())) };
        let read = match members.get("type").and_then(Value::as_str) {
            Some("text") => Self::Text(take(&mut members, "value")?),
            Some("json") => Self::Json(take(&mut members, "value")?),
            _ => return Ok((Self::Other(Value::Object(members)), UnknownMembers::default())),
        };
        members.shift_remove("type");
        Ok((read, members.into()))
    }
}

impl Part {
    /// Masks secrets, also in members that are not known.
    pub(super) fn mask(&mut self) {
        let unknown = match self {
            Self::Text(part) => {
                mask_text(&mut part.text);
                &mut part.unknown
            }
            Self::ToolCall(call) => {
                mask_json(&mut call.input);
                &mut call.unknown
            }
            Self::ToolResult(result) => {
                match &mut result.output {
                    ToolOutput::Text(text) => mask_text(text),
                    ToolOutput::Json(value) | ToolOutput::Other(value) => mask_json(value),
                }
                result.output_unknown.mask();
                &mut result.unknown
            }
            Self::Other(members) => return members.values_mut().for_each(mask_json),
        };
        unknown.mask();
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Map::deserialize(deserializer)?;
        // F-MSG: other implementations of this format spell the types with underscores.
        let part = match members.get("type").and_then(Value::as_str) {
            Some("text") => {
                members.shift_remove("type");
                let text = take(&mut members, "text")?;
                Self::Text(TextPart { text, unknown: members.into() })
            }
            Some("tool-call" | "tool_call" | "tool_use") => {
                members.shift_remove("type");
                Self::ToolCall(ToolCallPart {
                    tool_call_id: take(&mut members, "toolCallId")?,
                    tool_name: take(&mut members, "toolName")?,
                    input: take(&mut members, "input")?,
                    unknown: members.into(),
                })
            }
            Some("tool-result" | "tool_result") => {
                members.shift_remove("type");
                let (output, output_unknown) = ToolOutput::from_json(take(&mut members, "output")?)?;
                Self::ToolResult(ToolResultPart {
                    tool_call_id: take(&mut members, "toolCallId")?,
                    tool_name: take(&mut members, "toolName")?,
                    output,
                    output_unknown,
                    unknown: members.into(),
                })
            }
            Some(_) => Self::Other(members),
            None => return Err(D::Error::missing_field("type")),
        };
        Ok(part)
    }
}
