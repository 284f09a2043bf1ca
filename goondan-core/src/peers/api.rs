//! Owns what extensions and tools see of other agents (AGENTS-01, D-17).

use std::time::Duration;

use serde_json::{Map, Value};

use crate::BoxFuture;
use crate::error::Result;
use crate::name::{AgentName, InstanceKey};

/// The way to other agents. Made by [`TurnContext::agents`](crate::TurnContext::agents),
/// [`StepContext::agents`](crate::StepContext::agents) and [`ToolContext::runtime`](crate::ToolContext::runtime).
#[derive(Clone, Copy)]
pub struct AgentsApi<'a> {
    host: &'a dyn AgentsHost,
}

/// Behind an [`AgentsApi`].
pub trait AgentsHost: Send + Sync {
    /// Asks another agent and waits for its answer.
    fn request(&self, request: AgentRequest) -> BoxFuture<'_, Result<AgentResponse>>;
    /// Asks another agent; the answer comes as a message before a later step.
    ///
    /// # Errors
    /// When the request cannot be sent.
    fn request_later(&self, request: AgentRequest) -> Result<Ticket>;
    /// Tells another agent something, and whether it was taken in.
    fn send(&self, request: AgentRequest) -> BoxFuture<'_, Result<bool>>;
    /// The agents that can be reached.
    fn list(&self) -> Vec<AgentName>;
}

/// A question, or a notice, to another agent.
///
/// ```
/// use std::time::Duration;
/// use goondan::AgentRequest;
/// let request = AgentRequest::new("researcher").input("who wrote this?").timeout(Duration::from_secs(60));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRequest {
    /// The name of the other agent.
    pub target: String,
    /// What it is asked or told.
    pub input: Option<String>,
    /// Which of its conversations this belongs to; the one with the caller's key unless said otherwise.
    pub instance_key: Option<InstanceKey>,
    /// How long to wait for an answer: 15 s unless said otherwise (AGENTS-04).
    pub timeout: Duration,
    /// Values for the extensions of the other agent.
    pub metadata: Map<String, Value>,
}

impl AgentRequest {
    /// How long a request waits unless it says otherwise (AGENTS-04).
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

    /// A request to the agent `target`.
    pub fn new(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            input: None,
            instance_key: None,
            timeout: Self::DEFAULT_TIMEOUT,
            metadata: Map::new(),
        }
    }

    /// Says what the agent is asked or told.
    #[must_use]
    pub fn input(mut self, input: impl Into<String>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Says which of its conversations this belongs to.
    #[must_use]
    pub fn instance(mut self, key: InstanceKey) -> Self {
        self.instance_key = Some(key);
        self
    }

    /// Says how long to wait.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Adds a value for the extensions of the other agent.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }
}

/// What another agent answered (AGENTS-07).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentResponse {
    /// The agent that answered.
    pub target: AgentName,
    /// Its answer.
    pub response: String,
}

/// The receipt of a request whose answer comes later (F-AGENTS).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// What joins the request and the answer: `requestId` in the metadata of the message that brings it.
    pub correlation_id: String,
}

impl<'a> AgentsApi<'a> {
    /// The way through `host`.
    #[doc(hidden)]
    pub fn new(host: &'a dyn AgentsHost) -> Self {
        Self { host }
    }

    /// Asks another agent and waits for its answer. The agent is started if it does not run (AGENTS-06).
    ///
    /// # Errors
    /// `AGENT_REQUEST_TIMEOUT`, `AGENT_NOT_FOUND`, `CIRCULAR_CALL_DETECTED` with the chain of callers (AGENTS-05), or the
    /// error of its turn.
    pub async fn request(&self, request: AgentRequest) -> Result<AgentResponse> {
        self.host.request(request).await
    }

    /// Asks another agent without waiting. The answer is appended as a message before the next step that starts after it
    /// came, with `__goondanInterAgentResponse` in its metadata (F-AGENTS).
    ///
    /// # Errors
    /// `AGENT_NOT_FOUND`, `CIRCULAR_CALL_DETECTED`, or when too many answers are outstanding.
    pub fn request_later(&self, request: AgentRequest) -> Result<Ticket> {
        self.host.request_later(request)
    }

    /// Tells another agent something without waiting for its turn (AGENTS-08). False when nobody took it in.
    ///
    /// # Errors
    /// When the router fails.
    pub async fn send(&self, request: AgentRequest) -> Result<bool> {
        self.host.send(request).await
    }

    /// The agents that can be reached.
    pub fn list(&self) -> Vec<AgentName> {
        self.host.list()
    }
}
