//! The progress of a tool call: told to what watches the turn and on the bus, and never stored.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::Duration;

use goondan_core::host::secret::mask;
use goondan_core::{ToolCallId, ToolName, ToolProgress};
use goondan_lock::Lock;
use tokio::time::{Instant, Sleep, sleep_until};

use super::report::Reporter;

/// The least time between two updates that are told of one call: at most 20 a second.
const INTERVAL: Duration = Duration::from_millis(50);

/// How far one call is, and when that was last told.
#[derive(Default)]
pub(super) struct CallProgress(Lock<Limited>);

#[derive(Default)]
struct Limited {
    told: Option<Instant>,
    /// What was said since then, if something was.
    newest: Option<ToolProgress>,
}

impl CallProgress {
    /// Tells how far the call is, unless there is no receiver. If the previous update was told just now, the newest one
    /// is told later by [`CallProgress::telling`].
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
        if limited.told.is_some_and(|told| now - told < INTERVAL) {
            limited.newest = Some(progress);
            return;
        }
        *limited = Limited { told: Some(now), newest: None };
        drop(limited);
        send(reporter, progress);
    }

    /// Runs the handler of the call, and tells meanwhile what is to be told later; the last of it before the call ends.
    pub(super) async fn telling<T>(&self, reporter: &Reporter<'_>, handler: impl Future<Output = T>) -> T {
        let mut handler = pin!(handler);
        // On the heap, because most calls need none.
        let mut timer: Option<Pin<Box<Sleep>>> = None;
        let answer = poll_fn(|cx| {
            if let Poll::Ready(answer) = handler.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
            while let Some(due) = self.due() {
                let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
                if timer.deadline() != due {
                    timer.as_mut().reset(due);
                }
                ready!(timer.as_mut().poll(cx));
                self.tell_newest(reporter);
            }
            Poll::Pending
        })
        .await;
        self.tell_newest(reporter);
        answer
    }

    fn due(&self) -> Option<Instant> {
        let limited = self.0.lock();
        limited.newest.as_ref().and(limited.told).map(|told| told + INTERVAL)
    }

    fn tell_newest(&self, reporter: &Reporter<'_>) {
        let mut limited = self.0.lock();
        let Some(newest) = limited.newest.take() else { return };
        limited.told = Some(Instant::now());
        drop(limited);
        send(reporter, newest);
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
