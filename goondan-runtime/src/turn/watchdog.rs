//! The watchdog: a thread that logs a warning for tools whose handlers block the thread that polls them.
//!
//! Such a handler cannot be stopped from outside, and no deadline applies to it: every other task of the thread waits
//! for it. The watchdog is parked until a handler is polled, and parks again when none is. A poll costs two uncontended
//! locks, and reads no clock.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use goondan_core::ToolName;
use goondan_lock::Lock;
use tracing::dispatcher::{self, Dispatch};

/// The time between two checks.
const TICK: Duration = Duration::from_millis(500);
/// A poll that was seen in so many checks is at least a second old.
const CHECKS: u32 = 3;

/// A handler that is being polled.
struct Polled {
    tool: ToolName,
    log: Dispatch,
    span: tracing::Span,
    /// The number of checks that have seen it.
    checks: u32,
}

/// The handlers that one thread is polling: at most one, or several that are nested.
#[derive(Default)]
struct ThreadPolls(Lock<Vec<Polled>>);

static THREADS: Lock<Vec<Weak<ThreadPolls>>> = Lock::new(Vec::new());
static ASLEEP: AtomicBool = AtomicBool::new(false);
/// `None` if the thread could not be spawned: then there are no warnings.
static WATCHDOG: LazyLock<Option<Thread>> = LazyLock::new(|| {
    let thread = thread::Builder::new().name("goondan-watchdog".to_owned());
    thread.spawn(watch).ok().map(|watchdog| watchdog.thread().clone())
});

thread_local! {
    static CURRENT: RefCell<Option<Arc<ThreadPolls>>> = const { RefCell::new(None) };
}

/// Runs `handler`. If a poll of it takes more than a second, a warning is logged.
pub(super) async fn watched<F: Future>(tool: &ToolName, handler: F) -> F::Output {
    let mut handler = pin!(handler);
    poll_fn(|cx| {
        let _polling = Polling::begin(tool);
        handler.as_mut().poll(cx)
    })
    .await
}

/// Guards one poll: the handler is listed until this is dropped.
struct Polling(Option<Arc<ThreadPolls>>);

impl Polling {
    fn begin(tool: &ToolName) -> Self {
        // Fails while the thread's locals are being destroyed.
        let thread = CURRENT.try_with(|polls| Arc::clone(polls.borrow_mut().get_or_insert_with(ThreadPolls::new))).ok();
        if let Some(thread) = &thread {
            let (log, span) = (dispatcher::get_default(Dispatch::clone), tracing::Span::current());
            thread.0.lock().push(Polled { tool: tool.clone(), log, span, checks: 0 });
            wake();
        }
        Self(thread)
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        if let Some(thread) = &self.0 {
            thread.0.lock().pop();
        }
    }
}

impl ThreadPolls {
    fn new() -> Arc<Self> {
        let polls = Arc::<Self>::default();
        THREADS.lock().push(Arc::downgrade(&polls));
        polls
    }
}

fn wake() {
    let Some(watchdog) = &*WATCHDOG else { return };
    if ASLEEP.load(Ordering::Relaxed) && ASLEEP.swap(false, Ordering::Relaxed) {
        watchdog.unpark();
    }
}

fn watch() {
    loop {
        ASLEEP.store(true, Ordering::Relaxed);
        // A poll that begins before this check takes the lock of its thread is found by it. One that begins later finds
        // the flag set, because it takes the same lock after the check did.
        if !check() {
            thread::park();
        }
        ASLEEP.store(false, Ordering::Relaxed);
        thread::sleep(TICK);
        while check() {
            thread::sleep(TICK);
        }
    }
}

/// Checks all threads, and returns whether any of them is polling a handler.
fn check() -> bool {
    let mut threads = THREADS.lock();
    threads.retain(|thread| thread.strong_count() > 0);
    let threads: Vec<_> = threads.iter().filter_map(Weak::upgrade).collect();
    let mut polled = false;
    for thread in threads {
        let late = thread.0.lock().last_mut().and_then(|innermost| {
            polled = true;
            innermost.checks = innermost.checks.saturating_add(1);
            (innermost.checks == CHECKS)
                .then(|| (innermost.tool.clone(), innermost.log.clone(), innermost.span.clone()))
        });
        // Outside of the lock: a subscriber can run arbitrary code.
        if let Some((tool, log, span)) = late {
            dispatcher::with_default(&log, || span.in_scope(|| warn(&tool)));
        }
    }
    polled
}

fn warn(tool: &ToolName) {
    tracing::warn!(
        %tool,
        "the tool `{tool}` has blocked its thread for more than a second, and no deadline can stop it: make it a plain `fn` \
         with `#[tool(blocking)]`, or await what it waits for"
    );
}
