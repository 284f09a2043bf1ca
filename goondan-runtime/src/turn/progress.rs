//! The progress of a tool call: told to the watchers of the turn and on the bus, and never stored.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use goondan_core::host::secret::mask;
use goondan_core::{ToolCallId, ToolName, ToolProgress};
use goondan_lock::Lock;
use tokio::time::{Instant, Sleep, sleep_until};

use super::report::Reporter;

/// The least time between two updates that are told of one call: at most 20 a second.
const INTERVAL: Duration = Duration::from_millis(50);

/// The progress of one call, once it has reported it. Small, because each call has one in its future.
#[derive(Default)]
pub(super) struct CallProgress(Lock<Option<Box<Limited>>>);

struct Limited {
    told: Instant,
    /// The newest report since then, if there is one.
    newest: Option<ToolProgress>,
    /// Ends when that is to be told.
    timer: Option<Pin<Box<Sleep>>>,
}

impl CallProgress {
    /// Tells how far the call is, unless there is no receiver. If the previous update was told just now, the newest one
    /// is told later by [`CallProgress::polled`].
    pub(super) fn tell(
        &self,
        reporter: &Reporter<'_>,
        call: &ToolCallId,
        tool: &ToolName,
        done: f64,
        total: Option<f64>,
        text: &str,
    ) {
        let is_told = reporter.has_subscription(ToolProgress::NAME) || reporter.streams().is_some();
        if !is_told || !done.is_finite() {
            return;
        }
        let mut progress = ToolProgress::new(call.clone(), tool.clone(), done, mask(text));
        progress.total = total.filter(|total| total.is_finite());
        let now = Instant::now();
        let mut limited = self.0.lock();
        match &mut *limited {
            Some(limited) if now - limited.told < INTERVAL => {
                limited.newest = Some(progress);
                return;
            }
            Some(limited) => (limited.told, limited.newest) = (now, None),
            None => *limited = Some(Box::new(Limited { told: now, newest: None, timer: None })),
        }
        drop(limited);
        send(reporter, progress);
    }

    /// Tells the due updates now that the handler of the call was polled, and wakes it when something is later. What
    /// was said last is told before the call ends.
    pub(super) fn polled(&self, reporter: &Reporter<'_>, has_ended: bool, cx: &mut Context<'_>) {
        if self.0.lock().as_ref().is_some_and(|limited| limited.newest.is_some()) {
            self.tell_newest(reporter, has_ended, cx);
        }
    }

    #[cold]
    fn tell_newest(&self, reporter: &Reporter<'_>, has_ended: bool, cx: &mut Context<'_>) {
        let mut locked = self.0.lock();
        let Some(limited) = &mut *locked else { return };
        if !has_ended {
            let due = limited.told + INTERVAL;
            let timer = limited.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
            if timer.deadline() != due {
                timer.as_mut().reset(due);
            }
            if timer.as_mut().poll(cx).is_pending() {
                return;
            }
        }
        limited.told = Instant::now();
        let newest = limited.newest.take();
        drop(locked);
        newest.into_iter().for_each(|newest| send(reporter, newest));
    }
}

fn send(reporter: &Reporter<'_>, progress: ToolProgress) {
    if reporter.has_subscription(ToolProgress::NAME) {
        reporter.emit(ToolProgress::NAME, &progress);
    }
    if let Some(watch) = reporter.streams() {
        watch.progress(progress);
    }
}
