//! Owns the runtime of a library. A library has its own copy of tokio, which knows nothing of the host's runtime: without
//! one of its own, a timer or a task of the library would have nowhere to run.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, EnterGuard, Runtime};

use crate::future::Around;

/// With one worker, a task that blocks would hold up the timers of all others.
const WORKERS: usize = 2;

/// Started by the first call into the library, shared by all of its extensions, and stopped when the host has let go of the
/// last of them: a library that was replaced keeps neither threads nor files. Null while it is not needed.
static RUNTIME: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());

/// How many users there are. The runtime starts and stops under this lock.
static USERS: Mutex<usize> = Mutex::new(0);

/// Keeps the runtime running: an extension, its handle, or something that it registered. With the last one, tasks that
/// extensions have left behind end.
pub(super) struct User(());

impl User {
    pub(super) fn new() -> Self {
        *USERS.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Self(())
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        *users -= 1;
        if *users > 0 {
            return;
        }
        let runtime = RUNTIME.swap(ptr::null_mut(), Ordering::AcqRel);
        drop(users);
        if !runtime.is_null() {
            // SAFETY: It is a box of `start`, and was taken out of the one place that has it. Nobody is inside: whoever
            // enters has a user, and there is none.
            let runtime = unsafe { Box::from_raw(runtime) };
            // Not waited for: this may be one of its own threads.
            runtime.shutdown_background();
        }
    }
}

/// # Panics
/// When the system has no threads left for the runtime; the panic stops at the border of the extension.
#[expect(clippy::expect_used, reason = "see above")]
#[cold]
fn start() -> *mut Runtime {
    let _users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    let running = RUNTIME.load(Ordering::Acquire);
    if !running.is_null() {
        return running;
    }
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(WORKERS).thread_name("goondan-library").enable_all();
    let runtime = builder.build().expect("the runtime of the library could not be started");
    let runtime = Box::into_raw(Box::new(runtime));
    RUNTIME.store(runtime, Ordering::Release);
    runtime
}

thread_local! {
    /// Whether the runtime is entered on this thread: a layer inside of a layer of this library need not do it again.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Inside of the runtime. Whoever enters has a [`User`] until it has left.
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

    fn enter(&self) -> Option<Inside> {
        if INSIDE.get() {
            return None;
        }
        let running = RUNTIME.load(Ordering::Acquire);
        let running = if running.is_null() { start() } else { running };
        // SAFETY: It runs until the last user is gone, and the one of whoever enters is there until the guard is not.
        let runtime: &'static Runtime = unsafe { &*running };
        let inside = Inside(runtime.enter());
        INSIDE.set(true);
        Some(inside)
    }
}

/// The same for a future that nothing else keeps the runtime running for.
pub(super) struct AsUser(pub(super) User);

impl Around for AsUser {
    type Guard = Option<Inside>;

    fn enter(&self) -> Option<Inside> {
        InRuntime.enter()
    }
}
