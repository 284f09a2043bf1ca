//! The context of step middlewares.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::fields::StepHost;
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

    /// Holds the stream of this step, so that this middleware sees the model's answer before the readers of the stream
    /// do. Call it before `next`.
    ///
    /// The stream receives no piece of the answer while the model generates it. When the outermost step layer has
    /// returned, the stream receives the answer part by part, each in one piece, as the conversation then holds it: the
    /// replacement of a replaced message, and nothing of a removed one. If the step failed, also if a layer recovered
    /// from that, nothing is sent. Runtime events are not held, so those of the step's tool calls come before the
    /// answer.
    ///
    /// If a turn is cancelled or fails while the model generates a held answer, no partial answer is kept. A complete
    /// answer is in the conversation until a middleware replaces or removes it.
    ///
    /// A step that is run again is another step, whose layers hold its stream again. A second call changes nothing.
    /// After `next` the pieces have been sent: the call logs a warning and changes nothing.
    pub fn hold_stream(&mut self) {
        self.host.hold_stream();
    }
}
