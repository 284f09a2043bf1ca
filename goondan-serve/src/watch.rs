//! The log of a turn as server-sent events.
// SERVE-01

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use axum::response::Response;
use futures_util::stream::unfold;
use goondan_core::EventId;

use crate::log::{End, Entry, Log};
use crate::problem::{Problem, Result};
use crate::sse::{self, Event};

/// Makes events of the log of a turn.
pub(crate) trait Frames: Send + 'static {
    /// Returns the events of an update.
    fn update(&mut self, entry: &Entry) -> Vec<Bytes>;

    /// Returns the events of the end.
    fn end(&mut self, end: &End) -> Vec<Bytes>;
}

/// Returns a response that streams the log from the number `from` on, and is complete when the turn is.
pub(crate) fn stream(log: Arc<Log>, from: u64, frames: impl Frames) -> Response {
    stream_with(log, from, frames, ())
}

/// The same, with something that is dropped when the stream ends, or its reader goes away.
pub(crate) fn stream_with(log: Arc<Log>, from: u64, frames: impl Frames, held: impl Send + 'static) -> Response {
    struct Watcher<F, H> {
        log: Arc<Log>,
        changes: tokio::sync::watch::Receiver<()>,
        next: u64,
        frames: F,
        events: VecDeque<Bytes>,
        is_over: bool,
        _held: H,
    }
    let changes = log.changes();
    let watcher = Watcher { log, changes, next: from, frames, events: VecDeque::new(), is_over: false, _held: held };
    let events = unfold(watcher, |mut watcher| async move {
        loop {
            if let Some(event) = watcher.events.pop_front() {
                return Some((event, watcher));
            }
            if watcher.is_over {
                return None;
            }
            watcher.changes.mark_unchanged();
            let read = watcher.log.read(watcher.next);
            for entry in &read.entries {
                watcher.next = entry.number + 1;
                watcher.events.extend(watcher.frames.update(entry));
            }
            if let Some(end) = read.end {
                watcher.events.extend(watcher.frames.end(&end));
                watcher.is_over = true;
            } else if read.entries.is_empty() {
                match sse::within(watcher.changes.changed()).await {
                    Some(Ok(())) => {}
                    Some(Err(_)) => return None,
                    None => return Some((sse::comment(), watcher)),
                }
            }
        }
    });
    sse::response(events)
}

/// The events of the native interface: an update each, as `goondan-wire` has it.
pub(crate) struct Native {
    event: EventId,
    epoch: u32,
    /// The number of updates in the log.
    length: u64,
}

impl Native {
    pub(crate) fn new(event: &EventId, log: &Log) -> Self {
        Self { event: event.clone(), epoch: log.epoch(), length: log.length() }
    }

    /// Returns the number that a reader continues with who has read up to `last`. A place in the log of an earlier
    /// process is none in this one, and the log is read from its beginning; so is it from a place that it does not
    /// have.
    ///
    /// # Errors
    /// 400 for a place in the log of another turn.
    pub(crate) fn after(&self, last: Option<&str>) -> Result<u64> {
        let Some(last) = last.filter(|last| !last.is_empty()) else { return Ok(0) };
        let foreign = || Problem::request("`Last-Event-ID` is a place in the log of another turn");
        let mut parts = last.rsplitn(3, ':');
        let (number, epoch) = (parts.next(), parts.next());
        if parts.next() != Some(self.event.as_str()) {
            return Err(foreign());
        }
        let number: u64 = number.and_then(|number| number.parse().ok()).ok_or_else(foreign)?;
        let epoch = epoch.and_then(|epoch| u32::from_str_radix(epoch, 16).ok()).ok_or_else(foreign)?;
        Ok(if epoch == self.epoch && number < self.length { number + 1 } else { 0 })
    }
}

impl Frames for Native {
    fn update(&mut self, entry: &Entry) -> Vec<Bytes> {
        vec![entry.event.clone()]
    }

    fn end(&mut self, end: &End) -> Vec<Bytes> {
        match end {
            End::Turn(_) | End::Refused(_) => Vec::new(),
            End::Handover => vec![Event::new("{}").field("event", "handover").bytes()],
        }
    }
}
