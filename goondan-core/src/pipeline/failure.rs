//! Owns the failure of `next`, and the drafts by which a middleware recovers from it.

use std::fmt;
use std::marker::PhantomData;

use serde_json::Value;

use super::{Kind, ToolError};
use crate::error::Error;

/// What [`Next::catch`](super::Next::catch) gives when an inner layer or the core failed. `?` passes it on unchanged;
/// [`Failure::recover`] makes a result in its place.
pub struct Failure<K> {
    error: Error,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Failure<K> {
    pub(super) fn new(error: Error) -> Self {
        Self { error, kind: PhantomData }
    }

    /// What went wrong.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// What went wrong, to pass it on in another form.
    pub fn into_error(self) -> Error {
        self.error
    }

    /// Makes a result in the place of the one that failed (LEGACY-POINTS-05).
    ///
    /// ```
    /// use goondan_core::{Next, Result, ToolCall, ToolCallContext, ToolCallDraft, ToolCallResult};
    ///
    /// async fn lenient(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
    ///     match next.catch(ctx).await {
    ///         Ok(result) => Ok(result),
    ///         Err(failure) => Ok(failure.recover(ctx, ToolCallDraft::output("nothing found"))),
    ///     }
    /// }
    /// ```
    pub fn recover(self, ctx: &K::Context<'_>, draft: K::Draft) -> K::Output {
        K::recover(self, draft, ctx)
    }
}

impl<K> From<Failure<K>> for Error {
    fn from(failure: Failure<K>) -> Self {
        failure.error
    }
}

impl<K: Kind> fmt::Debug for Failure<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// What a turn middleware answers with when the turn failed.
#[derive(Clone, Debug)]
pub struct TurnDraft {
    pub(super) text: String,
}

impl TurnDraft {
    /// An answer in the place of the model's. It is not added to the conversation; emit an append for that.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

/// What a step middleware goes on with when the step failed.
#[derive(Clone, Debug)]
pub struct StepDraft {
    pub(super) run_another: bool,
}

impl StepDraft {
    /// The turn ends after this step.
    pub fn stop() -> Self {
        Self { run_another: false }
    }

    /// The turn goes on with another step.
    pub fn run_another() -> Self {
        Self { run_another: true }
    }
}

/// What a tool-call middleware answers with when the call failed.
#[derive(Clone, Debug)]
pub struct ToolCallDraft {
    pub(super) outcome: Result<Value, ToolError>,
}

impl ToolCallDraft {
    /// An answer in the place of the tool's.
    pub fn output(output: impl Into<Value>) -> Self {
        Self { outcome: Ok(output.into()) }
    }

    /// An error for the model to read.
    pub fn error(error: impl Into<ToolError>) -> Self {
        Self { outcome: Err(error.into()) }
    }
}
