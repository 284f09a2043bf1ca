//! The failure of `next`, and the drafts with which a middleware recovers from it.

use std::fmt;
use std::marker::PhantomData;

use super::{Kind, ToolError};
use crate::error::Error;
use crate::tool::ToolReply;

/// The failure of an inner layer or of the core, returned by [`Next::catch`](super::Next::catch).
///
/// `?` passes it on unchanged. [`Failure::recover`] turns it into a result, which is the only way for a middleware to
/// return a result after `next` failed.
pub struct Failure<K> {
    error: Error,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Failure<K> {
    pub(super) fn new(error: Error) -> Self {
        Self { error, kind: PhantomData }
    }

    /// Returns the error.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Returns the error by value, for example to return it with more context.
    pub fn into_error(self) -> Error {
        self.error
    }

    /// Returns a result that replaces the failure, with the content of `draft`.
    ///
    /// ```
    /// use goondan::Result;
    /// use goondan::middleware::{Next, ToolCall, ToolCallContext, ToolCallDraft, ToolCallResult};
    ///
    /// async fn lenient(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
    ///     match next.catch(ctx).await {
    ///         Ok(result) => Ok(result),
    ///         Err(failure) => Ok(failure.recover(ctx, ToolCallDraft::output("nothing found"))),
    ///     }
    /// }
    /// ```
    // LEGACY-POINTS-05
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

/// The result with which a turn middleware replaces a failed turn; see [`Failure::recover`].
#[derive(Clone, Debug)]
pub struct TurnDraft {
    pub(super) text: String,
}

impl TurnDraft {
    /// The turn ends with the answer `text`. It is not added to the conversation; emit a
    /// [`MessageEvent::append`](crate::MessageEvent::append) for that.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

/// The result with which a step middleware replaces a failed step; see [`Failure::recover`].
#[derive(Clone, Debug)]
pub struct StepDraft {
    pub(super) run_another: bool,
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
}

/// The result with which a tool-call middleware replaces a failed call; see [`Failure::recover`].
#[derive(Clone, Debug)]
pub struct ToolCallDraft {
    pub(super) outcome: Result<ToolReply, ToolError>,
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
}
