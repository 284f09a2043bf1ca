//! The calling side: sends the requests of one turn.

use std::iter::once;
use std::sync::Arc;
use std::time::Duration;

use goondan_core::host::AgentEventExt;
use goondan_core::{
    AgentEvent, AgentName, AgentRequest, AgentResponse, Error, ErrorCode, EventId, Message, Part, ReplyTo,
    RequestTarget, RequestTicket, Result, SpanId, TextPart, Timestamp, TurnInfo,
};
use serde_json::{Value, json};

use super::asked::Place;
use super::inbox::Inbox;
use super::reach::Reach;
use super::tree::Asked;
use crate::live::{Asker, Clock, Questions, within};
use crate::ports::router::{AgentCall, AgentReply, Router, not_found};
use crate::spec::AgentSpec;

/// The live questions of a conversation, and the clock that stands still meanwhile.
// ASK-04
#[derive(Clone, Copy)]
pub(crate) struct Asks<'a> {
    pub(crate) questions: &'a Questions,
    pub(crate) clock: &'a Clock,
}

/// The most agents that wait for one another, where one asks itself.
const DEEPEST: usize = 32;

/// Sends requests to other agents on behalf of one turn. Copies belong to the same turn.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) spec: &'a AgentSpec,
    pub(crate) turn: &'a Arc<TurnInfo>,
    /// F-TRACE: the parent span of the turns that the requests start.
    pub(crate) span: SpanId,
    pub(crate) inbox: &'a Arc<Inbox>,
    pub(crate) reach: &'a Reach,
    pub(crate) asks: &'a Asks<'a>,
    pub(crate) asked: &'a Asked,
    pub(crate) place: Place<'a>,
}

impl Caller<'_> {
    /// Returns a caller of the same turn with another span.
    pub(crate) fn within(self, span: SpanId) -> Self {
        Self { span, ..self }
    }

    /// Converts a request into an event with its address. A notice has no `reply` id.
    ///
    /// # Errors
    /// `E_INPUT` for a request to a model, `AGENT_NOT_FOUND`, or `CIRCULAR_CALL_DETECTED` for a request to this agent
    /// or to one that waits for this turn, unless this agent is asked for a conversation of its own.
    fn agent_call(&self, request: &AgentRequest, reply: Option<String>) -> Result<(Arc<dyn Router>, AgentCall)> {
        let RequestTarget::Agent(name) = &request.target else {
            return Err(Error::new(ErrorCode::INPUT, "a model is asked only by a request that waits for its answer")
                .suggest("use `request`, which is the only one that takes a model"));
        };
        let router =
            self.spec.router.as_ref().ok_or_else(|| self.reach.no_router(&self.turn.agent, &request.target))?;
        let target = AgentName::new(name).map_err(|_| not_found(name, &self.list()))?;
        let mut callers = self.turn.input.callers.clone();
        callers.push(self.turn.agent.clone());
        // A conversation of its own waits for nothing.
        let is_circle = callers.contains(&target) && !(request.ephemeral && target == self.turn.agent);
        if reply.is_some() && (is_circle || callers.len() > DEEPEST) {
            let chain: Vec<_> = callers.iter().chain([&target]).map(AgentName::as_str).collect();
            let how = if is_circle { "in a circle" } else { "without an end" };
            let message = format!("agents call one another {how}: {}", chain.join(" -> "));
            return Err(Error::new(ErrorCode::CIRCULAR_CALL_DETECTED, message)
                .suggest("answer from what is known, or use `send`, which does not wait"));
        }
        let mut event = AgentEvent::from_agent(&self.turn.agent, request.input.clone());
        if !request.files.is_empty() {
            let text = request.input.iter().map(|text| TextPart::new(text.as_str()).into());
            event.content = text.chain(request.files.iter().cloned().map(Part::from)).collect();
        }
        // F-TRACE, F-AGENTS: the whole chain of calls has one trace and one principal.
        event.trace_id = Some(self.turn.trace.clone());
        event.parent_span_id = Some(self.span);
        event.metadata = request.metadata.clone();
        event.auth = self.turn.input.auth.clone();
        event.reply_to = reply.map(|correlation_id| ReplyTo::new(self.turn.agent.clone(), correlation_id));
        event.callers = callers;
        event.guards.clone_from(&self.turn.input.guards);
        self.spec.add_guards(&mut event.guards);
        event.answer = request.answer.clone();
        event.wakings = self.turn.input.wakings;
        let instance = match &request.instance_key {
            Some(instance) => instance.clone(),
            None if request.ephemeral => self.asked.ephemeral_key(self.turn, self.place, self.inbox)?,
            None => self.turn.instance.clone(),
        };
        let mut call = AgentCall::new(target, instance, event);
        call.event.id = self.asked.event_id(self.turn, self.place, self.inbox, &call);
        Ok((Arc::clone(router), call))
    }
}

/// Delivers a call whose answer comes later, and waits for it, however long a person takes to decide about it. When its
/// time is over, the turn that would answer is cancelled.
// ASK-01
async fn await_final_answer(router: Arc<dyn Router>, call: AgentCall, request: &AgentRequest) -> Result<AgentResponse> {
    let asker = Asker::for_later();
    let call = AgentCall { asker: Some(asker.clone()), ..call };
    let (target, timeout) = (call.target.clone(), request.limit());
    let mut answer = router.request(call.clone());
    let answer = match within(timeout, Some(&asker.clock), &mut answer).await {
        Some(Err(error)) if *error.code() == ErrorCode::AGENT_SUSPENDED => router.request(call.until_decided()).await,
        Some(answer) => answer,
        None => {
            asker.cancel();
            // The turn ends now.
            drop(answer.await);
            Err(timed_out(&target, timeout))
        }
    };
    answer.map(|reply| response(&target, reply))
}

fn response(target: &AgentName, reply: AgentReply) -> AgentResponse {
    let (text, files) = reply.into_parts();
    AgentResponse::new(RequestTarget::Agent(target.to_string()), text, None).with_files(files)
}

fn timed_out(target: &AgentName, timeout: Duration) -> Error {
    let message = format!("the agent `{target}` did not answer within {timeout:?}");
    Error::new(ErrorCode::AGENT_REQUEST_TIMEOUT, message)
        .suggest("ask for less at once, or give the request a longer timeout")
}

impl Caller<'_> {
    /// Sends a request and waits for its answer. The turn that answers belongs to this one.
    // D-40
    pub(crate) async fn request(&self, request: AgentRequest) -> Result<AgentResponse> {
        let (router, call) = self.agent_call(&request, Some(correlation_id()))?;
        let (target, timeout) = (call.target.clone(), request.limit());
        let answer = self.asked.wait((router, call), self.turn, self.place, self.inbox, self.asks.clock);
        match within(timeout, Some(self.asks.clock), answer).await {
            Some(reply) => Ok(response(&target, reply?)),
            None => Err(timed_out(&target, timeout)),
        }
    }

    pub(crate) fn request_later(&self, request: AgentRequest) -> Result<RequestTicket> {
        let correlation_id = correlation_id();
        let (router, call) = self.agent_call(&request, Some(correlation_id.clone()))?;
        let Some(reservation) = self.inbox.reserve(&call.event.id)? else {
            return Ok(RequestTicket { correlation_id });
        };
        let turn = Arc::clone(self.turn);
        let event = call.event.id.clone();
        let pending = PendingRequest { request, event, correlation_id: correlation_id.clone() };
        tokio::spawn(async move {
            let answer = await_final_answer(router, call, &pending.request).await;
            reservation.fill(pending.message(&turn, answer));
        });
        Ok(RequestTicket { correlation_id })
    }

    pub(crate) async fn send(&self, request: AgentRequest) -> Result<bool> {
        let sent = match self.agent_call(&request, None) {
            Ok((router, call)) => router.send(call).await,
            Err(error) => Err(error),
        };
        let why = match sent {
            Ok(true) => return Ok(true),
            Ok(false) => not_found(&request.target, &self.list()),
            Err(error) if *error.code() == ErrorCode::AGENT_NOT_FOUND => error,
            Err(error) => return Err(error),
        };
        // F-AGENTS: a missing agent is a result, not a failure.
        self.reach.missed(&self.turn.agent, &request.target, &why);
        Ok(false)
    }

    pub(crate) fn list(&self) -> Vec<AgentName> {
        let mut agents = self.spec.router.as_ref().map(|router| router.agents()).unwrap_or_default();
        // Not the caller: a request to itself is a circle.
        agents.retain(|agent| *agent != self.turn.agent);
        agents
    }
}

fn correlation_id() -> String {
    EventId::random().to_string()
}

/// A request whose answer is delivered as a message.
struct PendingRequest {
    request: AgentRequest,
    event: EventId,
    correlation_id: String,
}

impl PendingRequest {
    /// Returns the message with the answer, and with the metadata that F-AGENTS requires.
    fn message(&self, turn: &TurnInfo, answer: Result<AgentResponse>) -> Message {
        let target = self.request.target.to_string();
        let (status, text, error) = match &answer {
            Ok(answer) => ("ok", answer.response.clone(), None),
            Err(error) if *error.code() == ErrorCode::AGENT_REQUEST_TIMEOUT => {
                ("timeout", error.to_string(), Some(error))
            }
            Err(error) => ("error", error.to_string(), Some(error)),
        };
        let mut metadata = json!({
            "kind": "interAgentResponse",
            "version": 1,
            "requestId": self.correlation_id,
            "requestEventId": self.event,
            "fromAgentId": target,
            "toAgentId": turn.agent,
            "async": true,
            "status": status,
            "receivedAt": Timestamp::now(),
            "traceId": turn.trace,
        });
        if let Some(error) = error {
            metadata["errorCode"] = error.code().to_string().into();
            metadata["errorMessage"] = error.message().into();
        }
        if !self.request.metadata.is_empty() {
            metadata["requestMetadata"] = Value::Object(self.request.metadata.clone());
        }
        let text = TextPart::new(format!("Answer of the agent `{target}`: {text}"));
        let files = answer.map(|answer| answer.files).unwrap_or_default();
        let parts: Vec<_> = once(Part::from(text)).chain(files.into_iter().map(Part::from)).collect();
        Message::user(parts).with_metadata(ANSWER, metadata)
    }
}

/// The member of the metadata of a message that is the answer of another agent.
const ANSWER: &str = "__goondanInterAgentResponse";

/// Returns the request that a message answers, if it is the answer of another agent.
pub(crate) fn answered_request(message: &Message) -> Option<EventId> {
    message.metadata().get(ANSWER)?["requestEventId"].as_str().map(EventId::from)
}
