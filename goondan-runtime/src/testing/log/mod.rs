//! The log of a test: the lines that its thread logs while a chat exists.
//!
//! It is a thread-local `tracing` subscriber, so that tests in other threads are not affected.

mod line;
mod subscriber;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use tracing::Dispatch;
use tracing::dispatcher::{self, DefaultGuard};

pub use line::LogLine;
use subscriber::{Lines, Recorder, keep_every_callsite_open};

/// Captures the log lines of this thread from its start on.
pub(crate) struct LogCapture {
    thread: Rc<ThreadLog>,
    start: usize,
}

/// The log lines of one thread. All chats of the thread share it, because thread-local subscribers of `tracing` must be
/// uninstalled in the opposite order of their installation.
struct ThreadLog {
    lines: Arc<Lines>,
    _installed: DefaultGuard,
}

thread_local! {
    static CURRENT: RefCell<Weak<ThreadLog>> = const { RefCell::new(Weak::new()) };
}

impl LogCapture {
    /// Starts to capture.
    pub(crate) fn start() -> Self {
        let thread = CURRENT.with_borrow_mut(|current| {
            current.upgrade().unwrap_or_else(|| {
                let thread = Rc::new(ThreadLog::install());
                *current = Rc::downgrade(&thread);
                thread
            })
        });
        Self { start: thread.lines.len(), thread }
    }

    pub(crate) fn lines(&self) -> Vec<LogLine> {
        self.thread.lines.since(self.start)
    }
}

impl ThreadLog {
    fn install() -> Self {
        keep_every_callsite_open();
        let lines = Arc::default();
        let recorder = Recorder::new(Arc::clone(&lines));
        Self { lines, _installed: dispatcher::set_default(&Dispatch::new(recorder)) }
    }
}

impl Drop for ThreadLog {
    fn drop(&mut self) {
        // An assertion failed: the log may show the reason.
        if std::thread::panicking() {
            for line in self.lines.since(0) {
                eprintln!("{line:?}");
            }
        }
    }
}
