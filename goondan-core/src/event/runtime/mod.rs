//! Runtime events: reports of the runtime about turns, steps, tool calls and model requests.
// EVENT-04, F-EVENTS

mod payload;
mod prefix;
mod scope;
#[cfg(test)]
mod tests;
mod usage;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use payload::{LlmInputMessage, StepRef, ToolCallRef};
pub use prefix::{KeptPrefix, PrefixBreak, PrefixChange, RequestPart};
pub use scope::EventScope;
pub use usage::{Cost, TokenUsage};

use crate::error::ErrorCode;
use crate::name::{EventId, ExtensionName, ModelName};
use crate::outcome::ModelFinish;
use crate::outcome::ToolCallStatus;
use crate::presentation::Presentation;
use crate::question::Wait;
use payload::{elapsed, first_piece, millis};

/// A report of the runtime about a turn, a step, a tool call or a model request. It is the first argument of the bus
/// event called [`name`](RuntimeEvent::name), and a line of `runtime-events.jsonl`. In JSON, `duration` is in whole
/// milliseconds, with `durationMicros` in whole microseconds beside it; so is `timeToFirstPiece`.
///
/// ```
/// use goondan::Result;
/// use goondan::event::{Event, RuntimeEvent};
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
#[non_exhaustive]
pub enum RuntimeEvent {
    /// The runtime has taken an input event from the queue, and its turn starts.
    #[serde(rename = "turn.started")]
    TurnStarted {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
    },
    /// A turn that was interrupted goes on. It has started before, and the number of its steps goes on too.
    // RESUME-01
    #[serde(rename = "turn.resumed")]
    TurnResumed {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The number of this resumption, from one.
        number: u32,
    },
    /// An input has joined the turn that runs: the next request to the model has it as its newest message of a user.
    // STEER-01
    #[serde(rename = "input.joined")]
    InputJoined {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The event of the input, which the turn answers too.
        event_id: EventId,
    },
    /// A turn does not run any more, because calls wait for decisions. It goes on, with `turn.resumed`, when all of
    /// them are decided.
    // ASK-01
    #[serde(rename = "turn.suspended")]
    TurnSuspended {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The calls. Secrets in their arguments are masked.
        waits: Vec<Wait>,
    },
    /// The last step of a turn is over; the turn is about to be stored.
    #[serde(rename = "turn.completed")]
    TurnCompleted {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The number of steps.
        step_count: u32,
        /// The duration of the turn.
        #[serde(flatten, with = "elapsed")]
        duration: Duration,
        /// The tokens of all model calls of the turn, if the model reports them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_usage: Option<TokenUsage>,
        /// The tokens of the turn and of the turns of other agents that it has waited for, if there are any.
        // WORK-02
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole_usage: Option<TokenUsage>,
    },
    /// A turn ended with an error.
    #[serde(rename = "turn.failed")]
    TurnFailed {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The duration of the turn.
        #[serde(flatten, with = "elapsed")]
        duration: Duration,
        /// The code of the error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<ErrorCode>,
        /// The message of the error.
        error_message: String,
        /// The tokens of all model calls of the turn, if the model reports them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_usage: Option<TokenUsage>,
        /// The tokens of the turn and of the turns of other agents that it has waited for, if there are any.
        // WORK-02
        #[serde(default, skip_serializing_if = "Option::is_none")]
        whole_usage: Option<TokenUsage>,
    },
    /// A step is about to call the model, or to take the answer that a middleware has prepared.
    #[serde(rename = "step.started")]
    StepStarted {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The step.
        #[serde(flatten)]
        step: StepRef,
        /// The messages that are sent to the model. `None` unless the agent's policy sets `report_model_input`,
        /// because every subscription could read the conversation, and if the answer was prepared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        llm_input_messages: Option<Vec<LlmInputMessage>>,
    },
    /// The model has answered, or an answer was prepared, and the tool calls that it requested have run.
    #[serde(rename = "step.completed")]
    StepCompleted {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The step.
        #[serde(flatten)]
        step: StepRef,
        /// The number of tool calls that the model requested.
        tool_call_count: u32,
        /// The duration of the step.
        #[serde(flatten, with = "elapsed")]
        duration: Duration,
        /// The tokens of the model call, if the model reports them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_usage: Option<TokenUsage>,
        /// The provider of the model that was asked, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// The model that answered, if its provider reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The time from the request to the first piece of the answer, if the model sends pieces.
        #[serde(flatten, with = "first_piece")]
        time_to_first_piece: Option<Duration>,
        /// Why the model stopped, if it reports that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finish_reason: Option<ModelFinish>,
        /// The extension that has prepared the answer, if the model was not asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prepared_by: Option<ExtensionName>,
        /// The part of the previous request that the request of this step began with, unless it was the first one to
        /// this model since the conversation was opened.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept_prefix: Option<KeptPrefix>,
    },
    /// A step ended with an error; it may be run again.
    #[serde(rename = "step.failed")]
    StepFailed {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The step.
        #[serde(flatten)]
        step: StepRef,
        /// The duration of the step.
        #[serde(flatten, with = "elapsed")]
        duration: Duration,
        /// The code of the error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<ErrorCode>,
        /// The message of the error.
        error_message: String,
    },
    /// A request to the model failed, and the model sends it again in the same step.
    #[serde(rename = "model.retried")]
    ModelRetried {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The step.
        #[serde(flatten)]
        step: StepRef,
        /// The reason of the failure.
        reason: String,
        /// The time that the model waits before it sends the request again.
        #[serde(with = "millis")]
        wait: Duration,
    },
    /// A request to a model begins with less than 80 per cent of the previous one: the provider's cache keeps no more.
    // CACHE-01
    #[serde(rename = "model.prefixBroken")]
    ModelPrefixBroken {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The step.
        #[serde(flatten)]
        step: StepRef,
        /// The part that is kept, and the change after it.
        #[serde(flatten)]
        prefix: KeptPrefix,
    },
    /// The handler of a tool is about to run.
    #[serde(rename = "tool.called")]
    ToolCalled {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The call.
        #[serde(flatten)]
        call: ToolCallRef,
        /// The call as it is presented to people.
        #[serde(default)]
        presentation: Presentation,
    },
    /// A tool call has a result, which can be an error for the model to read.
    #[serde(rename = "tool.completed")]
    ToolCompleted {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The call.
        #[serde(flatten)]
        call: ToolCallRef,
        /// The kind of the result: a value or an error.
        status: ToolCallStatus,
        /// The duration of the call.
        #[serde(flatten, with = "elapsed")]
        duration: Duration,
        /// The text that the model reads instead of an output, when the result is an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
        /// The extension that has prepared the reply, if no handler ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prepared_by: Option<ExtensionName>,
        /// The call and its outcome as they are presented to people.
        #[serde(default)]
        presentation: Presentation,
    },
    /// A tool call has no result of its handler, because something around the handler failed, such as a middleware.
    #[serde(rename = "tool.failed")]
    ToolFailed {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The call.
        #[serde(flatten)]
        call: ToolCallRef,
        /// The duration of the call.
        #[serde(flatten, with = "elapsed")]
        duration: Duration,
        /// The code of the error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<ErrorCode>,
        /// The message of the error.
        error_message: String,
        /// The call and its outcome as they are presented to people.
        #[serde(default)]
        presentation: Presentation,
    },
    /// An extension asked a model by a request. The span has the span of the turn, step or tool call as its parent.
    #[serde(rename = "model.asked")]
    ModelAsked {
        /// When and where it happened.
        #[serde(flatten)]
        scope: EventScope,
        /// The extension.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extension_name: Option<ExtensionName>,
        /// The name by which it asked; `None` is the agent's own model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_name: Option<ModelName>,
        /// The model that answered, if its provider reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The duration of the request.
        #[serde(flatten, with = "elapsed")]
        duration: Duration,
        /// The tokens that the model used, if it reports them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token_usage: Option<TokenUsage>,
        /// The message of the error, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    },
    /// A layer failed, and the run went on without it, because the extension's failures are skipped (`onError: skip`).
    // FAIL-01
    #[serde(rename = "extension.skipped")]
    ExtensionSkipped {
        /// When and where it happened: the turn, step or tool call that the layer is around.
        #[serde(flatten)]
        scope: EventScope,
        /// The extension.
        extension_name: ExtensionName,
        /// The layer, as errors name it, such as ``step middleware `trim` ``.
        part: String,
        /// Whether the layer failed after its `next` had ended, and not before it ran.
        after_next: bool,
        /// The code of the failure.
        error_code: ErrorCode,
        /// The message of the error.
        error_message: String,
    },
}

impl RuntimeEvent {
    /// Returns the name of the bus event, which is also the `type` in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TurnStarted { .. } => "turn.started",
            Self::TurnResumed { .. } => "turn.resumed",
            Self::InputJoined { .. } => "input.joined",
            Self::TurnSuspended { .. } => "turn.suspended",
            Self::TurnCompleted { .. } => "turn.completed",
            Self::TurnFailed { .. } => "turn.failed",
            Self::StepStarted { .. } => "step.started",
            Self::StepCompleted { .. } => "step.completed",
            Self::StepFailed { .. } => "step.failed",
            Self::ModelRetried { .. } => "model.retried",
            Self::ModelPrefixBroken { .. } => "model.prefixBroken",
            Self::ToolCalled { .. } => "tool.called",
            Self::ToolCompleted { .. } => "tool.completed",
            Self::ToolFailed { .. } => "tool.failed",
            Self::ModelAsked { .. } => "model.asked",
            Self::ExtensionSkipped { .. } => "extension.skipped",
        }
    }

    /// Returns when and where it happened.
    pub fn scope(&self) -> &EventScope {
        match self {
            Self::TurnStarted { scope }
            | Self::TurnResumed { scope, .. }
            | Self::InputJoined { scope, .. }
            | Self::TurnSuspended { scope, .. }
            | Self::TurnCompleted { scope, .. }
            | Self::TurnFailed { scope, .. }
            | Self::StepStarted { scope, .. }
            | Self::StepCompleted { scope, .. }
            | Self::StepFailed { scope, .. }
            | Self::ModelRetried { scope, .. }
            | Self::ModelPrefixBroken { scope, .. }
            | Self::ToolCalled { scope, .. }
            | Self::ToolCompleted { scope, .. }
            | Self::ToolFailed { scope, .. }
            | Self::ModelAsked { scope, .. }
            | Self::ExtensionSkipped { scope, .. } => scope,
        }
    }
}
