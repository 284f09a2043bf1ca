//! The native interface: turns, their streams, decisions, conversations.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use goondan_core::host::secret::mask;
use goondan_core::{
    AgentEvent, AgentName, AnswerFormat, Error, ErrorCode, EventId, EventSource, InstanceKey, Part, Principal, Role,
    Wait,
};
use goondan_runtime::store::{InstanceId, InstanceQuery};
use goondan_wire::{Deciding, TurnEnd, Update};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::agents::Held;
use crate::body::Body;
use crate::caller::Caller;
use crate::log::{End, Log};
use crate::problem::{Problem, Result};
use crate::service::{Service, refused};
use crate::turns::{Start, TurnId};
use crate::watch::{Native, stream};

/// The body of a request for a turn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TurnBody {
    /// The text for the model.
    input: Option<String>,
    /// Texts and files, in place of `input`.
    content: Option<Vec<Part>>,
    /// Values for extensions.
    #[serde(default)]
    metadata: Map<String, Value>,
    /// The value that is expected as the answer.
    answer: Option<AnswerFormat>,
    #[serde(default)]
    wait: Awaited,
}

/// The answer that a request for a turn wants.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Awaited {
    /// The updates of the turn, as they come.
    #[default]
    Stream,
    /// The end of the turn.
    Result,
}

/// Returns a response with a JSON body.
pub(crate) fn json_of(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(body) => ([(CONTENT_TYPE, "application/json")], mask(&body).into_owned()).into_response(),
        Err(error) => Problem::from(Error::from(error)).into_response(),
    }
}

/// Returns the id of the event that a key of a client stands for, over one of the interfaces.
// SERVE-02
pub(crate) fn event_id(interface: &str, caller: &Caller, id: (&str, &str), key: &str) -> EventId {
    let mut digest = Sha256::new();
    for text in [interface, caller.principal.as_deref().unwrap_or_default(), id.0, id.1, key] {
        digest.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
        digest.update(text.as_bytes());
    }
    let digits: String = digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("key-{digits}").into()
}

/// Returns the `Idempotency-Key` of a request.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    match key.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= 255 => Ok(Some(key)),
        _ => Err(Problem::request("`Idempotency-Key` has 1 to 255 letters, digits and other visible characters")),
    }
}

pub(crate) async fn run(
    State(service): State<Service>,
    caller: Caller,
    Path((agent, key)): Path<(String, String)>,
    headers: HeaderMap,
    Body(body): Body<TurnBody>,
) -> Result<Response> {
    let (agent, key) = (service.agent(&agent)?, caller.key(&key)?);
    let TurnBody { input, content, metadata, answer, wait } = body;
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
    if let Some(client) = idempotency_key(&headers)? {
        event = event.with_id(event_id("http", &caller, (agent.as_str(), key.as_str()), client));
    }
    let (id, log) = service.run(caller.principal, agent, key, event).await?;
    answer_with(&id, log, wait).await
}

async fn answer_with(id: &TurnId, log: Arc<Log>, wait: Awaited) -> Result<Response> {
    let mut response = match wait {
        Awaited::Stream => {
            let frames = Native::new(&id.event, &log);
            stream(log, 0, frames)
        }
        Awaited::Result => json_of(&*end_of(&log).await?),
    };
    let place = format!("/v1/agents/{}/instances/{}/turns/{}", id.agent, escaped(id.key.as_str()), id.event);
    if let Ok(place) = HeaderValue::from_str(&place) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// Waits for the end of a turn.
async fn end_of(log: &Log) -> Result<Arc<TurnEnd>> {
    let mut changes = log.changes();
    loop {
        match log.ended() {
            Some(End::Turn(end)) => return Ok(end),
            Some(End::Refused(error)) => return Err(refused(&error)),
            Some(End::Handover) => return Err(Problem::draining()),
            None => {}
        }
        if changes.changed().await.is_err() {
            return Err(Problem::draining());
        }
    }
}

/// Escapes a key for a path.
fn escaped(key: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~:@".contains(byte);
    key.bytes()
        .map(|byte| if is_plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Returns the turn that a path names.
fn turn_id(service: &Service, caller: &Caller, (agent, key, event): (String, String, String)) -> Result<TurnId> {
    Ok(TurnId { agent: service.agent(&agent)?, key: caller.key(&key)?, event: event.into() })
}

pub(crate) async fn outcome(
    State(service): State<Service>,
    caller: Caller,
    Path(path): Path<(String, String, String)>,
) -> Result<Response> {
    let id = turn_id(&service, &caller, path)?;
    match service.turns().log(&id).map(|log| log.ended()) {
        Some(Some(End::Turn(end))) => Ok(json_of(&*end)),
        Some(Some(End::Refused(error))) => Err(refused(&error)),
        Some(Some(End::Handover)) => Err(Problem::draining()),
        Some(None) => {
            let mut response = json_of(&json!({ "status": "running" }));
            *response.status_mut() = StatusCode::ACCEPTED;
            Ok(response)
        }
        None => Ok(json_of(&stored(&service, &id).await?)),
    }
}

/// Returns the end of a turn of which nothing but its outcome and its messages is left.
async fn stored(service: &Service, id: &TurnId) -> Result<TurnEnd> {
    let missing = || Problem::not_found("turn");
    let store = service.stored().ok_or_else(missing)?;
    let instance = InstanceId { agent: id.agent.clone(), key: id.key.clone() };
    let ended = store.outcome(&instance, &id.event).await?.ok_or_else(missing)?;
    let held = service.open_known(&id.agent, &id.key).await?;
    let messages = held.messages().await?;
    let answer =
        messages.iter().rev().find(|message| message.role() == Role::Assistant && message.turn() == Some(&ended.turn));
    Ok(TurnEnd::stored(&ended, answer.map(|message| &**message)))
}

pub(crate) async fn watch(
    State(service): State<Service>,
    caller: Caller,
    Path(path): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response> {
    let id = turn_id(&service, &caller, path)?;
    let last = headers.get("last-event-id").map(|last| last.to_str().unwrap_or("?"));
    let Some(log) = service.turns().log(&id) else {
        // Of a turn that has ended long ago, there is the end.
        let end = stored(&service, &id).await?;
        let log = Arc::new(Log::new(0));
        Native::new(&id.event, &log).after(last)?;
        log.push(Update::Turn(end.clone()), usize::MAX);
        log.end(End::Turn(Arc::new(end)));
        let frames = Native::new(&id.event, &log);
        return Ok(stream(log, 0, frames));
    };
    let frames = Native::new(&id.event, &log);
    let from = frames.after(last)?;
    Ok(stream(log, from, frames))
}

pub(crate) async fn cancel(
    State(service): State<Service>,
    caller: Caller,
    Path(path): Path<(String, String, String)>,
) -> Result<Response> {
    let id = turn_id(&service, &caller, path)?;
    if service.turns().log(&id).is_none() && service.stored().is_none() {
        return Err(Problem::not_found("turn"));
    }
    let held = service.open_known(&id.agent, &id.key).await?;
    let cancelled = held.cancel(&id.event).await?;
    Ok(json_of(&json!({ "cancelled": cancelled })))
}

/// Opens the conversation that a path names.
async fn conversation(service: &Service, caller: &Caller, (agent, key): (String, String)) -> Result<Held> {
    service.open_known(&service.agent(&agent)?, &caller.key(&key)?).await
}

pub(crate) async fn waits(
    State(service): State<Service>,
    caller: Caller,
    Path(path): Path<(String, String)>,
) -> Result<Response> {
    let (agent, key) = (service.agent(&path.0)?, caller.key(&path.1)?);
    let held = service.open_known(&agent, &key).await?;
    let live = service.questions().of(&agent, &key);
    if !live.is_empty() {
        // A conversation tells what else waits when its turn has ended.
        return Ok(json_of(&live.iter().map(|question| question.told().masked()).collect::<Vec<_>>()));
    }
    Ok(json_of(&held.waits().await?.iter().map(Wait::masked).collect::<Vec<_>>()))
}

pub(crate) async fn decide(
    State(service): State<Service>,
    caller: Caller,
    Path((agent, key)): Path<(String, String)>,
    Body(decisions): Body<Vec<Deciding>>,
) -> Result<Response> {
    let (agent, key) = (service.agent(&agent)?, caller.key(&key)?);
    let (id, log) = decided(&service, &caller, agent, key, decisions).await?;
    answer_with(&id, log, Awaited::Stream).await
}

/// Takes decisions, and goes on with the turn that waits for them.
pub(crate) async fn decided(
    service: &Service,
    caller: &Caller,
    agent: AgentName,
    key: InstanceKey,
    decisions: Vec<Deciding>,
) -> Result<(TurnId, Arc<Log>)> {
    let held = service.open_known(&agent, &key).await?;
    let is_empty = decisions.is_empty();
    let decisions = service.questions().decide(&agent, &key, decisions)?;
    if decisions.is_empty() && !is_empty {
        // The turn runs: its calls wait for the answers to live questions.
        return service.turns().running(&agent, &key).ok_or_else(|| Problem::not_found("turn"));
    }
    let Some(event) = held.interrupted().await?.map(|event| event.id) else {
        let message = "no call of the conversation waits for a decision";
        return Err(Error::new(ErrorCode::NOT_WAITING, message).suggest("ask what waits: `GET …/decisions`").into());
    };
    let digest = held.interrupted_digest().await?;
    let by = caller.principal.clone();
    let decisions = decisions.into_iter().map(|decision| match &by {
        Some(by) => decision.into_decision().by(Principal::new("user", by)),
        None => decision.into_decision(),
    });
    let stream = held.decide_stream(decisions);
    let id = TurnId { agent, key, event };
    let start = Start { digest, principal: by.clone(), stream, held };
    let log = service.begin(&id, start, true)?;
    service.accepted(&log).await?;
    Ok((id, log))
}

pub(crate) async fn messages(
    State(service): State<Service>,
    caller: Caller,
    Path(path): Path<(String, String)>,
) -> Result<Response> {
    let held = conversation(&service, &caller, path).await?;
    let messages = held.messages().await?;
    Ok(json_of(&messages.iter().map(|message| &**message).collect::<Vec<_>>()))
}

pub(crate) async fn agents(State(service): State<Service>, _: Caller) -> Response {
    json_of(&json!({ "agents": service.agents().names() }))
}

pub(crate) async fn instances(
    State(service): State<Service>,
    caller: Caller,
    Path(agent): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response> {
    let agent = service.agent(&agent)?;
    let store = service.stored().ok_or_else(|| Problem::not_found("list of conversations"))?;
    let prefix = caller.principal.as_ref().map(|principal| format!("{principal}:")).unwrap_or_default();
    let mut wanted = InstanceQuery::new().agent(agent.clone()).key_prefix(prefix).limit(100);
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        wanted = match &*name {
            "after" => wanted.after(InstanceId { agent: agent.clone(), key: caller.key(&value)? }),
            "limit" => match value.parse() {
                Ok(limit @ 1..=1000) => wanted.limit(limit),
                _ => return Err(Problem::request("`limit` is a number from 1 to 1000")),
            },
            name => return Err(Problem::request(format!("`{name}` is unknown: there are `after` and `limit`"))),
        };
    }
    let found = store.list(&wanted).await?;
    let next = found.next.as_ref().map(|next| &next.key);
    Ok(json_of(&json!({ "instances": found.instances, "next": next })))
}
