//! The port by which agents reach one another.

use crate::BoxFuture;
use crate::error::{Error, ErrorCode, Result};
use crate::event::AgentEvent;
use crate::name::{AgentName, InstanceKey};

/// Brings events to agents: implement it to reach agents of other programs.
pub trait Router: Send + Sync + 'static {
    /// Has the target handle the event, starting it if need be, and gives the text of its answer. The caller sees to the
    /// time limit and to circles.
    fn request(&self, call: AgentCall) -> BoxFuture<'_, Result<String>>;

    /// Hands the event over without waiting for the turn; false when there is no such agent.
    fn send(&self, call: AgentCall) -> BoxFuture<'_, Result<bool>>;

    /// The agents that can be reached, by name.
    fn agents(&self) -> Vec<AgentName>;
}

/// An event on its way to another agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentCall {
    /// The agent.
    pub target: AgentName,
    /// Which of its conversations.
    pub instance: InstanceKey,
    /// The event.
    pub event: AgentEvent,
}

/// There is no agent called `name`.
pub(crate) fn not_found(name: impl std::fmt::Display, known: &[AgentName]) -> Error {
    let known: Vec<_> = known.iter().map(AgentName::as_str).collect();
    let known = if known.is_empty() { "no other agent".to_owned() } else { known.join(", ") };
    Error::new(ErrorCode::AGENT_NOT_FOUND, format!("there is no agent `{name}`"))
        .suggest(format!("reachable are: {known}"))
}
