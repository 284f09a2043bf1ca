//! The return values of an extension's functions.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{IntoError, ToJson};
use crate::error::Result;
use crate::tool::{ToolContext, ToolReply};
use pin_project_lite::pin_project;

/// The return type of a handler: a `Result` with the output of its kind, and an error that converts into a goondan
/// error.
#[diagnostic::on_unimplemented(
    message = "this function returns `{Self}`, not `Result<{T}>`",
    label = "must return `Result<{T}>`",
    note = "any error type that converts into `goondan::Error` will do"
)]
pub trait IntoResult<T> {
    /// Returns the result with its error converted.
    ///
    /// # Errors
    /// The error of the handler.
    fn into_result(self) -> Result<T>;
}

impl<T, E: IntoError> IntoResult<T> for Result<T, E> {
    fn into_result(self) -> Result<T> {
        self.map_err(Into::into)
    }
}

pin_project! {
    /// The future of a handler, with its output converted.
    #[doc(hidden)]
    pub struct HandlerFuture<T, F> {
        #[pin]
        handler: F,
        output: PhantomData<fn() -> T>,
    }
}

/// Returns the future of a handler that was called, with its output converted.
// Not an `async` block, which would store the handler twice: as it is captured, and as it is awaited. Every layer boxes
// such a future, and small ones are cheaper to allocate.
#[doc(hidden)]
pub fn handler_future<T, F>(handler: F) -> HandlerFuture<T, F> {
    HandlerFuture { handler, output: PhantomData }
}

impl<T, F: Future<Output: IntoResult<T>>> Future for HandlerFuture<T, F> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        self.project().handler.poll(cx).map(IntoResult::into_result)
    }
}

/// The return type of a tool: a `Result` with a JSON output or a [`ToolReply`], and an error that converts into a
/// goondan error.
#[diagnostic::on_unimplemented(
    message = "this tool returns `{Self}`, not a `Result` whose value can be written as JSON",
    label = "must return `Result<T>`, where `T` derives `serde::Serialize` or is `ToolReply`",
    note = "any error type that converts into `goondan::Error` will do"
)]
pub trait IntoToolOutput {
    /// Returns the output as a reply. With a context, of an output that is too large for it no copy is made.
    ///
    /// # Errors
    /// The error of the tool, or of writing its output.
    fn into_reply(self, ctx: Option<&ToolContext<'_>>) -> Result<ToolReply>;
}

impl<T: ToJson, E: IntoError> IntoToolOutput for Result<T, E> {
    fn into_reply(self, ctx: Option<&ToolContext<'_>>) -> Result<ToolReply> {
        let output = self.map_err(Into::into)?;
        let Some(ctx) = ctx else { return ToolReply::json(output) };
        let small = ToolReply::small_json(&output).transpose();
        let reply = small.unwrap_or_else(|| ctx.with_reply_limit(|limit| limit.json(&output)));
        reply.map_err(|error| error.of_output(output))
    }
}

#[diagnostic::do_not_recommend]
impl<E: IntoError> IntoToolOutput for Result<ToolReply, E> {
    fn into_reply(self, _: Option<&ToolContext<'_>>) -> Result<ToolReply> {
        self.map_err(Into::into)
    }
}

/// The return type of a function without an output: `()`, or a `Result` with it.
#[diagnostic::on_unimplemented(
    message = "this function returns `{Self}`, which would be discarded",
    label = "must return `()` or `Result<()>`"
)]
pub trait IntoUnit {
    /// Returns the result with its error converted.
    ///
    /// # Errors
    /// The error of the function.
    fn into_result(self) -> Result<()>;
}

impl IntoUnit for () {
    fn into_result(self) -> Result<()> {
        Ok(())
    }
}

impl<E: IntoError> IntoUnit for Result<(), E> {
    fn into_result(self) -> Result<()> {
        self.map_err(Into::into)
    }
}

/// The return type of `#[init]` of an `impl` block: the extension, or a `Result` with it.
#[diagnostic::on_unimplemented(
    message = "`#[init]` returns `{Self}`, not the extension",
    label = "must return `Self` or `Result<Self>`"
)]
pub trait IntoExtension<T> {
    /// Returns the result with its error converted.
    ///
    /// # Errors
    /// The error of `#[init]`.
    fn into_result(self) -> Result<T>;
}

impl<T> IntoExtension<T> for T {
    fn into_result(self) -> Result<T> {
        Ok(self)
    }
}

impl<T, E: IntoError> IntoExtension<T> for Result<T, E> {
    fn into_result(self) -> Result<T> {
        self.map_err(Into::into)
    }
}
