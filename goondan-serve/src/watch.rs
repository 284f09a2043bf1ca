//! The log of a turn as server-sent events.
// SERVE-01

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, unfold};
use goondan_core::EventId;
use goondan_core::host::secret::mask;

use crate::log::{End, Entry, Log};
use crate::problem::{Problem, Result};

/// The time without an event after which a comment is sent, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Makes events of the log of a turn.
pub(crate) trait Frames: Send + 'static {
    /// Returns the events of an update.
    fn update(&mut self, entry: &Entry) -> Vec<Event>;

    /// Returns the events of the end.
    fn end(&mut self, end: &End) -> Vec<Event>;
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
        events: VecDeque<Event>,
        is_over: bool,
        _held: H,
    }
    let changes = log.changes();
    let watcher = Watcher { log, changes, next: from, frames, events: VecDeque::new(), is_over: false, _held: held };
    let events = unfold(watcher, |mut watcher| async move {
        loop {
            if let Some(event) = watcher.events.pop_front() {
                return Some((Ok::<_, Infallible>(event), watcher));
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
            } else if read.entries.is_empty() && watcher.changes.changed().await.is_err() {
                return None;
            }
        }
    });
    self::events(events)
}

/// Returns a response that streams events.
pub(crate) fn events(events: impl Stream<Item = std::result::Result<Event, Infallible>> + Send + 'static) -> Response {
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    // nginx would hold the events back.
    response.headers_mut().insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Returns an event with this JSON. Secrets in it are masked, as they are on a terminal.
// MASK-01
pub(crate) fn event_of(json: &str) -> Event {
    Event::default().data(mask(json))
}

/// The places in the log of a turn, as the ids of events.
pub(crate) struct Places {
    /// What comes before the number. `None` for a turn whose id has no place in a line.
    before: Option<String>,
}

impl Places {
    pub(crate) fn new(turn: &EventId, epoch: u32) -> Self {
        let is_line = !turn.as_str().contains(['\n', '\r', '\0']);
        Self { before: is_line.then(|| format!("{turn}:{epoch:x}:")) }
    }

    /// Adds a place to an event.
    pub(crate) fn add(&self, event: Event, number: u64) -> Event {
        match &self.before {
            Some(before) => event.id(format!("{before}{number}")),
            None => event,
        }
    }
}

/// The events of the native interface: an update each, as `goondan-wire` has it.
pub(crate) struct Native {
    event: EventId,
    epoch: u32,
    /// The number of updates in the log.
    length: u64,
    places: Places,
}

impl Native {
    pub(crate) fn new(event: &EventId, log: &Log) -> Self {
        let (epoch, length) = (log.epoch(), log.length());
        Self { event: event.clone(), epoch, length, places: Places::new(event, epoch) }
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
    fn update(&mut self, entry: &Entry) -> Vec<Event> {
        vec![self.places.add(event_of(&entry.json), entry.number)]
    }

    fn end(&mut self, end: &End) -> Vec<Event> {
        match end {
            End::Turn(_) | End::Refused(_) => Vec::new(),
            End::Handover => vec![Event::default().event("handover").data("{}")],
        }
    }
}
