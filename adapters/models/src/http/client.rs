//! Sends requests.

use std::fmt;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use goondan_core::BoxFuture;
use http::{HeaderMap, StatusCode};

use super::failure::{Failure, FailureKind};

/// Sends requests: [`HttpClient`], or a layer between it and a model.
pub trait Transport: Send + Sync {
    /// Sends a request, and returns the head of the response. The body arrives while it is read. Dropping either one
    /// closes the connection.
    fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<Incoming, Failure>>;
}

/// A request. All are `POST`.
#[derive(Clone)]
#[non_exhaustive]
pub struct Outgoing {
    /// The address.
    pub url: String,
    /// The headers. Those with keys are marked as sensitive.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Outgoing {
    /// A request to `url`.
    pub fn new(url: impl Into<String>, headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        Self { url: url.into(), headers, body: body.into() }
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outgoing({}, {} bytes)", self.url, self.body.len())
    }
}

/// A response, whose body is still arriving.
#[non_exhaustive]
pub struct Incoming {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
}

impl Incoming {
    /// Returns a response whose body has arrived already.
    pub fn new(status: StatusCode, headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        Self::streamed(status, headers, Box::pin(Arrived(Some(body.into()))))
    }

    /// Returns a response whose body arrives while it is read.
    pub fn streamed(status: StatusCode, headers: HeaderMap, body: Body) -> Self {
        Self { status, headers, body }
    }
}

/// A body in one piece.
struct Arrived(Option<Bytes>);

impl Stream for Arrived {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take().map(Ok))
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incoming({})", self.status)
    }
}

/// The bytes of a response as they arrive.
pub type Body = Pin<Box<dyn Stream<Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>> + Send>>;

/// Sends requests over HTTP/1.1, and keeps connections open for the next ones. Redirects are not followed.
#[derive(Debug)]
pub struct HttpClient {
    /// Made by the first request: reading the certificates of the system takes time.
    client: OnceLock<reqwest::Client>,
    connect: Duration,
    direct: bool,
}

impl HttpClient {
    /// Returns a client that may take as long as `connect` to establish a connection, and uses the proxy that the
    /// environment names unless the connection is `direct`, as on the same machine.
    pub fn new(connect: Duration, direct: bool) -> Self {
        Self { client: OnceLock::new(), connect, direct }
    }

    fn client(&self) -> Result<&reqwest::Client, Failure> {
        match self.client.get() {
            Some(client) => Ok(client),
            None => {
                let client = build(self.connect, self.direct)?;
                Ok(self.client.get_or_init(|| client))
            }
        }
    }

    async fn request(&self, request: Outgoing) -> Result<Incoming, Failure> {
        let Outgoing { url, headers, body } = request;
        let sent = self.client()?.post(url).headers(headers).body(body).send().await;
        let response = http::Response::<reqwest::Body>::from(sent.map_err(unsent)?);
        let (head, body) = response.into_parts();
        Ok(Incoming { status: head.status, headers: head.headers, body: Box::pin(Chunks(body)) })
    }
}

impl Transport for HttpClient {
    fn send(&self, request: Outgoing) -> BoxFuture<'_, Result<Incoming, Failure>> {
        Box::pin(self.request(request))
    }
}

fn build(connect: Duration, direct: bool) -> Result<reqwest::Client, Failure> {
    let impossible = || Failure::new(FailureKind::Request, "no connection can be made to any provider");
    let builder = goondan_http::builder().map_err(|error| impossible().caused_by(error))?.connect_timeout(connect);
    let builder = if direct { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| impossible().caused_by(error.without_url()))
}

/// Returns the failure for a request that got no response.
fn unsent(error: reqwest::Error) -> Failure {
    let (kind, message) = match () {
        () if error.is_connect() && error.is_timeout() => {
            (FailureKind::Timeout, "the connection to the provider was not established in time (`connectMs`)")
        }
        () if error.is_connect() => (FailureKind::Network, "the provider cannot be reached"),
        () if error.is_builder() => (FailureKind::Request, "the request cannot be made"),
        () => (FailureKind::Network, "the connection to the provider broke"),
    };
    // The address could have a key in its query.
    Failure::new(kind, message).caused_by(error.without_url())
}

/// The data of a response, without trailers.
struct Chunks(reqwest::Body);

impl Stream for Chunks {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        use http_body::Body as _;

        loop {
            let frame = std::task::ready!(Pin::new(&mut self.0).poll_frame(cx));
            match frame.transpose().map_err(reqwest::Error::without_url) {
                Ok(None) => return Poll::Ready(None),
                Ok(Some(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
    }
}
