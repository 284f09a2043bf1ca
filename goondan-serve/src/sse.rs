//! Server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use futures_util::stream::{Stream, StreamExt};
use goondan_core::host::secret::mask;
use tokio::time::timeout;

/// The time without an event after which a comment is sent, so that proxies keep the connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// An event that is being written. Each has data, which is JSON in one line. Secrets in it are masked, as they are on a
/// terminal.
// MASK-01
pub(crate) struct Event(String);

impl Event {
    pub(crate) fn new(json: &str) -> Self {
        let json = mask(json);
        // Not by `format!`: every piece of an answer becomes one.
        let mut text = String::with_capacity(json.len() + 96);
        text.push_str("data: ");
        text.push_str(&json);
        text.push('\n');
        Self(text)
    }

    /// Adds a field, whose value has one line.
    pub(crate) fn field(mut self, name: &str, value: &str) -> Self {
        [name, ": ", value, "\n"].iter().for_each(|text| self.0.push_str(text));
        self
    }

    /// Returns its bytes, which are shared by all who are sent them.
    pub(crate) fn bytes(mut self) -> Bytes {
        self.0.push('\n');
        self.0.into()
    }
}

/// Waits for `next`; `None` says that it is time for a [`comment`].
pub(crate) async fn within<T>(next: impl Future<Output = T>) -> Option<T> {
    timeout(KEEP_ALIVE, next).await.ok()
}

/// Returns an event that readers ignore.
pub(crate) fn comment() -> Bytes {
    Bytes::from_static(b":\n\n")
}

/// Returns a response that streams events.
pub(crate) fn response(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Response::new(Body::from_stream(events.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // nginx would hold the events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
