//! A transport in memory, for tests in which time passes: sockets and a clock that jumps do not agree.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use goondan_core::BoxFuture;
use goondan_models::http::{Failure, Incoming, Outgoing, Transport};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;
use tokio::time::{Sleep, sleep};

/// What happens while a response is read.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Bytes arrive.
    Bytes(Bytes),
    /// Nothing arrives for some time.
    Wait(Duration),
    /// The connection breaks.
    Break,
}

/// A response that is played.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) steps: Vec<Step>,
    /// How long the head takes.
    pub(crate) delay: Duration,
}

impl Played {
    pub(crate) fn new(status: u16, steps: impl IntoIterator<Item = Step>) -> Self {
        Self { status, headers: Vec::new(), steps: steps.into_iter().collect(), delay: Duration::ZERO }
    }

    /// A stream of events in one piece.
    pub(crate) fn events(text: &str) -> Self {
        Self::new(200, [Step::Bytes(Bytes::copy_from_slice(text.as_bytes()))])
    }

    /// A JSON body.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, [Step::Bytes(body.to_string().into())])
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

/// Plays responses, the n-th for the n-th request and then the last one, and keeps the bodies of the requests.
#[derive(Clone, Default)]
pub(crate) struct Sent {
    played: Arc<Vec<Played>>,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Sent {
    pub(crate) fn to(played: impl IntoIterator<Item = Played>) -> Self {
        Self { played: Arc::new(played.into_iter().collect()), bodies: Arc::default() }
    }

    /// Returns the bodies of the requests so far.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }
}

impl Transport for Sent {
    fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<Incoming, Failure>> {
        let played = {
            let mut bodies = self.bodies.lock().unwrap();
            bodies.push(serde_json::from_slice(&request.body).unwrap());
            self.played[(bodies.len() - 1).min(self.played.len() - 1)].clone()
        };
        Box::pin(async move {
            sleep(played.delay).await;
            let mut headers = HeaderMap::new();
            for (name, value) in played.headers {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_str(&value).unwrap());
            }
            let status = StatusCode::from_u16(played.status).unwrap();
            Ok(Incoming::streamed(status, headers, Box::pin(Playing { steps: played.steps.into(), wait: None })))
        })
    }
}

struct Playing {
    steps: VecDeque<Step>,
    wait: Option<Pin<Box<Sleep>>>,
}

impl Stream for Playing {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(wait) = &mut self.wait {
                std::task::ready!(wait.as_mut().poll(cx));
                self.wait = None;
            }
            match self.steps.pop_front() {
                Some(Step::Wait(time)) => self.wait = Some(Box::pin(sleep(time))),
                Some(Step::Bytes(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Some(Step::Break) => return Poll::Ready(Some(Err("connection reset by peer".into()))),
                None => return Poll::Ready(None),
            }
        }
    }
}
