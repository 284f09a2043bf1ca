//! Catches panics, so that none unwinds across the ABI. Values of extensions are dropped by
//! [`drop_guarded`](goondan_core::linkage::drop_guarded), which names the extension.

pub(crate) use goondan_core::linkage::{catch, drop_guarded};

/// Runs `work`; a panic is logged and returned as `None`. For functions that have no way to report a panic.
pub(crate) fn catch_or_log<T>(what: &str, work: impl FnOnce() -> T) -> Option<T> {
    match catch(work) {
        Ok(value) => Some(value),
        Err(text) => {
            // The panic may be the subscriber's own, and may panic again.
            let _ = catch(|| tracing::error!(target: "goondan::extension", "{what} panicked: {text}"));
            None
        }
    }
}
