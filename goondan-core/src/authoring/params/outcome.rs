//! Owns what functions of an extension may return.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use serde_json::Value;

use super::{IntoError, ToJson};
use crate::error::{Error, Result};

/// What a handler returns: a `Result` with the output of its kind, and any error that `?` turns into a goondan error.
#[diagnostic::on_unimplemented(
    message = "this function returns `{Self}`, not `Result<{T}>`",
    label = "must return `Result<{T}>`",
    note = "any error type that converts into `goondan::Error` will do"
)]
pub trait Outcome<T> {
    /// The result with its error converted.
    ///
    /// # Errors
    /// The error of the handler.
    fn into_result(self) -> Result<T>;
}

impl<T, E: IntoError> Outcome<T> for Result<T, E> {
    fn into_result(self) -> Result<T> {
        self.map_err(Into::into)
    }
}

pin_project! {
    /// A handler that runs.
    #[doc(hidden)]
    pub struct Running<T, F> {
        #[pin]
        handler: F,
        output: PhantomData<fn() -> T>,
    }
}

/// The outcome of a handler that has been called.
// Not an `async` block, which would hold the handler twice: as it came, and as it is awaited. Every layer is such a future,
// and small ones are cheaper to allocate.
#[doc(hidden)]
pub fn outcome<T, F>(handler: F) -> Running<T, F> {
    Running { handler, output: PhantomData }
}

impl<T, F: Future<Output: Outcome<T>>> Future for Running<T, F> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        self.project().handler.poll(cx).map(Outcome::into_result)
    }
}

/// What a tool returns: a `Result` with an output that can be written as JSON, and any error that `?` turns into a
/// goondan error.
#[diagnostic::on_unimplemented(
    message = "this tool returns `{Self}`, not a `Result` whose value can be written as JSON",
    label = "must return `Result<T>`, where `T` derives `serde::Serialize`",
    note = "any error type that converts into `goondan::Error` will do"
)]
pub trait ToolOutcome {
    /// The output as JSON.
    ///
    /// # Errors
    /// The error of the tool, or that of writing its output.
    fn into_json(self) -> Result<Value>;
}

impl<T: ToJson, E: IntoError> ToolOutcome for Result<T, E> {
    fn into_json(self) -> Result<Value> {
        let output = self.map_err(Into::into)?;
        serde_json::to_value(output)
            .map_err(|error| Error::msg(format!("the output of the tool cannot be written as JSON: {error}")))
    }
}

/// What a function returns that has nothing to give: nothing, or a `Result` with nothing.
#[diagnostic::on_unimplemented(
    message = "this function returns `{Self}`, and nobody would get it",
    label = "must return `()` or `Result<()>`"
)]
pub trait Done {
    /// The result with its error converted.
    ///
    /// # Errors
    /// The error of the function.
    fn into_result(self) -> Result<()>;
}

impl Done for () {
    fn into_result(self) -> Result<()> {
        Ok(())
    }
}

impl<E: IntoError> Done for Result<(), E> {
    fn into_result(self) -> Result<()> {
        self.map_err(Into::into)
    }
}

/// What `#[init]` of an `impl` block returns: the extension, or a `Result` with it.
#[diagnostic::on_unimplemented(
    message = "`#[init]` returns `{Self}`, not the extension",
    label = "must return `Self` or `Result<Self>`"
)]
pub trait Made<T> {
    /// The result with its error converted.
    ///
    /// # Errors
    /// The error of the initializer.
    fn into_result(self) -> Result<T>;
}

impl<T> Made<T> for T {
    fn into_result(self) -> Result<T> {
        Ok(self)
    }
}

impl<T, E: IntoError> Made<T> for Result<T, E> {
    fn into_result(self) -> Result<T> {
        self.map_err(Into::into)
    }
}
