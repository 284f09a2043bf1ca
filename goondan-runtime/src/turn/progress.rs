//! The progress of a tool call: told to what watches the turn and on the bus, and never stored.

use std::time::Duration;

use goondan_core::host::secret::mask;
use goondan_core::{ToolCallId, ToolName, ToolProgress};
use goondan_lock::Lock;
use tokio::time::Instant;

use super::report::Reporter;

/// The least time between two updates that are told of one call: at most 20 a second.
const INTERVAL: Duration = Duration::from_millis(50);

/// When the progress of one call was last told.
#[derive(Default)]
pub(super) struct ProgressLimit(Lock<Option<Instant>>);

impl ProgressLimit {
    /// Tells how far the call is, unless there is no receiver or the previous update was told just now.
    pub(super) fn tell(
        &self,
        reporter: &Reporter<'_>,
        call: &ToolCallId,
        tool: &ToolName,
        done: f64,
        total: Option<f64>,
        text: &str,
    ) {
        let on_bus = reporter.has_subscription(ToolProgress::NAME);
        let watch = reporter.streams();
        if !(on_bus || watch.is_some()) || !done.is_finite() || !self.admits() {
            return;
        }
        let mut progress = ToolProgress::new(call.clone(), tool.clone(), done, mask(text));
        progress.total = total.filter(|total| total.is_finite());
        if on_bus {
            reporter.emit(ToolProgress::NAME, &progress);
        }
        if let Some(watch) = watch {
            watch.progress(progress);
        }
    }

    fn admits(&self) -> bool {
        let now = Instant::now();
        let mut told = self.0.lock();
        let admitted = told.is_none_or(|told| now - told >= INTERVAL);
        if admitted {
            *told = Some(now);
        }
        admitted
    }
}
