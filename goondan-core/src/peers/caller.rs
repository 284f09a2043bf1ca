//! Owns the calling side: what a request needs to know of the turn that makes it.

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

/// The way from one turn to other agents. Copies call for the same turn.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) router: Option<&'a Arc<dyn Router>>,
    pub(crate) turn: &'a Arc<TurnInfo>,
    /// The span that a turn of another agent belongs to (F-TRACE).
    pub(crate) span: SpanId,
    pub(crate) inbox: &'a Arc<Inbox>,
}

impl Caller<'_> {
    /// The same caller inside of another span.
    pub(crate) fn within(self, span: SpanId) -> Self {
        Self { span, ..self }
    }

    /// The request as an event on its way, or why it may not go.
    fn call(&self, request: &AgentRequest, reply: Option<String>) -> Result<(Arc<dyn Router>, AgentCall)> {
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
            source: EventSource { kind: "agent".to_owned(), name: self.turn.agent.to_string(), other: Map::new() },
            // F-TRACE, F-AGENTS: one trace and one principal along the whole chain.
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

/// Waits for the answer to a call that is on its way.
async fn answer(router: Arc<dyn Router>, call: AgentCall, limit: Duration) -> Result<AgentResponse> {
    let target = call.target.clone();
    match tokio::time::timeout(limit, router.request(call)).await {
        Ok(response) => Ok(AgentResponse { target, response: response? }),
        Err(_) => {
            let message = format!("the agent `{target}` did not answer within {limit:?}");
            Err(Error::new(ErrorCode::AGENT_REQUEST_TIMEOUT, message)
                .suggest("ask for less at once, or give the request a longer timeout"))
        }
    }
}

impl AgentsHost for Caller<'_> {
    fn request(&self, request: AgentRequest) -> BoxFuture<'_, Result<AgentResponse>> {
        Box::pin(async move {
            let (router, call) = self.call(&request, Some(correlation_id()))?;
            answer(router, call, request.timeout).await
        })
    }

    fn request_later(&self, request: AgentRequest) -> Result<Ticket> {
        let correlation_id = correlation_id();
        let (router, call) = self.call(&request, Some(correlation_id.clone()))?;
        let place = self.inbox.reserve()?;
        let turn = Arc::clone(self.turn);
        let asked = Asked { request, correlation_id: correlation_id.clone() };
        tokio::spawn(async move {
            let answer = answer(router, call, asked.request.timeout).await;
            place.fill(asked.message(&turn, answer));
        });
        Ok(Ticket { correlation_id })
    }

    fn send(&self, request: AgentRequest) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            match self.call(&request, None) {
                Ok((router, call)) => router.send(call).await,
                // F-AGENTS: nobody there is an answer, not a failure.
                Err(error) if *error.code() == ErrorCode::AGENT_NOT_FOUND => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    fn list(&self) -> Vec<AgentName> {
        self.router.map(|router| router.agents()).unwrap_or_default()
    }
}

fn correlation_id() -> String {
    EventId::random().to_string()
}

/// A request whose answer comes as a message.
struct Asked {
    request: AgentRequest,
    correlation_id: String,
}

impl Asked {
    /// The message that brings the answer, with the metadata of F-AGENTS.
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
