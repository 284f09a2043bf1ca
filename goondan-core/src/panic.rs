//! The border around the code of extensions: catches panics while it runs, while its values are dropped, and while the
//! payload of a panic is dropped.
//!
//! The values that extensions return and capture are dropped inside of this border too, because their `Drop` is foreign
//! code. One case is beyond it: a value that panics in its `drop` while another panic unwinds through its owner. Then
//! Rust aborts the process.

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// Runs `work`, and returns its value or the message of its panic.
///
/// Unwind safety is asserted: all that `work` borrowed is dropped together with the call that failed, is guarded by a
/// lock, or belongs to the turn, whose invariants hold after every single call.
///
/// # Errors
/// The message of the panic.
pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(message)
}

/// Runs `work` like [`catch`], but lets a panic pass on if `passes` returns true.
///
/// # Errors
/// The message of the panic.
pub(crate) fn catch_unless<T>(work: impl FnOnce() -> T, passes: impl FnOnce() -> bool) -> Result<T, String> {
    let caught = catch_unwind(AssertUnwindSafe(work));
    caught.map_err(|payload| if passes() { std::panic::resume_unwind(payload) } else { message(payload) })
}

/// Returns the message of a panic, and drops its payload.
pub fn message(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned());
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // The payload's `drop` panicked. The payload of that panic may do the same, so it is leaked.
        std::mem::forget(another);
    }
    text
}

/// Runs `drop`, which drops values of the extension `owner`. A panic is logged: nothing waits for a result.
#[cold]
pub fn drop_guarded(owner: impl Display, drop: impl FnOnce()) {
    if let Err(text) = catch(drop) {
        // The subscriber itself may panic.
        let _ = catch(|| tracing::error!(extension = %owner, "a value panicked when it was dropped: {text}"));
    }
}

pin_project! {
    /// A future of the extension `owner`, which may be dropped at any time: a panic in its drop is logged.
    ///
    /// A future that is ready is dropped within its last poll. If that panics, the poll does, so that the caller is
    /// told.
    pub(crate) struct Guarded<O: Display, F> {
        owner: O,
        // `None` once it was ready.
        #[pin]
        future: Option<F>,
    }

    impl<O: Display, F> PinnedDrop for Guarded<O, F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.future.is_some() {
                drop_guarded(this.owner, || this.future.set(None));
            }
        }
    }
}

impl<O: Display, F> Guarded<O, F> {
    #[inline]
    pub(crate) fn new(owner: O, future: F) -> Self {
        Self { owner, future: Some(future) }
    }
}

impl<O: Display, F: Future> Future for Guarded<O, F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let polled = this.future.as_mut().as_pin_mut().map_or(Poll::Pending, |future| future.poll(cx));
        if polled.is_ready() {
            this.future.set(None);
        }
        polled
    }
}

pin_project! {
    /// The future that [`catch_panics`] returns.
    pub struct CatchPanics<O: Display, F> {
        #[pin]
        future: Guarded<O, F>,
    }
}

/// Returns a future that runs `future`, which is code of the extension `owner`, and returns its output or the message
/// of a panic. Functions of the extension must be called by `future` when it is polled, because they may panic too.
// Not an `async fn`, which would store the future twice: as it was passed, and as it is pinned.
#[inline]
pub fn catch_panics<O: Display, F: Future>(owner: O, future: F) -> CatchPanics<O, F> {
    CatchPanics { future: Guarded::new(owner, future) }
}

impl<O: Display, F: Future> Future for CatchPanics<O, F> {
    type Output = Result<F::Output, String>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match catch(|| self.project().future.poll(cx)) {
            Ok(polled) => polled.map(Ok),
            Err(text) => Poll::Ready(Err(text)),
        }
    }
}
