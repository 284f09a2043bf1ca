//! Limits of time while a response is read.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// The limits of time of one attempt. The policy of the agent limits the time of all attempts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Until the connection is established, TLS included.
    pub connect: Duration,
    /// Until the first event of the answer has arrived.
    pub first: Duration,
    /// The longest silence after that.
    pub idle: Duration,
}

/// Measures silence: the time in which a future was polled and was not ready.
///
/// It starts when a poll finds nothing. A deadline that passes while the task is not polled, because a watcher of the
/// answer is slow, does not count: bytes that the provider has sent meanwhile may not have been read yet.
#[derive(Debug)]
pub struct Clock {
    name: &'static str,
    limit: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
    running: bool,
}

impl Clock {
    /// Returns a clock for a silence of `limit`, which is the limit `name` in `timeouts` of a model.
    pub fn new(name: &'static str, limit: Duration) -> Self {
        Self { name, limit, sleep: None, running: false }
    }

    /// Ends the silence: the next one starts when a poll finds nothing.
    pub fn reset(&mut self) {
        self.running = false;
    }

    /// Ends the silence, and sets another limit for the next ones.
    pub(super) fn set(&mut self, name: &'static str, limit: Duration) {
        *self = Self { name, limit, sleep: self.sleep.take(), running: false };
    }

    /// Returns the error of this clock when the silence has been too long. Must be polled after the source of the
    /// bytes, and only if that was not ready.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Broken> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(self.limit)));
        loop {
            if !self.running {
                sleep.as_mut().reset(Instant::now() + self.limit);
                self.running = true;
            }
            std::task::ready!(sleep.as_mut().poll(cx));
            let late = Instant::now().saturating_duration_since(sleep.deadline());
            if late <= self.limit / 10 {
                return Poll::Ready(Broken::Silent { limit: self.name, after: self.limit });
            }
            self.running = false;
        }
    }

    /// Waits for `work`. Several calls share one silence.
    ///
    /// # Errors
    /// [`Broken::Silent`] after too long a silence.
    pub async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Broken> {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Ok(done)),
            Poll::Pending => self.poll(cx).map(Err),
        })
        .await
    }
}

/// Why a response could not be read to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Broken {
    /// Nothing arrived for too long.
    Silent {
        /// The limit, as `timeouts` of a model names it.
        limit: &'static str,
        /// The limit.
        after: Duration,
    },
    /// The connection broke.
    Connection(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent { limit: limit @ "idleMs", after } => {
                write!(f, "the provider sent nothing for {after:?} in the middle of the answer (`{limit}`)")
            }
            Self::Silent { limit, after } => {
                write!(f, "the provider did not begin to answer within {after:?} (`{limit}`)")
            }
            Self::Connection(_) => f.write_str("the connection to the provider broke"),
        }
    }
}

impl std::error::Error for Broken {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Connection(source) => Some(&**source),
            Self::Silent { .. } => None,
        }
    }
}
