//! The host's tokio runtime around code that a library polls. A library may poll on a thread of its own runtime, where
//! tokio of the host finds no runtime for its timers and tasks.

use std::cell::Cell;

use tokio::runtime::{EnterGuard, Handle};

use crate::future::PollScope;

thread_local! {
    /// Whether the host is polling a library on this thread. Then everything that the library calls back is already
    /// inside of the host's runtime.
    static POLLING: Cell<bool> = const { Cell::new(false) };
}

/// Enters the host's runtime, if the host has one.
pub(super) struct HostScope<'a>(pub(super) Option<&'a Handle>);

impl<'a> PollScope for HostScope<'a> {
    type Guard = Option<EnterGuard<'a>>;

    fn enter(&self) -> Self::Guard {
        if POLLING.get() { None } else { self.0.map(Handle::enter) }
    }
}

/// Marks the thread while the host polls a future of a library.
pub(super) struct PollingScope;

/// Restores the previous mark when it is dropped.
pub(super) struct PollingGuard(bool);

impl PollScope for PollingScope {
    type Guard = PollingGuard;

    fn enter(&self) -> PollingGuard {
        PollingGuard(POLLING.replace(true))
    }
}

impl Drop for PollingGuard {
    fn drop(&mut self) {
        POLLING.set(self.0);
    }
}
