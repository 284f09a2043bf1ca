//! Owns the context of turn middlewares.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::host::TurnHost;
use super::{message_members, shared_members};
use crate::conversation::{ConversationView, MessageEvent, Source};
use crate::event::AgentEvent;
use crate::name::{AgentName, ExtensionName, InstanceKey, TraceId, TurnId};
use crate::peers::AgentsApi;
use crate::pipeline::Frame;

/// What a turn middleware sees: one input event on its way to an answer (CTX-01).
pub struct TurnContext<'a> {
    pub(crate) host: &'a mut dyn TurnHost,
    pub(crate) frame: Frame<'a>,
}

impl TurnContext<'_> {
    shared_members!();
    message_members!();

    /// What started the turn (CTX-12). Its text is already the newest message of the conversation (D-13).
    pub fn input(&self) -> &AgentEvent {
        &self.host.scope().input
    }
}
