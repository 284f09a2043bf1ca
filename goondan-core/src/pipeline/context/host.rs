//! Owns the seam between the contract and a linkage: what stands behind a context.
//!
//! The runtime implements these traits on its own state; a plugin's side implements them on a C table. Extensions never
//! meet them, and therefore the facade does not show this module.

use serde_json::{Map, Value};

use crate::conversation::MessageEvent;
use crate::conversation::host::ConversationHost;
use crate::crossing::CoreRun;
use crate::event::TurnInfo;
use crate::name::ToolCallId;
use crate::peers::AgentsHost;
use crate::pipeline::{StepResult, ToolCallResult, TurnResult};
use crate::tool::ToolCatalog;

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
