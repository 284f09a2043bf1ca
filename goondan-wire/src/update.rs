//! The updates of a running turn, one object each.

use std::sync::Arc;
use std::time::Duration;

use goondan_core::{
    AgentName, ExtensionName, InstanceKey, LiveQuestionId, LiveWait, MessageEvent, RuntimeEvent, Shown, ToolCallId,
    TurnId,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::end::TurnEnd;

/// Something that happened in a turn. The member `type` of its JSON says what.
///
/// Pieces of an answer are a preview: the message, and the end of the turn, have what counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Update {
    /// A piece of the model's text.
    Text {
        /// The turn.
        turn_id: TurnId,
        /// The index of the step.
        step_index: u32,
        /// The index of the part in the answer.
        part: u32,
        /// The piece.
        text: String,
    },
    /// A piece of what the model thinks before it answers.
    Reasoning {
        /// The turn.
        turn_id: TurnId,
        /// The index of the step.
        step_index: u32,
        /// The index of the part in the answer.
        part: u32,
        /// The piece.
        text: String,
    },
    /// The model begins to request a tool call.
    ToolCall {
        /// The turn.
        turn_id: TurnId,
        /// The index of the step.
        step_index: u32,
        /// The index of the part in the answer.
        part: u32,
        /// The id of the call.
        tool_call_id: ToolCallId,
        /// The tool's name as the model wrote it.
        tool_name: String,
    },
    /// A piece of the arguments of a tool call.
    Arguments {
        /// The turn.
        turn_id: TurnId,
        /// The index of the step.
        step_index: u32,
        /// The index of the part in the answer, which is the call.
        part: u32,
        /// A piece of their JSON text.
        json: String,
    },
    /// The answer of a step begins again: the pieces of it that were received are void.
    Restart {
        /// The turn.
        turn_id: TurnId,
        /// The index of the step.
        step_index: u32,
        /// Why.
        reason: String,
        /// The time that the model waits before it is asked again, in milliseconds; `None` if the provider begins again
        /// by itself.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "millis")]
        wait: Option<Duration>,
    },
    /// The progress of a tool call.
    Progress {
        /// The turn.
        turn_id: TurnId,
        /// The id of the call.
        tool_call_id: ToolCallId,
        /// The amount that is done.
        done: f64,
        /// The whole amount, if it is known.
        total: Option<f64>,
        /// The current work of the call.
        text: String,
    },
    /// Something that an extension shows to the person.
    Shown {
        /// The turn.
        turn_id: TurnId,
        /// The extension.
        extension: ExtensionName,
        /// The update.
        shown: Shown,
    },
    /// A tool waits for the answer to a live question, or an agent does that a tool has asked. Secrets in it are
    /// masked. A [`DecideLine`](crate::DecideLine) answers it.
    // ASK-04
    Asked(Box<LiveWait>),
    /// A live question does not wait any more: it was answered, it has expired, or its call has ended.
    // ASK-04
    Gone {
        /// The question.
        id: LiveQuestionId,
    },
    /// A change of the conversation, as it is stored.
    Message {
        /// The turn.
        turn_id: TurnId,
        /// The change.
        event: MessageEvent,
    },
    /// A turn, step or tool call began or ended, or another runtime event.
    Event {
        /// The event.
        event: Reported,
    },
    /// Something that happened in the turn of another agent that the turn waits for, if the stream has
    /// [those too](goondan_runtime::TurnStream::with_children).
    // D-40
    Child {
        /// The turn that waits.
        turn_id: TurnId,
        /// The tool call that asked; `None` if a layer did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<ToolCallId>,
        /// The agent that was asked.
        agent_name: AgentName,
        /// The key of its instance.
        instance_key: InstanceKey,
        /// The update. One of an agent that it asks is a `Child` in turn.
        update: Box<Update>,
    },
    /// The end of the turn.
    Turn(Box<TurnEnd>),
    /// A type that this version does not know.
    #[serde(other)]
    Other,
}

impl Update {
    /// Returns the update as JSON, in one line.
    ///
    /// # Errors
    /// As [`serde_json::to_string`].
    // One instance for all who write updates, in a crate that is optimized for speed.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}

/// A runtime event, of this version or of a later one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Reported {
    /// One that this version knows.
    Known(Arc<RuntimeEvent>),
    /// The JSON of another one.
    Unknown(Value),
}

/// Serializes a wait as whole milliseconds.
mod millis {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
    pub(super) fn serialize<S: Serializer>(wait: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Duration::from_millis))
    }
}
