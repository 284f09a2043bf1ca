//! Owns the context of tool-call middlewares.

use serde_json::{Map, Value};

use super::host::ToolCallHost;
use super::shared_members;
use crate::name::{AgentName, ExtensionName, InstanceKey, ToolCallId, TraceId, TurnId};
use crate::pipeline::Frame;

/// What a tool-call middleware sees: one call that the model asked for (CTX-03). It has no way to other agents
/// (AGENTS-02) and none to the messages.
pub struct ToolCallContext<'a> {
    pub(crate) host: &'a mut dyn ToolCallHost,
    pub(crate) frame: Frame<'a>,
}

impl ToolCallContext<'_> {
    shared_members!();

    /// The index of the step that the call belongs to.
    pub fn step_index(&self) -> u32 {
        self.host.step_index()
    }

    /// The call (CTX-13).
    pub fn call_id(&self) -> &ToolCallId {
        self.host.call_id()
    }

    /// The tool's full name as the model wrote it. It may be one that does not exist: the call is refused after the
    /// middlewares.
    pub fn tool_name(&self) -> &str {
        self.host.tool_name()
    }

    /// The arguments.
    pub fn args(&self) -> &Map<String, Value> {
        self.host.args()
    }

    /// The arguments, to change them before `next`: the handler gets what stands here (CTX-08).
    pub fn args_mut(&mut self) -> &mut Map<String, Value> {
        self.host.args_mut()
    }
}
