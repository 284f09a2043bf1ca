//! The message stream of AI SDK UI: pages that are written with `useChat` talk to an agent unmodified.

pub(crate) mod chat;
mod chunks;

use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use goondan_core::{AgentName, ErrorCode, EventId, EventSource, InstanceKey};
use goondan_runtime::Instance;
use goondan_runtime::store::TurnOutcome;

use crate::front_end::Teller;
use crate::log::Log;
use crate::native::instances::decided;
use crate::native::turns::Cancelled;
use crate::native::{event_id, json_of};
use crate::problem::{Problem, Result};
use crate::request::Request;
use crate::service::Service;
use crate::task::spawn;
use crate::tokens::Right;
use crate::turns::TurnId;
use crate::watch::stream_with;
use chat::{Asked, Chat};
use chunks::Page;

/// Answers the newest message of a chat, or goes on after its approvals.
pub(crate) async fn post(request: Request) -> Result<Response> {
    let Request { service, caller, .. } = &request;
    let children = request.children()?;
    let chat: Chat = request.json()?;
    Ok(match chat.asked()? {
        Asked::Input { mut event, message, again } => {
            let (agent, key) = request.chat(&chat.id, Right::Turn)?;
            event.source = EventSource::new("connector", "ai-sdk");
            event.auth = caller.auth();
            let base = event_id("ai-sdk", caller, (agent.as_str(), key.as_str()), message);
            let event = event.with_id(generation(service, (&agent, &key), &base, again).await?);
            let (id, log) = service.run(caller.principal(), agent, key, event, children).await?;
            answer(page_of(&id), Arc::clone(&log), leaving(service, id, log))
        }
        Asked::Decisions { decisions, calls } => {
            let conversation = request.chat(&chat.id, Right::Decide)?;
            let (id, log) = decided(&request, conversation, decisions).await?;
            answer(page_of(&id).going_on(calls), Arc::clone(&log), leaving(service, id, log))
        }
    })
}

/// Returns the event that a message stands for: the event of its newest answer. `again` takes back the turn of that,
/// and those after it, and returns the event of another one; so does a failure that may pass.
async fn generation(
    service: &Service,
    (agent, key): (&AgentName, &InstanceKey),
    base: &EventId,
    again: bool,
) -> Result<EventId> {
    let numbered = |number: u32| match number {
        0 => base.clone(),
        number => format!("{base}#{number}").into(),
    };
    if again && service.stored().is_none() {
        return Err(Problem::request("an answer is made again only where the service knows the store"));
    }
    let turn = |number| TurnId { agent: agent.clone(), key: key.clone(), event: numbered(number) };
    let (mut number, mut newest) = (0, None);
    while let Some(ended) = service.ended(&turn(number)).await? {
        newest = Some(ended);
        number += 1;
    }
    let Some(ended) = newest else { return Ok(base.clone()) };
    let may_pass = matches!(&ended.outcome, TurnOutcome::Failed { code, .. } if MAY_PASS.contains(code));
    if service.turns().log(&turn(number)).is_some() {
        return Ok(numbered(number));
    }
    if !again && !may_pass {
        return Ok(numbered(number - 1));
    }
    let held = service.open(agent, key).await?;
    take_back(&held, &ended.turn).await?;
    Ok(numbered(number))
}

/// The failures after which a message that is sent again has another turn.
const MAY_PASS: [ErrorCode; 5] = [
    ErrorCode::MODEL_NETWORK,
    ErrorCode::MODEL_OVERLOADED,
    ErrorCode::MODEL_RATE_LIMIT,
    ErrorCode::MODEL_TIMEOUT,
    ErrorCode::TURN_TIMEOUT,
];

/// Takes the conversation back to before a turn, if it still has that.
async fn take_back(instance: &Instance, turn: &goondan_core::TurnId) -> Result<()> {
    let messages = instance.messages().await?;
    let Some(first) = messages.iter().position(|message| message.turn() == Some(turn)) else { return Ok(()) };
    match messages[..first].iter().rev().find_map(|message| message.turn()) {
        Some(before) => drop(instance.rewind(before).await?),
        None => while instance.undo().await?.turns.iter().all(|of| of != turn) {},
    }
    Ok(())
}

/// Streams the turn that runs in a chat again, from its beginning.
pub(crate) async fn resume(request: Request) -> Result<Response> {
    let (agent, key) = request.chat_of_path(Right::Read)?;
    let service = &request.service;
    match service.turns().running(&agent, &key) {
        Some((id, log)) => Ok(answer(page_of(&id), Arc::clone(&log), leaving(service, id, log))),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// Cancels the turn that runs in a chat: a page that stops reading does not.
pub(crate) async fn cancel(request: Request) -> Result<Response> {
    let (agent, key) = request.chat_of_path(Right::Turn)?;
    let service = &request.service;
    let cancelled = match service.turns().running(&agent, &key) {
        Some((id, _)) => service.open(&agent, &key).await?.cancel(&id.event).await?,
        None => false,
    };
    Ok(json_of(&Cancelled { cancelled }))
}

/// Returns a page that is told of a turn.
fn page_of(id: &TurnId) -> Teller<Page> {
    Teller::new(Page { message: id.event.clone() }, String::new())
}

/// Cancels a turn when it is dropped before the end of that.
struct Leaving {
    service: Service,
    id: TurnId,
    log: Arc<Log>,
}

/// Returns the guard that cancels a turn when the page goes away, if the service is configured so.
fn leaving(service: &Service, id: TurnId, log: Arc<Log>) -> Option<Leaving> {
    service.cancels_on_disconnect().then(|| Leaving { service: service.clone(), id, log })
}

impl Drop for Leaving {
    fn drop(&mut self) {
        if self.log.ended().is_some() || self.service.is_draining() {
            return;
        }
        let (service, id) = (self.service.clone(), self.id.clone());
        spawn(Box::pin(async move {
            if let Ok(held) = service.open(&id.agent, &id.key).await
                && let Err(error) = held.cancel(&id.event).await
            {
                tracing::warn!(turn = %id.event, "a page has gone away, and its turn goes on: {error}");
            }
        }));
    }
}

fn answer(chunks: Teller<Page>, log: Arc<Log>, leaving: Option<Leaving>) -> Response {
    let mut response = stream_with(log, 0, chunks, leaving);
    let version = HeaderName::from_static("x-vercel-ai-ui-message-stream");
    response.headers_mut().insert(version, HeaderValue::from_static("v1"));
    response
}
