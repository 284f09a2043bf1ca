//! The tokio runtime of a library. A library has its own copy of tokio, whose thread-locals the host's runtime does
//! not set: without a runtime of the library, its timers and tasks would have none.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use goondan_core::ExtensionName;
use goondan_lock::Lock;
use tokio::runtime::{Builder, EnterGuard, Runtime};

use crate::future::PollScope;

/// Two, because with one worker a task that blocks would delay the timers of all others.
const WORKERS: usize = 2;

/// The runtime, shared by all extensions of the library. It is started by the first call into the library and stopped
/// when the last [`RuntimeRef`] is dropped, so that a library that was replaced keeps neither threads nor open files.
/// Null while it is not running.
static RUNTIME: AtomicPtr<Runtime> = AtomicPtr::new(ptr::null_mut());

/// The number of [`RuntimeRef`]s. The runtime is started and taken out of [`RUNTIME`] while this lock is held.
static REFERENCES: Lock<usize> = Lock::new(0);

/// Keeps the runtime running. An extension, its handle, each of its registered parts and each
/// [`KeepRunning`](super::KeepRunning) own one. Dropping the last one stops the runtime, and with it the tasks that
/// extensions have spawned and not awaited.
pub(super) struct RuntimeRef(());

impl RuntimeRef {
    pub(super) fn new() -> Self {
        *REFERENCES.lock() += 1;
        Self(())
    }
}

impl Drop for RuntimeRef {
    fn drop(&mut self) {
        let mut references = REFERENCES.lock();
        *references -= 1;
        if *references > 0 {
            return;
        }
        let runtime = RUNTIME.swap(ptr::null_mut(), Ordering::AcqRel);
        drop(references);
        if !runtime.is_null() {
            // SAFETY: `start` leaked this box into `RUNTIME`, and `swap` removed the only copy of the pointer. No
            // thread is inside the runtime: code that enters it owns a `RuntimeRef`, and none is left.
            let runtime = unsafe { Box::from_raw(runtime) };
            // Without waiting, because this may run on a thread of the runtime.
            runtime.shutdown_background();
        }
    }
}

/// Starts the runtime, unless another thread has just done so.
///
/// # Panics
/// If the system cannot create the threads of the runtime. The panic is caught within the library and reported to the
/// host.
#[expect(clippy::expect_used, reason = "see above")]
#[cold]
fn start() -> *mut Runtime {
    let _references = REFERENCES.lock();
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
    /// Whether this thread is inside the runtime. Then a layer within a layer of this library need not enter it
    /// again.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Enters the runtime. The caller of `enter` must own a [`RuntimeRef`] until the guard is dropped.
pub(super) struct RuntimeScope;

/// Leaves the runtime when it is dropped.
pub(super) struct Entered(#[expect(dead_code, reason = "it is held for its `drop`")] EnterGuard<'static>);

impl Drop for Entered {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

impl PollScope for RuntimeScope {
    type Guard = Option<Entered>;

    fn enter(&self) -> Option<Entered> {
        if INSIDE.get() {
            return None;
        }
        let running = RUNTIME.load(Ordering::Acquire);
        let running = if running.is_null() { start() } else { running };
        // SAFETY: The runtime is freed when the last `RuntimeRef` is dropped, and the caller owns one for longer than
        // the guard lives.
        let runtime: &'static Runtime = unsafe { &*running };
        let entered = Entered(runtime.enter());
        INSIDE.set(true);
        Some(entered)
    }
}

/// Like [`RuntimeScope`], for a future of an extension.
pub(super) struct ExtensionScope<'a>(pub(super) &'a ExtensionName);

impl PollScope for ExtensionScope<'_> {
    type Guard = Option<Entered>;

    fn enter(&self) -> Option<Entered> {
        RuntimeScope.enter()
    }

    fn owner(&self) -> &str {
        self.0.as_str()
    }
}

/// Like [`ExtensionScope`], for a future that nothing else keeps the runtime running for.
pub(super) struct OwningScope(pub(super) String, pub(super) RuntimeRef);

impl PollScope for OwningScope {
    type Guard = Option<Entered>;

    fn enter(&self) -> Option<Entered> {
        RuntimeScope.enter()
    }

    fn owner(&self) -> &str {
        &self.0
    }
}
