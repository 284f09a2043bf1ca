//! Owns the handler: the code that answers a tool call.

use std::fmt;

use serde_json::Value;

use crate::BoxFuture;
use crate::context::host::TurnScope;
use crate::error::Result;
use crate::name::{AgentName, InstanceKey, ToolCallId, ToolName, TraceId, TurnId};

/// Answers the calls of one tool.
pub trait ToolHandler: Send + Sync + 'static {
    /// Answers one call. An error, or a panic, becomes an error result for the model (F-TOOL).
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<Value>>;
}

/// What a handler knows of the call that it answers (F-TOOL).
pub struct ToolContext<'a> {
    pub(crate) scope: &'a TurnScope,
    pub(crate) call_id: &'a ToolCallId,
    pub(crate) tool_name: &'a ToolName,
}

impl ToolContext<'_> {
    /// The agent that runs.
    pub fn agent_name(&self) -> &AgentName {
        &self.scope.agent
    }

    /// The instance of the agent.
    pub fn instance_key(&self) -> &InstanceKey {
        &self.scope.instance
    }

    /// The turn that runs.
    pub fn turn_id(&self) -> &TurnId {
        &self.scope.turn
    }

    /// What joins everything that one input caused.
    pub fn trace_id(&self) -> &TraceId {
        &self.scope.trace
    }

    /// The call.
    pub fn call_id(&self) -> &ToolCallId {
        self.call_id
    }

    /// The tool.
    pub fn tool_name(&self) -> &ToolName {
        self.tool_name
    }
}

impl fmt::Debug for ToolContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolContext({} {})", self.tool_name, self.call_id)
    }
}
