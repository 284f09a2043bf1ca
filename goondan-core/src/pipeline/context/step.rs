//! Owns the context of step middlewares.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::host::StepHost;
use super::{message_members, shared_members};
use crate::conversation::{ConversationView, MessageEvent, Source};
use crate::event::{AgentEvent, TurnInfo};
use crate::name::{AgentName, ExtensionName, InstanceKey, TraceId, TurnId};
use crate::peers::AgentsApi;
use crate::pipeline::Frame;
use crate::tool::ToolCatalog;

/// The metadata key by which a step middleware chooses another model of the agent for the step: its name (API-11).
pub const MODEL_KEY: &str = "goondan.model";

/// The metadata key by which a step middleware gives the model options: a JSON object (API-11).
pub const MODEL_OPTIONS_KEY: &str = "goondan.modelOptions";

/// What a step middleware sees: one model call and the tool calls that it triggers (CTX-02).
pub struct StepContext<'a> {
    pub(crate) host: &'a mut dyn StepHost,
    pub(crate) frame: Frame<'a>,
}

impl StepContext<'_> {
    shared_members!();
    message_members!();

    /// The turn that this step belongs to (CTX-14).
    pub fn turn(&self) -> &TurnInfo {
        self.host.scope()
    }

    /// What started the turn.
    pub fn input(&self) -> &AgentEvent {
        &self.host.scope().input
    }

    /// The step's index in its turn, from 0 (CTX-11).
    pub fn step_index(&self) -> u32 {
        self.host.step_index()
    }

    /// The tools that this step shows the model.
    pub fn tool_catalog(&self) -> &ToolCatalog {
        self.host.tool_catalog()
    }

    /// The same, to filter, extend and modify before `next` (CTX-05, CTX-06). The next step starts from all tools again.
    pub fn tool_catalog_mut(&mut self) -> &mut ToolCatalog {
        self.host.tool_catalog_mut()
    }
}
