//! Owns the runtime events: what the runtime tells about turns, steps and tool calls (EVENT-04, F-EVENTS).

mod payload;
mod scope;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use payload::{ContentSource, LlmInputMessage, StepRef, TokenUsage, ToolCallRef};
pub use scope::{EventScope, Span, SpanId};

use crate::outcome::ToolCallStatus;
use payload::millis;

/// Something that the runtime did. It is the first argument of the bus event called [`name`](RuntimeEvent::name), and a
/// line of `runtime-events.jsonl`.
///
/// ```
/// use goondan::{Event, Result, RuntimeEvent};
///
/// async fn count_steps(event: Event) -> Result<()> {
///     if let RuntimeEvent::TurnCompleted { scope, step_count, .. } = event.payload()? {
///         println!("{} took {step_count} steps", scope.turn_id);
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum RuntimeEvent {
    /// An input event left the queue, and its turn starts.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// When and where.
        #[serde(flatten)]
        scope: EventScope,
    },
    /// The last step of a turn is over; the turn is about to be stored.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// When and where.
        #[serde(flatten)]
        scope: EventScope,
        /// How many steps were run.
        step_count: u32,
        /// How long the turn took.
        #[serde(with = "millis")]
        duration: Duration,
        /// What all model calls of the turn took, if the model says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_usage: Option<TokenUsage>,
    },
    /// A turn ended with an error.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// When and where.
        #[serde(flatten)]
        scope: EventScope,
        /// How long the turn took.
        #[serde(with = "millis")]
        duration: Duration,
        /// What went wrong.
        error_message: String,
    },
    /// A step is about to ask the model.
    #[serde(rename = "step.started")]
    StepStarted {
        /// When and where.
        #[serde(flatten)]
        scope: EventScope,
        /// The step.
        #[serde(flatten)]
        step: StepRef,
        /// What the model is sent. Off unless the agent's owner turns it on: whoever listens could read the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        llm_input_messages: Option<Vec<LlmInputMessage>>,
    },
    /// The model has answered, and the tools that it asked for have run.
    #[serde(rename = "step.completed")]
    StepCompleted {
        /// When and where.
        #[serde(flatten)]
        scope: EventScope,
        /// The step.
        #[serde(flatten)]
        step: StepRef,
        /// How many tools the model asked for.
        tool_call_count: u32,
        /// How long the step took.
        #[serde(with = "millis")]
        duration: Duration,
        /// What the model call took, if the model says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_usage: Option<TokenUsage>,
    },
    /// A step ended with an error; it may be run again.
    #[serde(rename = "step.failed")]
    StepFailed {
        /// When and where.
        #[serde(flatten)]
        scope: EventScope,
        /// The step.
        #[serde(flatten)]
        step: StepRef,
        /// How long the step took.
        #[serde(with = "millis")]
        duration: Duration,
        /// What went wrong.
        error_message: String,
    },
    /// The handler of a tool is about to run.
    #[serde(rename = "tool.called")]
    ToolCalled {
        /// When and where.
        #[serde(flatten)]
        scope: EventScope,
        /// The call.
        #[serde(flatten)]
        call: ToolCallRef,
    },
    /// A tool call has a result, which can be an error for the model to read.
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        /// When and where.
        #[serde(flatten)]
        scope: EventScope,
        /// The call.
        #[serde(flatten)]
        call: ToolCallRef,
        /// How it ended.
        status: ToolCallStatus,
        /// How long the call took.
        #[serde(with = "millis")]
        duration: Duration,
        /// What the model reads in place of an output, when the result is an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// A tool call has no result, since something around its handler failed.
    #[serde(rename = "tool.failed")]
    ToolFailed {
        /// When and where.
        #[serde(flatten)]
        scope: EventScope,
        /// The call.
        #[serde(flatten)]
        call: ToolCallRef,
        /// How long the call took.
        #[serde(with = "millis")]
        duration: Duration,
        /// What went wrong.
        error_message: String,
    },
}

impl RuntimeEvent {
    /// The name of the event on the bus, which is also its `type`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TurnStarted { .. } => "turn.started",
            Self::TurnCompleted { .. } => "turn.completed",
            Self::TurnFailed { .. } => "turn.failed",
            Self::StepStarted { .. } => "step.started",
            Self::StepCompleted { .. } => "step.completed",
            Self::StepFailed { .. } => "step.failed",
            Self::ToolCalled { .. } => "tool.called",
            Self::ToolCompleted { .. } => "tool.completed",
            Self::ToolFailed { .. } => "tool.failed",
        }
    }

    /// When and where it happened.
    pub fn scope(&self) -> &EventScope {
        match self {
            Self::TurnStarted { scope }
            | Self::TurnCompleted { scope, .. }
            | Self::TurnFailed { scope, .. }
            | Self::StepStarted { scope, .. }
            | Self::StepCompleted { scope, .. }
            | Self::StepFailed { scope, .. }
            | Self::ToolCalled { scope, .. }
            | Self::ToolCompleted { scope, .. }
            | Self::ToolFailed { scope, .. } => scope,
        }
    }
}
