//! The calling side: sends the requests of one turn.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::port::not_found;
use super::{AgentCall, AgentRequest, AgentResponse, AgentsHost, Inbox, Router, Ticket};
use crate::BoxFuture;
use crate::conversation::{Message, Timestamp};
use crate::error::{Error, ErrorCode, Result};
use crate::event::TurnInfo;
use crate::event::{AgentEvent, EventSource, ReplyTo, SpanId};
use crate::name::{AgentName, EventId};

/// Sends requests to other agents on behalf of one turn. Copies belong to the same turn.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) router: Option<&'a Arc<dyn Router>>,
    pub(crate) turn: &'a Arc<TurnInfo>,
    /// F-TRACE: the parent span of the turns that the requests start.
    pub(crate) span: SpanId,
    pub(crate) inbox: &'a Arc<Inbox>,
}

impl Caller<'_> {
    /// Returns a caller of the same turn with another span.
    pub(crate) fn within(self, span: SpanId) -> Self {
        Self { span, ..self }
    }

    /// Converts a request into an event with its address. A notice has no `reply` id.
    ///
    /// # Errors
    /// `E_INPUT` for a blank input, `AGENT_NOT_FOUND`, or `CIRCULAR_CALL_DETECTED` for a request to this agent or to
    /// one that waits for this turn.
    fn agent_call(&self, request: &AgentRequest, reply: Option<String>) -> Result<(Arc<dyn Router>, AgentCall)> {
        if request.input.as_ref().is_some_and(|input| input.trim().is_empty()) {
            return Err(AgentEvent::empty_input());
        }
        let known = self.list();
        let router = self.router.ok_or_else(|| not_found(&request.target, &known))?;
        let target = AgentName::new(&request.target).map_err(|_| not_found(&request.target, &known))?;
        let mut callers = self.turn.input.callers.clone();
        callers.push(self.turn.agent.clone());
        if reply.is_some() && callers.contains(&target) {
            let chain: Vec<_> = callers.iter().chain([&target]).map(AgentName::as_str).collect();
            let message = format!("agents call one another in a circle: {}", chain.join(" -> "));
            return Err(Error::new(ErrorCode::CIRCULAR_CALL_DETECTED, message)
                .suggest("answer from what is known, or use `send`, which does not wait"));
        }
        let event = AgentEvent {
            id: EventId::random(),
            kind: "message".to_owned(),
            created_at: Timestamp::now(),
            input: request.input.clone(),
            content: Vec::new(),
            source: EventSource { kind: "agent".to_owned(), name: self.turn.agent.to_string(), other: Map::new() },
            // F-TRACE, F-AGENTS: the whole chain of calls has one trace and one principal.
            trace_id: Some(self.turn.trace.clone()),
            parent_span_id: Some(self.span),
            metadata: request.metadata.clone(),
            auth: self.turn.input.auth.clone(),
            reply_to: reply.map(|correlation_id| ReplyTo { target: self.turn.agent.clone(), correlation_id }),
            callers,
        };
        let instance = request.instance_key.clone().unwrap_or_else(|| self.turn.instance.clone());
        Ok((Arc::clone(router), AgentCall { target, instance, event }))
    }
}

/// Delivers a call and waits for the answer.
async fn await_answer(router: Arc<dyn Router>, call: AgentCall, timeout: Duration) -> Result<AgentResponse> {
    let target = call.target.clone();
    let timeout = if timeout.is_zero() { AgentRequest::DEFAULT_TIMEOUT } else { timeout };
    match tokio::time::timeout(timeout, router.request(call)).await {
        Ok(response) => Ok(AgentResponse { target, response: response? }),
        Err(_) => {
            let message = format!("the agent `{target}` did not answer within {timeout:?}");
            Err(Error::new(ErrorCode::AGENT_REQUEST_TIMEOUT, message)
                .suggest("ask for less at once, or give the request a longer timeout"))
        }
    }
}

impl AgentsHost for Caller<'_> {
    fn request(&self, request: AgentRequest) -> BoxFuture<'_, Result<AgentResponse>> {
        Box::pin(async move {
            let (router, call) = self.agent_call(&request, Some(correlation_id()))?;
            await_answer(router, call, request.timeout).await
        })
    }

    fn request_later(&self, request: AgentRequest) -> Result<Ticket> {
        let correlation_id = correlation_id();
        let (router, call) = self.agent_call(&request, Some(correlation_id.clone()))?;
        let reservation = self.inbox.reserve()?;
        let turn = Arc::clone(self.turn);
        let pending = PendingRequest { request, correlation_id: correlation_id.clone() };
        tokio::spawn(async move {
            let answer = await_answer(router, call, pending.request.timeout).await;
            reservation.fill(pending.message(&turn, answer));
        });
        Ok(Ticket { correlation_id })
    }

    fn send(&self, request: AgentRequest) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            match self.agent_call(&request, None) {
                Ok((router, call)) => router.send(call).await,
                // F-AGENTS: a missing agent is a result, not a failure.
                Err(error) if *error.code() == ErrorCode::AGENT_NOT_FOUND => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    fn list(&self) -> Vec<AgentName> {
        let mut agents = self.router.map(|router| router.agents()).unwrap_or_default();
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
    correlation_id: String,
}

impl PendingRequest {
    /// Returns the message with the answer, and with the metadata that F-AGENTS requires.
    fn message(&self, turn: &TurnInfo, answer: Result<AgentResponse>) -> Message {
        let target = &self.request.target;
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
        Message::user(format!("Answer of the agent `{target}`: {text}"))
            .with_metadata("__goondanInterAgentResponse", metadata)
    }
}
