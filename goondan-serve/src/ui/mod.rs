//! The message stream of AI SDK UI: pages that are written with `useChat` talk to an agent unmodified.

mod body;
mod chunks;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use goondan_core::EventSource;
use serde_json::json;

use crate::caller::Caller;
use crate::log::Log;
use crate::native::{decided, event_id, json_of, read};
use crate::problem::Result;
use crate::service::Service;
use crate::watch::stream;
use body::{Asked, Body};
use chunks::Chunks;

/// Answers the newest message of a chat, or goes on after its approvals.
pub(crate) async fn post(
    State(service): State<Service>,
    caller: Caller,
    Path(agent): Path<String>,
    body: std::result::Result<Bytes, BytesRejection>,
) -> Result<Response> {
    let agent = service.agent(&agent)?;
    let body: Body = read(body)?;
    let key = caller.key_of(&body.id)?;
    Ok(match body.asked()? {
        Asked::Input { mut event, message } => {
            event.source = EventSource::new("connector", "ai-sdk");
            event.auth = caller.auth();
            let event = event.with_id(event_id(&caller, (agent.as_str(), key.as_str()), message));
            let (id, log) = service.run(caller.principal, agent, key, event).await?;
            answer(Chunks::new(&id.event), log)
        }
        Asked::Decisions { decisions, calls } => {
            let (id, log) = decided(&service, &caller, agent, key, decisions).await?;
            answer(Chunks::new(&id.event).going_on(calls), log)
        }
    })
}

/// Streams the turn that runs in a chat again, from its beginning.
pub(crate) async fn resume(
    State(service): State<Service>,
    caller: Caller,
    Path((agent, id)): Path<(String, String)>,
) -> Result<Response> {
    let (agent, key) = (service.agent(&agent)?, caller.key_of(&id)?);
    match service.turns().running(&agent, &key) {
        Some((id, log)) => Ok(answer(Chunks::new(&id.event), log)),
        None => Ok(StatusCode::NO_CONTENT.into_response()),
    }
}

/// Cancels the turn that runs in a chat: a page that stops reading does not.
pub(crate) async fn cancel(
    State(service): State<Service>,
    caller: Caller,
    Path((agent, id)): Path<(String, String)>,
) -> Result<Response> {
    let (agent, key) = (service.agent(&agent)?, caller.key_of(&id)?);
    let cancelled = match service.turns().running(&agent, &key) {
        Some((id, _)) => service.open(&agent, &key).await?.cancel(&id.event).await?,
        None => false,
    };
    Ok(json_of(&json!({ "cancelled": cancelled })))
}

fn answer(chunks: Chunks, log: Arc<Log>) -> Response {
    let mut response = stream(log, 0, chunks);
    let version = HeaderName::from_static("x-vercel-ai-ui-message-stream");
    response.headers_mut().insert(version, HeaderValue::from_static("v1"));
    response
}
