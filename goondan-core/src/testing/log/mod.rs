//! Owns the log of a test: the lines that its thread writes while a chat lives.
//!
//! It is a subscriber of `tracing` for one thread, so that tests beside it are not disturbed.

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

/// The lines from one moment on.
pub(crate) struct Log {
    thread: Rc<ThreadLog>,
    start: usize,
}

/// What one thread logs. The chats of a thread share it: subscribers of their own would have to go in the opposite order
/// in which they came.
struct ThreadLog {
    lines: Arc<Lines>,
    _installed: DefaultGuard,
}

thread_local! {
    static CURRENT: RefCell<Weak<ThreadLog>> = const { RefCell::new(Weak::new()) };
}

impl Log {
    /// Keeps what this thread logs from now on.
    pub(crate) fn keep() -> Self {
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
        // The chat goes away because an assertion failed: the log may say why.
        if std::thread::panicking() {
            for line in self.lines.since(0) {
                eprintln!("{line:?}");
            }
        }
    }
}
