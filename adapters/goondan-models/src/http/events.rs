//! Reads the events of a response.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use sse_stream::{Error as SseError, Sse, SseByteStream};
use tokio::time::timeout;

use super::client::Body;
use super::failure::{Failure, FailureKind};
use super::limits::{Broken, Clock, Limited, Limits, Progress};

/// How long the end of a response is waited for after its last event, so that the connection can be used again.
const DRAIN: Duration = Duration::from_millis(250);

/// How long more events are waited for after an answer is complete.
const MORE: Duration = Duration::from_secs(2);

/// The server-sent events of one response, read under limits.
pub struct Events {
    events: SseByteStream<Limited>,
    progress: Arc<Progress>,
}

impl Events {
    /// Returns the events of `body`. `first` is the clock that was started with the request.
    pub fn new(body: Body, first: Clock, limits: &Limits) -> Self {
        let progress = Arc::new(Progress::default());
        let events = SseByteStream::new(Limited::new(body, first, limits, Arc::clone(&progress)));
        Self { events, progress }
    }

    /// Returns the next event, or `None` at the end of the response.
    ///
    /// # Errors
    /// When the connection breaks, a limit is exceeded, or the bytes are not text.
    pub async fn next(&mut self) -> Result<Option<Sse>, Failure> {
        let event = poll_fn(|cx| Pin::new(&mut self.events).poll_next(cx)).await;
        self.progress.event();
        event.transpose().map_err(|error| match error {
            SseError::Body(broken) => match broken.downcast::<Broken>() {
                Ok(broken) => (*broken).into(),
                Err(other) => Broken::Connection(other).into(),
            },
            error => Failure::new(FailureKind::Answer, "the provider sent bytes that are not text").caused_by(error),
        })
    }

    /// Returns the next event after the answer is complete, if it arrives soon and whole: the answer needs no more.
    pub async fn next_of_rest(&mut self) -> Option<Sse> {
        timeout(MORE, self.next()).await.ok()?.ok()?
    }

    /// Reads the response to its end, if that comes soon.
    pub async fn drain(mut self) {
        let read = async { while let Ok(Some(_)) = self.next().await {} };
        // Otherwise the connection is closed.
        _ = timeout(DRAIN, read).await;
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("progress", &self.progress).finish_non_exhaustive()
    }
}
