//! Owns the handler: the code that answers a tool call, and what it knows of the call.

use std::fmt;
use std::path::Path;

use serde_json::Value;

use super::ToolHost;
use crate::BoxFuture;
use crate::conversation::Message;
use crate::error::Result;
use crate::event::TurnInfo;
use crate::log::Logger;
use crate::name::{AgentName, InstanceKey, ToolCallId, ToolName, TraceId, TurnId};
use crate::peers::AgentsApi;

/// Answers the calls of one tool. `#[tool]` writes implementations.
pub trait ToolHandler: Send + Sync + 'static {
    /// Answers one call. An error, or a panic, becomes an error result for the model (F-TOOL).
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<Value>>;
}

/// What a handler knows of the call that it answers (F-TOOL).
#[derive(Clone, Copy)]
pub struct ToolContext<'a> {
    host: &'a dyn ToolHost,
}

impl<'a> ToolContext<'a> {
    /// A context in front of `host`.
    #[doc(hidden)]
    pub fn new(host: &'a dyn ToolHost) -> Self {
        Self { host }
    }

    /// What stays the same during the turn, for a linkage.
    #[doc(hidden)]
    pub fn scope(&self) -> &'a TurnInfo {
        self.host.scope()
    }

    /// The agent that runs.
    pub fn agent_name(&self) -> &'a AgentName {
        &self.host.scope().agent
    }

    /// The instance of the agent.
    pub fn instance_key(&self) -> &'a InstanceKey {
        &self.host.scope().instance
    }

    /// The turn that runs.
    pub fn turn_id(&self) -> &'a TurnId {
        &self.host.scope().turn
    }

    /// What joins everything that one input caused.
    pub fn trace_id(&self) -> &'a TraceId {
        &self.host.scope().trace
    }

    /// The call.
    pub fn call_id(&self) -> &'a ToolCallId {
        self.host.call_id()
    }

    /// The tool.
    pub fn tool_name(&self) -> &'a ToolName {
        self.host.tool_name()
    }

    /// The message of the model that asked for the call.
    pub fn message(&self) -> &'a Message {
        self.host.message()
    }

    /// The directory that belongs to this conversation: where tools that read and write files work by default. It is made
    /// on first use.
    ///
    /// # Errors
    /// `E_STORE_IO` when it cannot be made.
    pub fn workdir(&self) -> Result<&'a Path> {
        self.host.workdir()
    }

    /// Writes to the log, in the name of the extension that owns the tool.
    pub fn logger(&self) -> Logger<'a> {
        self.host.logger()
    }

    /// The way to other agents (D-17).
    pub fn runtime(&self) -> AgentsApi<'a> {
        AgentsApi::new(self.host.agents())
    }
}

impl fmt::Debug for ToolContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolContext({} {})", self.tool_name(), self.call_id())
    }
}
