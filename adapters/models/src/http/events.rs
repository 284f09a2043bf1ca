//! Reads the events of a response.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::client::Body;
use super::failure::Failure;
use super::limits::{Broken, Clock, Limits};
use super::sse::{Event, Parser};

/// The longest wait for the end of a response after its last event, so that the connection can be used again.
const DRAIN: Duration = Duration::from_millis(250);

/// The longest wait for more events after an answer is complete.
const MORE: Duration = Duration::from_secs(2);

/// The memory of an event beside its bytes, for example in a recording.
const EVENT: usize = 64;

/// The server-sent events of one response, read under limits.
pub struct Events {
    body: Body,
    parser: Parser,
    /// The number of bytes that have arrived, and the most that may arrive.
    received: usize,
    max_bytes: usize,
    /// Has the first limit until the first event.
    clock: Clock,
    /// The limit after that.
    idle: Option<Duration>,
}

impl Events {
    /// Returns the events of `body`, which may have `max_bytes`. `first` is the clock that was started with the
    /// request.
    pub fn new(body: Body, first: Clock, limits: &Limits, max_bytes: usize) -> Self {
        Self { body, parser: Parser::default(), received: 0, max_bytes, clock: first, idle: Some(limits.idle) }
    }

    /// Returns how many bytes have arrived, and some for each event.
    pub(crate) fn received(&self) -> usize {
        self.received
    }

    /// Returns the next event, or `None` at the end of the response.
    ///
    /// # Errors
    /// When the connection breaks, or a limit is exceeded.
    pub async fn next(&mut self) -> Result<Option<Event<'_>>, Failure> {
        while !self.parser.next() {
            let Some(bytes) = poll_fn(|cx| self.poll_bytes(cx)).await? else { return Ok(None) };
            self.received += bytes.len();
            if self.received > self.max_bytes {
                return Err(Failure::too_large("bytes", "maxBytes", self.max_bytes));
            }
            self.parser.push(&bytes);
        }
        self.received += EVENT;
        if let Some(idle) = self.idle.take() {
            self.clock.set("idleMs", idle);
        }
        Ok(Some(self.parser.event()))
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        let Poll::Ready(bytes) = self.body.as_mut().poll_next(cx) else {
            return Poll::Ready(Err(ready!(self.clock.poll(cx))));
        };
        if self.idle.is_none() {
            self.clock.reset();
        }
        Poll::Ready(bytes.transpose().map_err(Broken::Connection))
    }

    /// Returns the next event after the answer is complete, if it arrives soon and whole: the answer needs no more.
    pub async fn next_of_rest(&mut self) -> Option<Event<'_>> {
        timeout(MORE, self.next()).await.ok()?.ok()?
    }

    /// Reads the response to its end, if that comes soon.
    pub async fn drain(mut self) {
        let read = async { while let Ok(Some(_)) = self.next().await {} };
        // Otherwise the connection is closed.
        _ = timeout(DRAIN, read).await;
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("pending", &self.parser.pending()).finish_non_exhaustive()
    }
}
