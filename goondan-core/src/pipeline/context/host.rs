//! The traits behind contexts, which each linkage implements: the runtime on the state of its turn, and a library on
//! the C table of its host. Extensions do not see them.

use std::path::Path;

use serde_json::{Map, Value};

use crate::conversation::MessageEvent;
use crate::conversation::host::ConversationHost;
use crate::crossing::CoreRun;
use crate::error::{Error, Result};
use crate::event::TurnInfo;
use crate::peers::AgentsHost;
use crate::pipeline::TurnResult;
use crate::tool::ToolItem;

/// Behind every context.
pub trait RunHost: Send + Sync {
    /// Returns what stays the same during the turn.
    fn scope(&self) -> &TurnInfo;
    /// Returns the map that the middlewares of a run share.
    // CTX-09
    fn metadata(&self) -> &Map<String, Value>;
    /// Returns the same map, to change it.
    fn metadata_mut(&mut self) -> &mut Map<String, Value>;
}

/// Behind the contexts of turns and steps.
pub trait MessageHost: RunHost {
    /// Returns the conversation.
    fn conversation(&self) -> &dyn ConversationHost;
    /// Returns the access to other agents.
    // AGENTS-01
    fn agents(&self) -> &dyn AgentsHost;
    /// Applies a message event to the conversation. An error, of the event or of the store, fails the step before the
    /// model is called.
    // D-24
    fn emit(&mut self, event: MessageEvent);
    /// Fails the step before the model is called, because a message event was refused.
    fn refuse(&mut self, error: Error);
}

/// Behind a [`TurnContext`](super::TurnContext).
pub trait TurnHost: MessageHost {
    /// Runs the core of the turn: the step loop.
    fn run_core(&mut self) -> CoreRun<'_, TurnResult>;
    /// Updates the answer of a result that an inner layer has returned, if its message was changed or removed. Does
    /// nothing in a library, because the host updates what its layers receive and return.
    fn follow(&mut self, _result: &mut TurnResult) {}
}

/// Behind a [`StepContext`](super::StepContext), besides its fields.
pub trait StreamHost: MessageHost {
    /// Holds the pieces of the step's answer until the outermost layer has returned.
    fn hold_stream(&mut self);
}

/// Behind a [`ToolCallContext`](super::ToolCallContext), besides its fields.
pub trait CallHost: RunHost {
    /// Returns the tool that is called, if the step offers it.
    fn tool(&self) -> Option<&ToolItem>;
    /// Returns the working directory of the instance, which is created on first use.
    ///
    /// # Errors
    /// When it cannot be created.
    fn workdir(&self) -> Result<&Path>;
}

pub use super::fields::{StepHost, ToolCallHost};
