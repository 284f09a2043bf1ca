//! Blocks of a request, which borrow the parts of messages.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::files::File;
use crate::wire::arguments::Arguments;

/// A block of a message, and whether the request is kept in the cache up to it.
pub(super) struct Block<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) is_marked: bool,
}

pub(super) enum Kind<'a> {
    Text(Cow<'a, str>),
    /// A text with its sources.
    Cited(&'a str, &'a Value),
    /// Reasoning with its signature.
    Thinking(&'a str, &'a Value),
    /// Reasoning that only the model can read.
    Redacted(&'a Value),
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a Value,
    },
    ToolResult {
        id: Cow<'a, str>,
        content: Vec<Kind<'a>>,
        /// Whether the tool failed, where the model can be told.
        is_error: Option<bool>,
    },
    File(File<'a>),
    /// A block of the provider.
    Whole(&'a Map<String, Value>),
}

impl<'a> Block<'a> {
    pub(super) fn new(kind: Kind<'a>) -> Self {
        Self { kind, is_marked: false }
    }

    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(Kind::Text(text.into()))
    }

    pub(super) fn is_result(&self) -> bool {
        matches!(self.kind, Kind::ToolResult { .. })
    }

    pub(super) fn is_thinking(&self) -> bool {
        matches!(self.kind, Kind::Thinking(..) | Kind::Redacted(_))
    }
}

impl Serialize for Kind<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::File(file) => return file.serialize(serializer),
            Self::Whole(block) => return block.serialize(serializer),
            _ => {}
        }
        let mut block = serializer.serialize_map(Some(1))?;
        match self {
            Self::Text(text) => block.serialize_entry("text", text)?,
            Self::Cited(text, citations) => {
                let cited = Cited { content: [Text { text }], citations };
                block.serialize_entry("citationsContent", &cited)?;
            }
            Self::Thinking(text, signature) => {
                let reasoning = Reasoning::ReasoningText { text, signature };
                block.serialize_entry("reasoningContent", &reasoning)?;
            }
            Self::Redacted(data) => {
                block.serialize_entry("reasoningContent", &Reasoning::RedactedContent(data))?;
            }
            Self::ToolUse { id, name, input } => {
                block.serialize_entry("toolUse", &ToolUse { tool_use_id: id, name, input: Arguments(input) })?;
            }
            Self::ToolResult { id, content, is_error } => {
                let status = is_error.map(|is_error| if is_error { "error" } else { "success" });
                block.serialize_entry("toolResult", &ToolResult { tool_use_id: id, content, status })?;
            }
            Self::File(_) | Self::Whole(_) => {}
        }
        block.end()
    }
}

#[derive(Serialize)]
struct Text<'a> {
    text: &'a str,
}

#[derive(Serialize)]
struct Cited<'a> {
    content: [Text<'a>; 1],
    citations: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Reasoning<'a> {
    ReasoningText { text: &'a str, signature: &'a Value },
    RedactedContent(&'a Value),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse<'a> {
    tool_use_id: &'a str,
    name: &'a str,
    input: Arguments<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolResult<'a> {
    tool_use_id: &'a str,
    content: &'a [Kind<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}
