//! Owns the watchdog: a thread that names in the log the tools whose handlers hold on to the thread that polls them.
//!
//! Nothing can stop such a handler from outside, and no deadline reaches it: whatever else waits for the thread waits along.
//! The watchdog sleeps until a handler is polled, and again when it finds none: a poll costs two locks that nobody else
//! wants, and no clock is read.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use tracing::dispatcher::{self, Dispatch};

use crate::name::ToolName;

/// How often the watchdog looks.
const TICK: Duration = Duration::from_millis(500);
/// A poll that it has seen so often is at least a second old.
const LOOKS: u32 = 3;

/// A handler that is being polled.
struct Polled {
    tool: ToolName,
    log: Dispatch,
    span: tracing::Span,
    looks: u32,
}

/// The handlers that one thread is polling: one, or one within another.
#[derive(Default)]
struct Place(Mutex<Vec<Polled>>);

static PLACES: Mutex<Vec<Weak<Place>>> = Mutex::new(Vec::new());
static ASLEEP: AtomicBool = AtomicBool::new(false);
/// Without a thread there are no warnings, and all else is the same.
static WATCHDOG: LazyLock<Option<Thread>> = LazyLock::new(|| {
    let thread = thread::Builder::new().name("goondan-watchdog".to_owned());
    thread.spawn(watch).ok().map(|watchdog| watchdog.thread().clone())
});

thread_local! {
    static HERE: RefCell<Option<Arc<Place>>> = const { RefCell::new(None) };
}

/// Runs `handler`, and has a warning logged when a poll of it takes more than a second.
pub(super) async fn watched<F: Future>(tool: &ToolName, handler: F) -> F::Output {
    let mut handler = pin!(handler);
    poll_fn(|cx| {
        let _polling = Polling::begin(tool);
        handler.as_mut().poll(cx)
    })
    .await
}

/// A poll that has not ended.
struct Polling(Option<Arc<Place>>);

impl Polling {
    fn begin(tool: &ToolName) -> Self {
        // A thread that is about to end has no place any more.
        let place = HERE.try_with(|here| Arc::clone(here.borrow_mut().get_or_insert_with(Place::new))).ok();
        if let Some(place) = &place {
            let (log, span) = (dispatcher::get_default(Dispatch::clone), tracing::Span::current());
            lock(&place.0).push(Polled { tool: tool.clone(), log, span, looks: 0 });
            wake();
        }
        Self(place)
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        if let Some(place) = &self.0 {
            lock(&place.0).pop();
        }
    }
}

impl Place {
    fn new() -> Arc<Self> {
        let place = Arc::<Self>::default();
        lock(&PLACES).push(Arc::downgrade(&place));
        place
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
        // Whoever begins a poll before this look is seen by it; whoever does so after it finds the flag, since both hold the
        // lock of the place in between.
        if !look() {
            thread::park();
        }
        ASLEEP.store(false, Ordering::Relaxed);
        thread::sleep(TICK);
        while look() {
            thread::sleep(TICK);
        }
    }
}

/// Looks at all that is being polled, and says whether there is anything.
fn look() -> bool {
    let mut places = lock(&PLACES);
    places.retain(|place| place.strong_count() > 0);
    let places: Vec<_> = places.iter().filter_map(Weak::upgrade).collect();
    let mut polled = false;
    for place in places {
        let late = lock(&place.0).last_mut().and_then(|innermost| {
            polled = true;
            innermost.looks = innermost.looks.saturating_add(1);
            (innermost.looks == LOOKS).then(|| (innermost.tool.clone(), innermost.log.clone(), innermost.span.clone()))
        });
        // Not under the lock: the subscriber is not ours.
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
