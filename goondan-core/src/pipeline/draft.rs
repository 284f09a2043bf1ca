//! The drafts of results, with which a middleware recovers from a failure of `next`.

use super::{StepContext, StepResult, ToolCallContext, ToolCallResult, ToolError, TurnContext, TurnResult};
use crate::error::Error;
use crate::tool::ToolReply;

/// The result with which a turn middleware replaces a failed turn; see
/// [`Failure::recover`](super::Failure::recover).
#[derive(Clone, Debug)]
pub struct TurnDraft {
    text: String,
}

impl TurnDraft {
    /// The turn ends with the answer `text`. It is not added to the conversation; emit a
    /// [`MessageEvent::append`](crate::MessageEvent::append) for that.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Returns the result of a run that failed with `error`.
    pub(super) fn recovered(self, error: Error, ctx: &TurnContext<'_>) -> TurnResult {
        TurnResult::recovered(error, self.text, ctx.turn_id().clone())
    }
}

/// The result with which a step middleware replaces a failed step; see
/// [`Failure::recover`](super::Failure::recover).
#[derive(Clone, Debug)]
pub struct StepDraft {
    run_another: bool,
}

impl StepDraft {
    /// The turn ends after this step.
    pub fn stop() -> Self {
        Self { run_another: false }
    }

    /// The turn continues with another step.
    pub fn run_another() -> Self {
        Self { run_another: true }
    }

    /// Returns the result of a run that failed with `error`.
    pub(super) fn recovered(self, error: Error, _: &StepContext<'_>) -> StepResult {
        StepResult::recovered(&error, self.run_another)
    }
}

/// The result with which a tool-call middleware replaces a failed call; see
/// [`Failure::recover`](super::Failure::recover).
#[derive(Clone, Debug)]
pub struct ToolCallDraft {
    outcome: Result<ToolReply, ToolError>,
}

impl ToolCallDraft {
    /// The call ends with `output`, a JSON value or a [`ToolReply`], as if the tool had returned it; one that is nested
    /// too deeply becomes the error `E_VALUE_DEPTH`.
    pub fn output(output: impl Into<ToolReply>) -> Self {
        Self { outcome: output.into().checked().map_err(ToolError::from) }
    }

    /// The call ends with `error`, which the model reads.
    pub fn error(error: impl Into<ToolError>) -> Self {
        Self { outcome: Err(error.into()) }
    }

    /// Returns the result of a call that failed.
    pub(super) fn recovered(self, _: Error, ctx: &ToolCallContext<'_>) -> ToolCallResult {
        ToolCallResult::recovered(ctx.call_id().clone(), ctx.tool_name().to_owned(), self.outcome)
    }
}
