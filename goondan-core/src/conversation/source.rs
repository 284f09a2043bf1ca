//! Origin of a message.
// F-MSG

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::unknown::{UnknownMembers, take};
use crate::depth::{self, TooDeep};
use crate::name::{ExtensionName, ToolCallId};

/// The origin of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// An origin of a type that goondan does not know; it is stored unchanged.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

/// A source as it is stored, with the members that are not known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct MessageSource {
    #[serde(flatten)]
    pub(super) known: Source,
    #[serde(flatten)]
    unknown: UnknownMembers,
}

impl MessageSource {
    pub(super) fn check_depth(&self, levels: usize) -> Result<(), TooDeep> {
        if let Source::Other(members) = &self.known {
            depth::check_map_within(members, levels)?;
        }
        self.unknown.check_depth(levels)
    }

    /// Drops the source without recursion.
    pub(super) fn discard(self) {
        if let Source::Other(members) = self.known {
            depth::discard(members.into_values());
        }
        self.unknown.discard();
    }
}

impl From<Source> for MessageSource {
    fn from(known: Source) -> Self {
        Self { known, unknown: UnknownMembers::default() }
    }
}

impl<'de> Deserialize<'de> for MessageSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Map::deserialize(deserializer)?;
        let known = match members.get("type").and_then(Value::as_str) {
            Some("user") => Source::User,
            Some("system") => Source::System,
            Some("assistant") => Source::Assistant { step_id: take(&mut members, "stepId")? },
            Some("tool") => Source::Tool {
                tool_call_id: take(&mut members, "toolCallId")?,
                tool_name: take(&mut members, "toolName")?,
            },
            Some("extension") => Source::Extension { extension_name: take(&mut members, "extensionName")? },
            Some(_) => return Ok(Source::Other(members).into()),
            None => return Err(D::Error::missing_field("type")),
        };
        members.shift_remove("type");
        Ok(Self { known, unknown: members.into() })
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        MessageSource::deserialize(deserializer).map(|source| source.known)
    }
}
