//! Owns the host's runtime around code that a library polls. A library may poll on a thread of its own, where the host's
//! timers and tasks would have no runtime.

use std::cell::Cell;

use tokio::runtime::{EnterGuard, Handle};

use crate::future::Around;

thread_local! {
    /// Whether the host is polling a library on this thread: then whatever it calls back is inside the runtime already.
    static POLLING: Cell<bool> = const { Cell::new(false) };
}

/// Inside of the host's runtime, if the host has one.
pub(super) struct InHost<'a>(pub(super) Option<&'a Handle>);

impl<'a> Around for InHost<'a> {
    type Guard = Option<EnterGuard<'a>>;

    fn enter(&self) -> Self::Guard {
        if POLLING.get() { None } else { self.0.map(Handle::enter) }
    }
}

/// Around the polls of a library's futures by the host.
pub(super) struct Polling;

/// Takes the mark away, unless it was there before.
pub(super) struct Mark(bool);

impl Around for Polling {
    type Guard = Mark;

    fn enter(&self) -> Mark {
        Mark(POLLING.replace(true))
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        POLLING.set(self.0);
    }
}
