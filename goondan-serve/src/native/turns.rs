//! Turns: they are run, watched and cancelled.

use std::sync::Arc;

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use goondan_core::{AgentEvent, AnswerFormat, EventSource, Part, Role};
use goondan_wire::TurnEnd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{event_id, json_of};
use crate::log::{End, Log};
use crate::problem::{Problem, Result};
use crate::request::Request;
use crate::schemas;
use crate::service::{Service, refused};
use crate::tokens::Right;
use crate::turns::TurnId;
use crate::watch::{Native, stream};

/// A turn that is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "TurnRequest")]
pub(crate) struct TurnBody {
    /// The text for the model.
    input: Option<String>,
    /// Texts and files, in place of `input`.
    #[schemars(with = "Option<Vec<schemas::Part>>")]
    content: Option<Vec<Part>>,
    /// Values for extensions.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// The value that is expected as the answer.
    #[schemars(with = "Option<schemas::AnswerFormat>")]
    answer: Option<AnswerFormat>,
    #[serde(default)]
    wait: Awaited,
}

/// The answer that a request for a turn wants.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Awaited {
    /// The updates of the turn, as they come.
    #[default]
    Stream,
    /// The end of the turn.
    Result,
    /// None: the turn is on the disk, and begins when its place in the queue has come.
    Accepted,
}

/// A turn that has not ended.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "TurnStatus")]
pub(crate) struct Unended {
    status: Standing,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Standing {
    Running,
    Queued,
}

/// The answer to a request to cancel a turn: `true` if this request has done it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Cancelled {
    pub(crate) cancelled: bool,
}

fn unended(status: Standing) -> Response {
    (StatusCode::ACCEPTED, json_of(&Unended { status })).into_response()
}

/// Returns the `Idempotency-Key` of a request.
fn idempotency_key(request: &Request) -> Result<Option<&str>> {
    let Some(key) = request.header("idempotency-key") else { return Ok(None) };
    match key.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= 255 => Ok(Some(key)),
        _ => Err(Problem::request("`Idempotency-Key` has 1 to 255 letters, digits and other visible characters")),
    }
}

pub(crate) async fn run(request: Request) -> Result<Response> {
    let (agent, key) = request.conversation(Right::Turn)?;
    let Request { service, caller, uri, .. } = &request;
    let children = request.children()?;
    let TurnBody { input, content, metadata, answer, wait } = request.json()?;
    let mut event = match (input, content) {
        (Some(input), None) => AgentEvent::input(input),
        (None, Some(content)) => AgentEvent::content(content),
        _ => return Err(Problem::request("a turn has `input` or `content`, and not both")),
    };
    event.source = EventSource::new("connector", "http");
    (event.metadata, event.auth) = (metadata, caller.auth());
    if let Some(answer) = answer {
        event = event.expecting(answer);
    }
    if let Some(client) = idempotency_key(&request)? {
        event = event.with_id(event_id("http", caller, (agent.as_str(), key.as_str()), client));
    }
    if let Awaited::Accepted = wait {
        if children.0 {
            let message = "a turn that is queued has no updates of the agents that it asks: leave out `children`";
            return Err(Problem::request(message));
        }
        let id = TurnId { agent, key, event: event.id.clone() };
        service.accept(&id, caller.principal(), event).await?;
        return Ok(located(uri, &id, unended(Standing::Queued)));
    }
    let (id, log) = service.run(caller.principal(), agent, key, event, children).await?;
    match wait {
        Awaited::Result => Ok(located(uri, &id, json_of(&*end_of(&log).await?))),
        _ => Ok(streamed(uri, &id, log)),
    }
}

/// Streams a turn from its beginning.
pub(crate) fn streamed(uri: &Uri, id: &TurnId, log: Arc<Log>) -> Response {
    let frames = Native::new(&id.event, &log);
    located(uri, id, stream(log, 0, frames))
}

/// Adds the address of a turn.
fn located(uri: &Uri, id: &TurnId, mut response: Response) -> Response {
    // Also below the path of a program that the routes are mounted in.
    let place = uri.path().rsplit_once('/').map(|(around, _)| format!("{around}/turns/{}", id.event));
    if let Some(Ok(place)) = place.map(|place| HeaderValue::from_str(&place)) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

/// Waits for the end of a turn.
async fn end_of(log: &Log) -> Result<Arc<TurnEnd>> {
    match log.wait().await {
        End::Turn(end) => Ok(end),
        End::Refused(error) => Err(refused(&error)),
        End::Handover => Err(Problem::draining()),
    }
}

pub(crate) async fn outcome(request: Request) -> Result<Response> {
    let (id, service) = (request.turn(Right::Read)?, &request.service);
    match service.turns().log(&id).map(|log| log.ended()) {
        Some(Some(End::Turn(end))) => Ok(json_of(&*end)),
        Some(Some(End::Refused(error))) => Err(refused(&error)),
        Some(Some(End::Handover)) => Err(Problem::draining()),
        Some(None) => Ok(unended(Standing::Running)),
        None if service.is_queued(&id) => Ok(unended(Standing::Queued)),
        None => Ok(json_of(&stored(service, &id).await?)),
    }
}

/// Returns the end of a turn whose log is gone: its outcome and its messages are left.
async fn stored(service: &Service, id: &TurnId) -> Result<TurnEnd> {
    let missing = || Problem::not_found("turn");
    let ended = service.ended(id).await?.ok_or_else(missing)?;
    let messages = service.messages(&id.agent, &id.key).await?;
    let answer =
        messages.iter().rev().find(|message| message.role() == Role::Assistant && message.turn() == Some(&ended.turn));
    Ok(TurnEnd::stored(&ended, answer.map(|message| &**message)))
}

pub(crate) async fn watch(request: Request) -> Result<Response> {
    let (id, service) = (request.turn(Right::Read)?, &request.service);
    let last = request.header("last-event-id").map(|last| last.to_str().unwrap_or("?"));
    let log = match service.begun(&id).await {
        Some(log) => log,
        // Of a turn that has ended long ago, there is the end.
        None => Arc::new(Log::ended_with(&id.event, 0, stored(service, &id).await?)),
    };
    let frames = Native::new(&id.event, &log);
    let from = frames.after(last)?;
    Ok(stream(log, from, frames))
}

pub(crate) async fn cancel(request: Request) -> Result<Response> {
    let (id, service) = (request.turn(Right::Turn)?, &request.service);
    if service.turns().log(&id).is_none() && service.stored().is_none() {
        return Err(Problem::not_found("turn"));
    }
    if service.cancel_queued(&id).await? {
        return Ok(json_of(&Cancelled { cancelled: true }));
    }
    if service.turns().log(&id).is_some_and(|log| log.never_began()) {
        return Ok(json_of(&Cancelled { cancelled: false }));
    }
    let held = service.open_known(&id.agent, &id.key).await?;
    let cancelled = held.cancel(&id.event).await?;
    Ok(json_of(&Cancelled { cancelled }))
}
