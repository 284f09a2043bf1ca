//! What a tool handler's context is backed by.

use std::path::Path;

use crate::conversation::Message;
use crate::error::Result;
use crate::event::TurnInfo;
use crate::log::Logger;
use crate::name::{ToolCallId, ToolName};
use crate::peers::AgentsHost;

/// Behind a [`ToolContext`](crate::ToolContext).
pub trait ToolHost: Send + Sync {
    /// What stays the same during the turn.
    fn scope(&self) -> &TurnInfo;
    /// The call.
    fn call_id(&self) -> &ToolCallId;
    /// The tool.
    fn tool_name(&self) -> &ToolName;
    /// The message of the model that asked for the call.
    fn message(&self) -> &Message;
    /// The directory that belongs to the conversation, made if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    fn workdir(&self) -> Result<&Path>;
    /// The log, in the name of the extension that owns the tool.
    fn logger(&self) -> Logger<'_>;
    /// The way to other agents.
    fn agents(&self) -> &dyn AgentsHost;
}
