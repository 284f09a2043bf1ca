//! Turns panics into errors.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use crate::error::{Error, ErrorCode};

/// Runs `future` and returns its output; a panic in it becomes the error `E_EXT_PANIC`.
///
/// Unwind safety is asserted: the data that the future borrowed is either dropped with it or owned by the turn, whose
/// invariants hold after every single call.
pub(crate) async fn catch_panics<F: Future>(future: F) -> Result<F::Output, Error> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panicked(&*panic))),
    })
    .await
}

/// Converts the payload of a panic into an error with its message.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    Error::new(ErrorCode::EXT_PANIC, format!("panicked: {text}"))
}
