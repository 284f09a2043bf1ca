//! The events of a server at a URL, each a message with a limit.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::protocol::model::RequestId;
use super::protocol::transport::streamable_http_client::SseError;
use futures_core::Stream;
use goondan::json;
use reqwest::Response;
use sse_stream::{Sse, SseStream};

use super::json::Excess;
use super::message::{self, abridged};
use crate::config::Sizes;

/// A stream of events.
pub(super) type AnyEvents = Pin<Box<dyn Stream<Item = Result<Sse, SseError>> + Send>>;

/// Events whose messages can be read: an answer that is too large has become an error.
pub(super) struct Events {
    events: AnyEvents,
    /// The request that they answer, if they answer one.
    id: Option<RequestId>,
    sizes: Sizes,
}

impl Events {
    /// The events of a response.
    pub(super) fn of(response: Response, id: Option<RequestId>, sizes: Sizes) -> Self {
        let bytes = Limited {
            bytes: Box::pin(response.bytes_stream()),
            limit: sizes.message,
            length: 0,
            line: 0,
            after_return: false,
        };
        Self { events: Box::pin(SseStream::from_bytes_stream(bytes)), id, sizes }
    }

    /// Events that answer requests of before, and whose size is limited already.
    pub(super) fn resumed(events: AnyEvents, sizes: Sizes) -> Self {
        Self { events, id: None, sizes }
    }

    fn check(&self, event: Sse) -> Sse {
        let Some(data) = &event.data else { return event };
        let data = match abridged(data.as_bytes(), &self.sizes) {
            Ok(data) => String::from_utf8_lossy(&data).into_owned(),
            Err(excess) => match self.error(message::id(data.as_bytes()), excess) {
                Some(error) => error,
                None => return Sse { data: None, ..event },
            },
        };
        Sse { data: Some(data), ..event }
    }

    /// Returns the text of an error for the request with this id, or else for the request of these events.
    fn error(&self, id: Option<RequestId>, excess: Excess) -> Option<String> {
        let error = message::error(id.or_else(|| self.id.clone()), &message::reason(excess, &self.sizes))?;
        json::to_string(&error).ok()
    }
}

impl Stream for Events {
    type Item = Result<Sse, SseError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(match ready!(self.events.as_mut().poll_next(cx)) {
            Some(Ok(event)) => Some(Ok(self.check(event))),
            Some(Err(SseError::Body(error))) if matches!(error.downcast_ref(), Some(Broken::TooLong)) => {
                self.error(None, Excess::Size).map(|error| Ok(Sse::default().data(error)))
            }
            other => other,
        })
    }
}

/// The bytes of events, each of at most `limit` bytes.
struct Limited<S> {
    bytes: S,
    limit: usize,
    /// Of the event that arrives, and of its line.
    length: usize,
    line: usize,
    after_return: bool,
}

impl<S> Limited<S> {
    /// Counts bytes, and returns whether no event is too long. An empty line ends one.
    fn count(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| {
            let is_feed_of_return = std::mem::replace(&mut self.after_return, *byte == b'\r') && *byte == b'\n';
            match byte {
                _ if is_feed_of_return => {}
                b'\n' | b'\r' if self.line == 0 => self.length = 0,
                b'\n' | b'\r' => self.line = 0,
                _ => (self.length, self.line) = (self.length + 1, self.line + 1),
            }
            self.length <= self.limit
        })
    }
}

impl<S: Stream<Item = reqwest::Result<B>> + Unpin, B: AsRef<[u8]>> Stream for Limited<S> {
    type Item = Result<B, Broken>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let bytes = ready!(Pin::new(&mut self.bytes).poll_next(cx));
        Poll::Ready(bytes.map(|bytes| match bytes {
            Ok(bytes) if self.count(bytes.as_ref()) => Ok(bytes),
            Ok(_) => Err(Broken::TooLong),
            Err(error) => Err(Broken::Connection(error)),
        }))
    }
}

/// Why events cannot be read.
#[derive(Debug)]
enum Broken {
    TooLong,
    Connection(reqwest::Error),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("an event is too long"),
            Self::Connection(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Broken {}
