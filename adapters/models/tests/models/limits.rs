//! Limits of time: the right one is exceeded at the right time, and a slow watcher exceeds none.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use goondan_core::{Conversation, ErrorCode, Message, ToolCatalog};
use goondan_covers::covers;
use goondan_models::http::{Failure, Incoming, Outgoing, Transport};
use goondan_models::wire::Anthropic;
use goondan_models::{HttpModel, providers};
use goondan_runtime::{DeltaSink, Model, ModelRequest};
use http::{HeaderMap, StatusCode};
use tokio::sync::mpsc;
use tokio::time::{Instant, advance};

use crate::support::{Played, Reply, Sent, Server, Step, ask, config};

const START: &str = "data: {\"type\":\"message_start\",\"message\":{}}\n\n";
const STOP: &str = "data: {\"type\":\"message_stop\"}\n\n";

fn bytes(text: &str) -> Step {
    Step::Bytes(Bytes::copy_from_slice(text.as_bytes()))
}

fn wait(millis: u64) -> Step {
    Step::Wait(Duration::from_millis(millis))
}

/// Returns a model with limits of 2 s until the first event, and of 1 s of silence.
fn played(response: Played) -> HttpModel<Anthropic> {
    let mut config = config("http://127.0.0.1:9");
    config.timeouts.first_ms = 2000;
    config.timeouts.idle_ms = 1000;
    config.model(&providers::ANTHROPIC, Anthropic).unwrap().with_transport(Sent::to([response]))
}

#[tokio::test(start_paused = true)]
#[covers("MODEL-03")]
async fn each_limit_has_its_time_and_its_name() {
    let mut late = Played::events(START);
    late.delay = Duration::from_secs(3600);
    let comments = (0..100).flat_map(|_| [bytes(": not yet\n\n"), wait(500)]);
    for (response, limit, after) in [
        (late, "firstMs", 2000),
        (Played::new(200, [wait(3_600_000)]), "firstMs", 2000),
        (Played::new(200, comments), "firstMs", 2000),
        (Played::new(200, [wait(1500), bytes(START), wait(3_600_000)]), "idleMs", 2500),
        (Played::new(200, [bytes(START), wait(900), bytes(": ping\n\n"), wait(3_600_000)]), "idleMs", 1900),
        (Played::new(500, [bytes("{"), wait(3_600_000)]), "500", 2000),
    ] {
        let start = Instant::now();
        let error = ask(&played(response)).await.unwrap_err();
        let elapsed = start.elapsed().as_millis() as u64;
        assert!(error.message().contains(limit), "{error}");
        assert!((after..after + 10).contains(&elapsed), "{limit}: {elapsed} ms instead of {after}");
        let code = if limit == "500" { ErrorCode::MODEL_OVERLOADED } else { ErrorCode::MODEL_TIMEOUT };
        assert_eq!((error.code(), error.is_retryable()), (&code, true));
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_response_is_not_waited_for_long() {
    let start = Instant::now();
    ask(&played(Played::new(200, [bytes(START), bytes(STOP), wait(3_600_000)]))).await.unwrap();
    assert_eq!(start.elapsed().as_millis(), 250);
}

/// A transport whose body is written by the test.
struct Written(std::sync::Mutex<Option<mpsc::UnboundedReceiver<Bytes>>>);

impl Transport for Written {
    fn send(&self, _: Outgoing) -> goondan_core::BoxFuture<'_, Result<Incoming, Failure>> {
        let body = Receiving(self.0.lock().unwrap().take().unwrap());
        let response = Incoming { status: StatusCode::OK, headers: HeaderMap::new(), body: Box::pin(body) };
        Box::pin(std::future::ready(Ok(response)))
    }
}

struct Receiving(mpsc::UnboundedReceiver<Bytes>);

impl futures_core::Stream for Receiving {
    type Item = Result<Bytes, Box<dyn std::error::Error + Send + Sync>>;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|bytes| bytes.map(Ok))
    }
}

#[tokio::test(start_paused = true)]
#[covers("MODEL-03")]
async fn a_watcher_that_does_not_look_does_not_make_the_provider_late() {
    let (write, read) = mpsc::unbounded_channel();
    let model = played(Played::events("")).with_transport(Written(Some(read).into()));
    let (conversation, tools) = (Conversation::from_base([Message::user("hi").into()]).0, ToolCatalog::default());
    let mut answer = pin!(model.generate(ModelRequest::new(None, &conversation, &tools), DeltaSink::none()));
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(answer.as_mut().poll(cx).is_pending());
    write.send(START.into()).unwrap();
    assert!(answer.as_mut().poll(cx).is_pending());
    // Nobody looks for much longer than the limit; the bytes of the provider may not have been read yet.
    advance(Duration::from_secs(3)).await;
    assert!(answer.as_mut().poll(cx).is_pending());
    advance(Duration::from_millis(500)).await;
    assert!(answer.as_mut().poll(cx).is_pending());
    write.send(": late, but there\n\n".into()).unwrap();
    assert!(answer.as_mut().poll(cx).is_pending());
    // Looked at in time, a silence counts.
    let start = Instant::now();
    let error = answer.await.unwrap_err();
    assert_eq!((error.code(), start.elapsed().as_millis()), (&ErrorCode::MODEL_TIMEOUT, 1000));
}

#[tokio::test]
#[covers("MODEL-03")]
async fn a_server_that_falls_silent_is_noticed() {
    for (reply, limit) in
        [(Reply::events(START).stalled(), "idleMs"), (Reply::events(": soon\n\n").stalled(), "firstMs")]
    {
        let server = Server::start([reply]).await;
        let mut config = config(server.url());
        (config.timeouts.first_ms, config.timeouts.idle_ms) = (200, 100);
        let error = ask(&config.model(&providers::ANTHROPIC, Anthropic).unwrap()).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::MODEL_TIMEOUT);
        assert!(error.message().contains(limit), "{error}");
    }
}
