//! The API through which extensions and tools reach other agents.
// AGENTS-01, D-17

use std::time::Duration;

use serde_json::{Map, Value};

use crate::BoxFuture;
use crate::depth::Unchecked;
use crate::error::Result;
use crate::name::{AgentName, InstanceKey};

/// Sends requests and notices to other agents. Returned by [`TurnContext::agents`](crate::TurnContext::agents),
/// [`StepContext::agents`](crate::StepContext::agents) and [`ToolContext::runtime`](crate::ToolContext::runtime).
#[derive(Clone, Copy)]
pub struct AgentsApi<'a> {
    host: &'a dyn AgentsHost,
}

/// The host behind an [`AgentsApi`].
pub trait AgentsHost: Send + Sync {
    /// Sends a request to another agent and waits for its answer.
    fn request(&self, request: AgentRequest) -> BoxFuture<'_, Result<AgentResponse>>;
    /// Sends a request to another agent; the answer is appended as a message before a later step.
    ///
    /// # Errors
    /// When the request cannot be sent.
    fn request_later(&self, request: AgentRequest) -> Result<Ticket>;
    /// Sends a notice to another agent, and returns whether it was accepted.
    fn send(&self, request: AgentRequest) -> BoxFuture<'_, Result<bool>>;
    /// Returns the other agents that can be reached.
    fn list(&self) -> Vec<AgentName>;
}

/// A request, or a notice, to another agent.
///
/// ```
/// use std::time::Duration;
/// use goondan::agent::AgentRequest;
/// let request = AgentRequest::new("researcher").input("who wrote this?").timeout(Duration::from_secs(60));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AgentRequest {
    /// The name of the other agent.
    pub target: String,
    /// The text for the other agent: none, or one that is not blank.
    pub input: Option<String>,
    /// The instance of the other agent; defaults to the one with the caller's key.
    pub instance_key: Option<InstanceKey>,
    /// How long to wait for an answer; defaults to [`DEFAULT_TIMEOUT`](Self::DEFAULT_TIMEOUT). Zero is the default too.
    pub timeout: Duration,
    /// Values for the extensions of the other agent.
    pub metadata: Map<String, Value>,
}

impl AgentRequest {
    /// How long a request waits for an answer by default: 15 seconds.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

    /// Returns a request to the agent `target`.
    pub fn new(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            input: None,
            instance_key: None,
            timeout: Self::DEFAULT_TIMEOUT,
            metadata: Map::new(),
        }
    }

    /// Sets the text for the other agent. A blank text is refused with `E_INPUT` when the request is sent.
    #[must_use]
    pub fn input(mut self, input: impl Into<String>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Sets the instance of the other agent.
    #[must_use]
    pub fn instance(mut self, key: InstanceKey) -> Self {
        self.instance_key = Some(key);
        self
    }

    /// Sets how long to wait for an answer. Zero is the default, [`DEFAULT_TIMEOUT`](Self::DEFAULT_TIMEOUT).
    // F-AGENTS
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

impl AgentRequest {
    /// Returns the request if no value in its metadata is too deep, and drops it otherwise.
    fn checked(mut self) -> Result<Self> {
        let metadata = Unchecked::from(std::mem::take(&mut self.metadata)).into_checked();
        self.metadata = metadata.map_err(|error| error.refuse("a value in the metadata of the request"))?;
        Ok(self)
    }
}

/// The answer of another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentResponse {
    /// The agent that answered.
    pub target: AgentName,
    /// Its answer.
    pub response: String,
}

/// The receipt of a request whose answer arrives later; returned by [`AgentsApi::request_later`].
// F-AGENTS
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The id that connects the request and the answer: `requestId` in the metadata of the message with the answer.
    pub correlation_id: String,
}

impl<'a> AgentsApi<'a> {
    /// Returns an API that uses `host`.
    #[doc(hidden)]
    pub fn new(host: &'a dyn AgentsHost) -> Self {
        Self { host }
    }

    /// Sends a request to another agent and waits for its answer. The instance is opened if it is not running.
    ///
    /// # Errors
    /// `AGENT_REQUEST_TIMEOUT`, `AGENT_NOT_FOUND`, `CIRCULAR_CALL_DETECTED` with the chain of callers, `E_INPUT` when
    /// the input is blank, `E_VALUE_DEPTH` for metadata that is nested too deeply, or the error of the other agent's
    /// turn.
    pub async fn request(&self, request: AgentRequest) -> Result<AgentResponse> {
        self.host.request(request.checked()?).await
    }

    /// Sends a request to another agent without waiting. The answer is appended as a message before the next step that
    /// starts after its arrival, with `__goondanInterAgentResponse` in its metadata.
    ///
    /// # Errors
    /// `AGENT_NOT_FOUND`, `CIRCULAR_CALL_DETECTED`, `E_INPUT`, or when too many answers are outstanding.
    // F-AGENTS
    pub fn request_later(&self, request: AgentRequest) -> Result<Ticket> {
        self.host.request_later(request.checked()?)
    }

    /// Sends a notice to another agent without waiting for its turn. Returns false when no agent accepts it.
    ///
    /// # Errors
    /// `E_INPUT` when the input is blank, or when the router fails.
    pub async fn send(&self, request: AgentRequest) -> Result<bool> {
        self.host.send(request.checked()?).await
    }

    /// Returns the other agents that can be reached: all that the router knows, without the caller.
    pub fn list(&self) -> Vec<AgentName> {
        self.host.list()
    }
}
