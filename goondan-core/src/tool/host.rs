//! The host trait behind the context of a tool handler.

use std::path::Path;

use serde_json::Value;

use crate::BoxFuture;
use crate::conversation::Message;
use crate::conversation::host::ConversationHost;
use crate::decision::Decision;
use crate::error::Result;
use crate::event::TurnInfo;
use crate::log::Logger;
use crate::name::{ToolCallId, ToolName};
use crate::peers::AgentsHost;
use crate::question::Question;
use crate::tool::ReplySize;

/// The host behind a [`ToolContext`](crate::ToolContext).
pub trait ToolHost: Send + Sync {
    /// Returns the running turn.
    fn scope(&self) -> &TurnInfo;
    /// Returns the id of the call.
    fn call_id(&self) -> &ToolCallId;
    /// Returns the name of the tool.
    fn tool_name(&self) -> &ToolName;
    /// Returns the message of the model that contains the call.
    fn message(&self) -> &Message;
    /// Returns the conversation as it was when the model asked for the call.
    fn conversation(&self) -> &dyn ConversationHost;
    /// Returns the working directory of the instance, which is created on first use.
    ///
    /// # Errors
    /// When it cannot be created.
    fn workdir(&self) -> Result<&Path>;
    /// Returns how large the reply may be.
    fn max_reply(&self) -> ReplySize;
    /// Returns how many bytes the output files of the conversation may have together.
    fn max_output(&self) -> u64;
    /// Returns a logger for the extension that registered the tool.
    fn logger(&self) -> Logger<'_>;
    /// Tells how far the call is.
    fn progress(&self, done: f64, total: Option<f64>, text: &str);
    /// Returns the decisions about the questions of the handler about this call.
    ///
    /// # Errors
    /// When a host of an older version does not know.
    fn decisions(&self) -> Result<Vec<Decision>>;
    /// Asks a live question, and returns the answer.
    ///
    /// # Errors
    /// When there is none.
    fn ask_live(&self, question: Question) -> BoxFuture<'_, Result<Value>>;
    /// Returns the host that reaches other agents and models.
    fn agents(&self) -> &dyn AgentsHost;
}
