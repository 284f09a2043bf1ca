//! Owns the seam between the contract and a linkage: what stands behind a context.
//!
//! The runtime implements these traits on its own state; a plugin's side implements them on a C table. Extensions never
//! meet them, and therefore the facade does not show this module.

use std::path::Path;

use serde_json::{Map, Value};

use crate::agents::AgentsHost;
use crate::conversation::{Message, MessageEvent, MessageRef};
use crate::error::Result;
use crate::event::AgentEvent;
use crate::extension::Logger;
use crate::linkage::CoreRun;
use crate::name::{AgentName, InstanceKey, ToolCallId, ToolName, TraceId, TurnId};
use crate::pipeline::{StepResult, ToolCallResult, TurnResult};
use crate::tool::ToolCatalog;

/// Which messages of a conversation: those at the start of the turn, or those of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// At the start of the turn.
    Base,
    /// Now.
    Next,
}

/// Read access to a conversation.
pub trait ConversationHost: Send + Sync {
    /// How many messages `snapshot` holds.
    fn message_count(&self, snapshot: Snapshot) -> usize;
    /// The first message of `snapshot` at or after `cursor`, and the cursor behind it. The first cursor is 0.
    fn message_from(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)>;
    /// The last message of `snapshot` before `cursor`, and the cursor that leads to it. Behind all is `usize::MAX`.
    fn message_before(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)>;
    /// The events of the turn so far.
    fn message_events(&self) -> &[MessageEvent];
}

/// Read access to messages that lie in another binary, each named by its cursor.
pub trait RemoteConversation: Send + Sync {
    /// All text of a message, put together.
    fn text(&self, snapshot: Snapshot, cursor: usize) -> String;
    /// The JSON of a field of a message, or with the empty name of all of it.
    ///
    /// # Errors
    /// When there is no such message or field.
    fn read(&self, snapshot: Snapshot, cursor: usize, field: &'static str) -> Result<Vec<u8>>;
}

/// The running turn: what stays the same while it runs (CTX-14).
#[derive(Clone, Debug)]
pub struct TurnInfo {
    /// The agent that runs the turn.
    pub agent: AgentName,
    /// Its instance.
    pub instance: InstanceKey,
    /// The turn.
    pub turn: TurnId,
    /// What joins everything that one input caused.
    pub trace: TraceId,
    /// What started the turn (CTX-12).
    pub input: AgentEvent,
}

/// What every context offers.
pub trait RunHost: Send + Sync {
    /// What stays the same during the turn.
    fn scope(&self) -> &TurnInfo;
    /// The map that the middlewares of a run share (CTX-09).
    fn metadata(&self) -> &Map<String, Value>;
    /// The same, to change it.
    fn metadata_mut(&mut self) -> &mut Map<String, Value>;
}

/// What the contexts of turns and steps offer.
pub trait MessageHost: RunHost {
    /// The conversation.
    fn conversation(&self) -> &dyn ConversationHost;
    /// The way to other agents (AGENTS-01).
    fn agents(&self) -> &dyn AgentsHost;
    /// Takes a message event in. A fault, of the event or of the store, fails the step before the model is called (D-24).
    fn emit(&mut self, event: MessageEvent);
}

/// Behind a [`TurnContext`](super::TurnContext).
pub trait TurnHost: MessageHost {
    /// The core of the turn: the step loop.
    fn run_core(&mut self) -> CoreRun<'_, TurnResult>;
}

/// Behind a [`StepContext`](super::StepContext).
pub trait StepHost: MessageHost {
    /// The step's index in its turn, from 0 (CTX-11).
    fn step_index(&self) -> u32;
    /// What the step shows the model.
    fn tool_catalog(&self) -> &ToolCatalog;
    /// The same, to change it (CTX-05).
    fn tool_catalog_mut(&mut self) -> &mut ToolCatalog;
    /// The core of the step: the model call and the tool calls.
    fn run_core(&mut self) -> CoreRun<'_, StepResult>;
}

/// Behind a [`ToolCallContext`](super::ToolCallContext).
pub trait ToolCallHost: RunHost {
    /// The index of the step that the call belongs to.
    fn step_index(&self) -> u32;
    /// The call.
    fn call_id(&self) -> &ToolCallId;
    /// The tool's name as the model wrote it.
    fn tool_name(&self) -> &str;
    /// The arguments.
    fn args(&self) -> &Map<String, Value>;
    /// The same, to change them (CTX-07).
    fn args_mut(&mut self) -> &mut Map<String, Value>;
    /// The core of the call: the guard, the validation, the handler.
    fn run_core(&mut self) -> CoreRun<'_, ToolCallResult>;
}

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
