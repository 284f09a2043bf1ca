//! The context of step middlewares.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::host::StepHost;
use super::{message_members, shared_members};
use crate::conversation::{ConversationView, MessageEvent, Source};
use crate::event::{AgentEvent, TurnInfo};
use crate::name::{AgentName, ExtensionName, InstanceKey, ModelName, TraceId, TurnId};
use crate::peers::AgentsApi;
use crate::pipeline::Frame;

/// The context of a step middleware: one model call and the tool calls that it asks for.
///
/// A function under `#[middleware(step)]` takes it as `&mut StepContext<'_>`. Before `next`, the middleware can change
/// the conversation and the tools that the model sees, and choose the model and its options.
///
/// ```
/// use goondan::prelude::*;
///
/// # struct ReadOnly;
/// # #[goondan::extension(name = "read-only")]
/// # impl ReadOnly {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// /// Offers the model only tools that read, after the first step.
/// #[middleware(step)]
/// async fn restrict(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
///     if ctx.step_index() > 0 {
///         ctx.tool_catalog_mut().retain(|tool| tool.effect == goondan::tool::Effect::Read);
///     }
///     next.run(ctx).await
/// }
/// # }
/// ```
// CTX-02
pub struct StepContext<'a> {
    pub(crate) host: &'a mut dyn StepHost,
    pub(crate) frame: Frame<'a>,
}

impl StepContext<'_> {
    shared_members!();
    message_members!();

    /// Returns the turn that this step belongs to.
    // CTX-14
    pub fn turn(&self) -> &TurnInfo {
        self.host.scope()
    }

    /// Chooses another model of the agent for this step. If the agent has no model of that name, the step fails with
    /// `E_MODEL_NOT_FOUND`.
    // API-11
    pub fn set_model(&mut self, name: impl Into<ModelName>) {
        *self.host.model_name_mut() = Some(name.into());
    }

    /// Returns the input event that started the turn.
    pub fn input(&self) -> &AgentEvent {
        &self.host.scope().input
    }
}
