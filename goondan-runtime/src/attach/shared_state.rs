//! Changes of shared state, one at a time on each thread.

use std::cell::Cell;

use goondan_core::{Error, ErrorCode, Result};

thread_local! {
    /// Whether this thread is inside of a change.
    static CHANGING: Cell<bool> = const { Cell::new(false) };
}

/// Ends the change of this thread, also when it panics.
struct Changing;

impl Drop for Changing {
    fn drop(&mut self) {
        CHANGING.set(false);
    }
}

/// Makes a change.
///
/// # Errors
/// The error of `change`, and `E_EXT_STATE` inside of another change: it would wait for its own lock, or one of two
/// threads for the other.
// D-42
pub(super) fn alone(change: impl FnOnce() -> Result<()>) -> Result<()> {
    if CHANGING.replace(true) {
        return Err(Error::new(ErrorCode::EXT_STATE, "shared state is being changed by this thread already")
            .suggest("change the value that the outer `update` passes, instead of calling `update` in it"));
    }
    let _changing = Changing;
    change()
}
