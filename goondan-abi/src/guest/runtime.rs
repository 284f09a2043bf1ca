//! Owns the runtime of a library. A library has its own copy of tokio, which knows nothing of the host's runtime: without
//! one of its own, a timer or a task of the library would have nowhere to run.

use std::cell::Cell;
use std::sync::OnceLock;

use tokio::runtime::{Builder, EnterGuard, Runtime};

use crate::future::Around;

/// With one worker, a task that blocks would hold up the timers of all others.
const WORKERS: usize = 2;

/// Started by the first call into the library, shared by all of its extensions, and never stopped: instances of which
/// nobody here knows may still use it.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

thread_local! {
    /// Whether the runtime is entered on this thread: a layer inside of a layer of this library need not do it again.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Inside of the runtime.
pub(super) struct InRuntime;

/// Leaves the runtime.
pub(super) struct Inside(#[expect(dead_code, reason = "it is held, not read")] EnterGuard<'static>);

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

impl Around for InRuntime {
    type Guard = Option<Inside>;

    /// # Panics
    /// When the system has no threads left for the runtime; the panic stops at the border of the extension.
    #[expect(clippy::expect_used, reason = "see above")]
    fn enter(&self) -> Option<Inside> {
        if INSIDE.get() {
            return None;
        }
        let start = || {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(WORKERS).thread_name("goondan-library").enable_all();
            builder.build().expect("the runtime of the library could not be started")
        };
        let inside = Inside(RUNTIME.get_or_init(start).enter());
        INSIDE.set(true);
        Some(inside)
    }
}
