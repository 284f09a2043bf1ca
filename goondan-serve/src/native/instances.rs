//! Conversations: their state, their waits, and their end.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use goondan_core::{AgentName, Error, ErrorCode, InstanceKey, LiveWait, Wait};
use goondan_runtime::store::{InstanceId, InstanceQuery, InstanceStatus, StoredInstance};
use goondan_wire::Deciding;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::{json_of, turns};
use crate::feed::{self, Begun};
use crate::log::Log;
use crate::problem::{Problem, Result};
use crate::questions::made_by;
use crate::request::Request;
use crate::schemas;
use crate::tokens::Right;
use crate::turns::{Start, TurnId};
use crate::watch::Native;

/// The time in which a conversation closes whose last handle was dropped.
const CLOSES: Duration = Duration::from_secs(5);

/// The agents that are served.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Agents")]
pub(crate) struct AgentList {
    #[schemars(with = "Vec<String>")]
    agents: Vec<AgentName>,
}

/// Conversations of an agent, by key.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Instances")]
pub(crate) struct InstanceList {
    #[schemars(with = "Vec<schemas::Instance>")]
    instances: Vec<StoredInstance>,
    /// The `after` of the next page, if there is one.
    #[schemars(with = "Option<String>")]
    next: Option<InstanceKey>,
}

/// A call that waits for a person: in a turn that is suspended, or in one that runs and goes on as soon as it is
/// answered.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Waiting {
    Suspended(Wait),
    Live(LiveWait),
}

pub(crate) async fn waits(request: Request) -> Result<Response> {
    let (agent, key) = request.conversation(Right::Read)?;
    let service = &request.service;
    let held = service.open_known(&agent, &key).await?;
    let live = service.questions().of(&agent, &key);
    // Other waits are known when the turn has ended, which may be one in the background.
    let runs = service.turns().running(&agent, &key).is_some() || held.running().is_some();
    let waiting: Vec<_> = match runs {
        false => held.waits().await?.iter().map(|wait| Waiting::Suspended(wait.masked())).collect(),
        true => live.iter().map(|question| Waiting::Live(question.told().masked())).collect(),
    };
    Ok(json_of(&waiting))
}

pub(crate) async fn decide(request: Request) -> Result<Response> {
    let conversation = request.conversation(Right::Decide)?;
    let (id, log) = decided(&request, conversation, request.json()?).await?;
    Ok(turns::streamed(&request.uri, &id, log))
}

/// Takes decisions, and goes on with the turn that waits for them.
pub(crate) async fn decided(
    request: &Request,
    (agent, key): (AgentName, InstanceKey),
    decisions: Vec<Deciding>,
) -> Result<(TurnId, Arc<Log>)> {
    let (service, principal) = (&request.service, request.caller.principal());
    let children = request.children()?;
    let held = service.open_known(&agent, &key).await?;
    let is_empty = decisions.is_empty();
    let decisions = service.questions().decide(&agent, &key, decisions, principal)?;
    if decisions.is_empty() && !is_empty {
        // The turn runs: its calls wait for the answers to live questions.
        return service.turns().running(&agent, &key).ok_or_else(|| Problem::not_found("turn"));
    }
    let Some(event) = held.interrupted().await?.map(|event| event.id) else {
        let message = "no call of the conversation waits for a decision";
        return Err(Error::new(ErrorCode::NOT_WAITING, message).suggest("ask what waits: `GET …/decisions`").into());
    };
    let digest = held.interrupted_digest().await?;
    let decisions = decisions.into_iter().map(|decision| made_by(decision, principal));
    let stream = children.stream(held.decide_stream(decisions));
    let id = TurnId { agent, key, event };
    let start = Start { digest, principal: principal.map(str::to_owned), stream, held };
    let log = service.begin(&id, start, true)?;
    service.accepted(&log).await?;
    Ok((id, log))
}

pub(crate) async fn messages(request: Request) -> Result<Response> {
    let (agent, key) = request.conversation(Right::Read)?;
    let service = &request.service;
    let messages = service.messages(&agent, &key).await?;
    Ok(json_of(&messages.iter().map(|message| &**message).collect::<Vec<_>>()))
}

pub(crate) async fn agents(request: Request) -> Result<Response> {
    let agents = request.service.names().into_iter().filter(|agent| request.caller.sees(agent));
    Ok(json_of(&AgentList { agents: agents.collect() }))
}

pub(crate) async fn list(request: Request) -> Result<Response> {
    let agent = request.agent(Right::Read)?;
    let caller = &request.caller;
    let store = request.service.stored().ok_or_else(|| Problem::not_found("list of conversations"))?;
    let mut wanted = InstanceQuery::new().agent(agent.clone()).key_prefix(caller.beginning()).limit(100);
    for (name, value) in request.query() {
        wanted = match &*name {
            "after" => wanted.after(InstanceId { agent: agent.clone(), key: InstanceKey::new(&value)? }),
            "limit" => match value.parse() {
                Ok(limit @ 1..=1000) => wanted.limit(limit),
                _ => return Err(Problem::request("`limit` is a number from 1 to 1000")),
            },
            "status" => wanted.status(status(&value)?),
            name => {
                let message = format!("`{name}` is unknown: there are `after`, `limit` and `status`");
                return Err(Problem::request(message));
            }
        };
    }
    let mut found = store.list(&wanted).await?;
    // A principal with one key alone.
    found.instances.retain(|found| caller.has_key(found.id.key.as_str()));
    Ok(json_of(&InstanceList { instances: found.instances, next: found.next.map(|next| next.key) }))
}

fn status(name: &str) -> Result<InstanceStatus> {
    use InstanceStatus::{Idle, Interrupted, Open, Suspended, Unreadable};
    let mut all = [Idle, Interrupted, Suspended, Open, Unreadable].into_iter();
    all.find(|status| status.as_str() == name)
        .ok_or_else(|| Problem::request("`status` is `idle`, `interrupted`, `suspended`, `open` or `unreadable`"))
}

pub(crate) async fn show(request: Request) -> Result<Response> {
    let (agent, key) = request.conversation(Right::Read)?;
    let service = &request.service;
    match service.listed(&agent, &key).await {
        Ok(found) => Ok(json_of(&found)),
        Err(problem) => Err(problem.unwrap_or_else(|| Problem::not_found("list of conversations"))),
    }
}

pub(crate) async fn delete(request: Request) -> Result<Response> {
    let (agent, key) = request.conversation(Right::Delete)?;
    let service = &request.service;
    let store = service.stored().ok_or_else(|| Problem::not_found("list of conversations"))?;
    let conflict = || {
        let message = "a turn of the conversation runs or is queued";
        let error = Error::new(ErrorCode::STORE_LOCKED, message).suggest("cancel it, or wait for its end");
        Problem::from(error).with_status(StatusCode::CONFLICT)
    };
    let turns = service.turns();
    if turns.running(&agent, &key).is_some() || turns.has_waiting(&agent, &key) {
        return Err(conflict());
    }
    // It may be open, in case that another turn follows.
    let held = service.open_known(&agent, &key).await?;
    if held.running().is_some() {
        return Err(conflict());
    }
    held.close().await?;
    drop(held);
    let instance = InstanceId { agent: agent.clone(), key: key.clone() };
    let until = Instant::now() + CLOSES;
    loop {
        match store.delete(&instance).await {
            Ok(true) => break,
            Ok(false) => return Err(Problem::not_found("conversation")),
            Err(error) if *error.code() != ErrorCode::STORE_LOCKED => return Err(error.into()),
            // Another handle of it closes.
            Err(_) if Instant::now() < until => sleep(Duration::from_millis(20)).await,
            Err(error) => return Err(Problem::from(error).with_status(StatusCode::CONFLICT)),
        }
    }
    service.turns().forget_all(&agent, &key);
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Streams the turns of a conversation that run, and those that begin later.
pub(crate) async fn events(request: Request) -> Result<Response> {
    let service = &request.service;
    if service.is_draining() {
        return Err(Problem::draining());
    }
    let (agent, key) = request.conversation(Right::Read)?;
    let feed = service.feed(InstanceId { agent: agent.clone(), key: key.clone() });
    let last = request.header("last-event-id").and_then(|last| last.to_str().ok());
    let begun = service.turns().running(&agent, &key).map(|(id, log)| {
        // A place in another turn says nothing of this one.
        let from = Native::new(&id.event, &log).after(last).unwrap_or(0);
        Begun::new(id.event, log, from)
    });
    Ok(feed::stream(begun, feed))
}
