//! A model over HTTP.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use goondan_core::{BoxFuture, Error, ErrorCode, ModelInfo, ModelOptions, Result, Secret};
use goondan_runtime::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse, ValueBy};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::answer::{Answer, AnswerLimits, Measure};
use crate::cassette::{Cassette, Playback, Played};
use crate::http::{
    Body, Clock, Events, Failure, FailureKind, Incoming, Limits, Outgoing, Retries, Transport, Waits, request_id,
};
use crate::surrogates::mended;
use crate::wire::{Encoding, Wire, enforceable, merged};

/// A model over the interface `W`. [`ModelConfig::model`](crate::ModelConfig::model) makes one.
///
/// A call is encoded once, sent, read event by event, and sent again after a failure that may pass, before the first
/// event and in the middle of an answer alike: nothing has been acted on until the answer is complete. Such an attempt
/// is no step, and leaves nothing in the conversation.
pub struct HttpModel<W> {
    pub(crate) wire: W,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) url: String,
    /// The host in the URL.
    pub(crate) host: String,
    pub(crate) headers: HeaderMap,
    /// The key in the headers, which is masked as long as this exists.
    pub(crate) _key: Option<Secret>,
    /// Whether the provider needs a key and none is set. It is an error of requests, not of the config: a bundle is
    /// checked, and played from recordings, without keys.
    pub(crate) key_missing: bool,
    pub(crate) cassette: Option<Cassette>,
    pub(crate) info: ModelInfo,
    pub(crate) options: ModelOptions,
    pub(crate) limits: Limits,
    pub(crate) answer: AnswerLimits,
    pub(crate) retries: Retries,
    /// Whether the provider has refused a request with closed tools.
    pub(crate) refuses_closed: AtomicBool,
}

impl<W> std::fmt::Debug for HttpModel<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HttpModel({} {})", self.info.provider, self.info.model)
    }
}

impl<W> HttpModel<W> {
    /// Returns the model with another way to send requests.
    #[must_use]
    pub fn with_transport(self, transport: impl Transport + 'static) -> Self {
        Self { transport: Box::new(transport), ..self }
    }

    /// Returns the model with a cassette, which records its exchanges with the provider, or plays them.
    #[must_use]
    pub fn with_cassette(self, cassette: Cassette) -> Self {
        Self { cassette: Some(cassette), ..self }
    }
}

/// The most bytes that are read of a response without an answer.
const LONGEST_REPORT: usize = 64 << 10;

impl<W: Wire> HttpModel<W> {
    async fn ask(&self, request: ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<ModelResponse> {
        let model = &*self.info.model;
        let mut encoding = Encoding::new(W::API, model, request, &self.options).accepting(&self.info);
        if !self.closes_tools(&request, encoding.options()) {
            encoding = encoding.without_closed_tools();
        }
        self.wire.check(model, encoding.options())?;
        let mut body = Bytes::from(self.wire.encode(&encoding)?);
        let mut waits = Waits::new(self.retries);
        loop {
            let mut answer = Answer::new(encoding.request(), deltas).over(W::API).repeatable(self.cassette.is_some());
            let attempt = self.attempt(body.clone(), &mut answer).await;
            let recorded = self.cassette.as_ref().map_or(Ok(()), Cassette::check);
            let failure = match recorded.and(attempt) {
                Ok(id) => match answer.into_response(W::API, model) {
                    Ok(response) => return Ok(self.completed(response, id)),
                    Err(failure) => failure.with_request_id(id),
                },
                Err(failure) => failure,
            };
            let left_out = if failure.is_about_reasoning() && encoding.with_reasoning() {
                encoding = encoding.without_reasoning();
                Some("reasoning")
            } else if failure.is_about_container() && encoding.with_container() {
                encoding = encoding.without_container();
                Some("container")
            } else if failure.is_about_tool_choice() && encoding.has_closed_tools() {
                // The tools that the next requests start with are then these, too.
                self.refuses_closed.store(true, Ordering::Relaxed);
                encoding = encoding.without_closed_tools();
                Some("closed tools")
            } else {
                None
            };
            if let Some(left_out) = left_out {
                let without = Bytes::from(self.wire.encode(&encoding)?);
                if without != body {
                    // A conversation must never be stuck: parts that cannot be sent are left out.
                    let (provider, reason) = (&*self.info.provider, &*failure.reason());
                    tracing::warn!(provider, model, reason, "the request is repeated without the {left_out} in it");
                    deltas.send(ModelDelta::Restart { reason, wait: Some(Duration::ZERO) });
                    body = without;
                    waits.changed();
                    continue;
                }
            }
            let Some(wait) = waits.after(&failure) else {
                if failure.kind() == FailureKind::TooLarge {
                    // The answer so far must not stay in the conversation: it might never fit into a request again.
                    deltas.send(ModelDelta::Restart { reason: &failure.reason(), wait: None });
                }
                return Err(failure.into_error(&self.info.provider, waits.attempts()));
            };
            // The recording is there already.
            let plays = self.cassette.as_ref().is_some_and(Cassette::only_plays);
            let wait = if plays { Duration::ZERO } else { wait };
            let (provider, attempt, reason) = (&*self.info.provider, waits.attempts(), &*failure.reason());
            tracing::info!(provider, model, attempt, ?wait, reason, "the request is repeated");
            deltas.send(ModelDelta::Restart { reason, wait: Some(wait) });
            sleep(wait).await;
        }
    }

    /// Whether the provider can be told that the model may not call some of the tools of a request.
    // CACHE-01
    fn closes_tools(&self, request: &ModelRequest<'_>, options: &ModelOptions) -> bool {
        !self.refuses_closed.load(Ordering::Relaxed)
            && self.wire.closes_tools(&self.host, request.all_tools().count(), options)
    }

    /// Sends the request once and reads the answer. Returns the provider's id of the request.
    async fn attempt(&self, body: Bytes, answer: &mut Answer<'_>) -> Result<Option<String>, Failure> {
        let mut first = Clock::new("firstMs", self.limits.first);
        let outgoing = Outgoing { url: self.url.clone(), headers: self.headers.clone(), body };
        let (response, playback) = first.wait(self.send(outgoing)).await??;
        let outcome = self.receive(response, first, answer).await;
        if let Some(playback) = playback {
            playback.taken();
        }
        outcome
    }

    /// Reads the answer out of a response. Returns the provider's id of the request.
    async fn receive(
        &self,
        response: Incoming,
        first: Clock,
        answer: &mut Answer<'_>,
    ) -> Result<Option<String>, Failure> {
        let Incoming { status, headers, body } = response;
        let id = request_id(&headers);
        if !status.is_success() {
            return Err(self.wire.failure(status, &headers, &beginning(body, first).await));
        }
        if let Some(problem) = not_a_stream(&headers) {
            let failure = Failure::new(FailureKind::Answer, problem);
            let report = self.wire.failure(status, &headers, &beginning(body, first).await);
            // Some gateways report failures with a status of success.
            let failure = if report.provider_code().is_some() { report } else { failure };
            return Err(failure.with_request_id(id));
        }
        let mut events = Events::new(body, first, &self.limits, self.answer.max_bytes);
        let read = self.read(&mut events, answer).await;
        read.map_err(|failure| failure.with_request_id(id.clone()))?;
        if answer.is_ended() {
            events.drain().await;
        }
        Ok(id)
    }

    /// Sends a request to the provider, unless the cassette has the response.
    async fn send(&self, request: Outgoing) -> Result<(Incoming, Option<Box<Playback>>), Failure> {
        let recording = match &self.cassette {
            None => None,
            Some(cassette) => match cassette.play(&request)? {
                Played::Response(response, playback) => return Ok((response, Some(playback))),
                Played::Nothing(recording) => recording,
            },
        };
        if self.key_missing {
            return Err(Failure::new(FailureKind::Auth, "the model has no key"));
        }
        let response = self.transport.send(request).await?;
        let response = match recording {
            Some(recording) => recording.of(response),
            None => response,
        };
        Ok((response, None))
    }

    async fn read(&self, events: &mut Events, answer: &mut Answer<'_>) -> Result<(), Failure> {
        let mut measure = Measure::new(self.answer);
        while !answer.is_ended() {
            // Some gateways send a reason to stop before the answer begins.
            let needs_no_more = answer.is_complete() && !answer.is_empty();
            let event = if needs_no_more { events.next_of_rest().await } else { events.next().await? };
            let Some(event) = event else {
                if !answer.is_complete() {
                    self.wire.closed(answer);
                }
                break;
            };
            measure.check_event(&event.data)?;
            // An event that cannot be read leaves the answer as it was.
            self.wire.event(&event.name, &event.data, answer).or_else(|failure| match mended(&event.data) {
                Some(data) if failure.kind() == FailureKind::Answer => self.wire.event(&event.name, &data, answer),
                _ => Err(failure),
            })?;
            measure.check(answer, events.received())?;
        }
        Ok(())
    }

    /// Returns the response with its costs.
    fn completed(&self, mut response: ModelResponse, request_id: Option<String>) -> ModelResponse {
        if let (Some(usage), Some(prices)) = (&mut response.usage, &self.info.prices) {
            usage.cost = usage.cost.or_else(|| Some(prices.cost(usage)));
        }
        response.request_id = request_id.or(response.request_id);
        response
    }
}

impl<W: Wire> Model for HttpModel<W> {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(self.ask(request, deltas))
    }

    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    fn reads_tools_first(&self) -> bool {
        W::TOOLS_FIRST
    }

    fn sends_closed_tools(&self, request: &ModelRequest<'_>) -> bool {
        self.closes_tools(request, &merged(request, &self.options))
    }

    fn value_by(&self, request: &ModelRequest<'_>, schema: &Map<String, Value>) -> ValueBy {
        let (model, options) = (&*self.info.model, merged(request, &self.options));
        if options.response_format.is_some() || options.tool_choice.is_some() {
            return ValueBy::Tool;
        }
        let provided = options.provider.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
        let with_tools = provided || request.tools().next().is_some();
        if self.wire.holds_to_schema(model, &options, with_tools) && enforceable(schema).is_some() {
            ValueBy::Schema
        } else if self.wire.requires_tools(model, &options) {
            ValueBy::RequiredTool
        } else {
            ValueBy::Tool
        }
    }
}

/// Returns the failure in the headers if the body cannot be a stream of events.
fn not_a_stream(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if let Some(encoding) = text(CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        return Some(format!("the provider compressed its answer with `{encoding}`, which was not asked for"));
    }
    let kind = text(CONTENT_TYPE)?.split(';').next()?.trim().to_ascii_lowercase();
    let wrong = ["text/html", "application/json"].contains(&kind.as_str());
    wrong.then(|| format!("the provider sent `{kind}` instead of a stream of events"))
}

/// Reads the beginning of a body that is no answer.
async fn beginning(mut body: Body, mut clock: Clock) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < LONGEST_REPORT {
        let chunk = clock.wait(std::future::poll_fn(|cx| body.as_mut().poll_next(cx))).await;
        // The answer so far is better than nothing.
        let Ok(Some(Ok(chunk))) = chunk else { break };
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

/// Returns the headers of all requests of a model.
///
/// # Errors
/// `E_MODEL_REQUEST` if a header, or the key, has characters that no header can have. The error does not show them.
pub(crate) fn headers<W: Wire>(wire: &W, key: Option<&Secret>, more: &BTreeMap<String, String>) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in wire.headers() {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if let Some(key) = key {
        let (name, value) = wire.key_header(key.expose().trim());
        let mut value = HeaderValue::from_str(&value).map_err(|_| illegal("the key"))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    for (name, value) in more {
        let (name, value) = header(name, value)?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns a header of a config, which may be a secret.
///
/// # Errors
/// As [`headers`].
pub(crate) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let what = || illegal(&format!("the header `{name}`"));
    let name = HeaderName::try_from(name).map_err(|_| what())?;
    let mut value = HeaderValue::try_from(value).map_err(|_| what())?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn illegal(what: &str) -> Error {
    Error::new(ErrorCode::MODEL_REQUEST, format!("{what} of a model has characters that no header can have"))
        .suggest("take out line breaks and characters that are not ASCII")
}
