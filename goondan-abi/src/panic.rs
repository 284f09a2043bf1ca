//! Owns the border that panics do not cross.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`; a panic in it becomes what it said.
///
/// Unwind safety is asserted: what `work` had borrowed is dropped with the call that failed, or locks itself.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(text)
}

/// Runs `work` where there is no way to tell of a panic but the log.
pub(crate) fn logged<T>(what: &str, work: impl FnOnce() -> T) -> Option<T> {
    match caught(work) {
        Ok(value) => Some(value),
        Err(text) => {
            // The subscriber may be what panicked.
            let _ = caught(|| tracing::error!(target: "goondan::extension", "{what} panicked: {text}"));
            None
        }
    }
}

/// What a panic said.
fn text(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned());
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // A payload whose drop panics would go on doing so.
        std::mem::forget(another);
    }
    text
}
