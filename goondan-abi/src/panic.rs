//! Catches panics, so that none unwinds across the ABI.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work` and returns its value, or the message of its panic.
///
/// Unwind safety is asserted: values that `work` borrows are dropped together with the call that failed, or are
/// guarded by a lock.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(message)
}

/// Runs `work`; a panic is logged and returned as `None`. For functions that have no way to report a panic.
pub(crate) fn catch_or_log<T>(what: &str, work: impl FnOnce() -> T) -> Option<T> {
    match catch(work) {
        Ok(value) => Some(value),
        Err(text) => {
            // The subscriber itself may be what panicked, and may panic again.
            let _ = catch(|| tracing::error!(target: "goondan::extension", "{what} panicked: {text}"));
            None
        }
    }
}

/// Returns the message of a panic, and drops its payload.
fn message(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned());
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // The payload's `drop` panicked. The payload of that panic may do the same, so it is leaked.
        std::mem::forget(another);
    }
    text
}
