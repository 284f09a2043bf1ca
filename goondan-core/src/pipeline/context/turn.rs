//! The context of turn middlewares.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::host::TurnHost;
use super::{message_members, shared_members};
use crate::conversation::{ConversationView, MessageEvent, Source};
use crate::event::AgentEvent;
use crate::name::{AgentName, ExtensionName, InstanceKey, TraceId, TurnId};
use crate::peers::AgentsApi;
use crate::pipeline::Frame;

/// The context of a turn middleware: the handling of one input event, until the answer.
///
/// A function under `#[middleware(turn)]` takes it as `&mut TurnContext<'_>`. The middleware can read and change the
/// conversation, ask other agents, and share values with other middlewares through the metadata.
///
/// ```
/// use goondan::prelude::*;
///
/// # struct Greeting;
/// # #[goondan::extension(name = "greeting")]
/// # impl Greeting {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// /// Asks the model to greet in the first turn of a conversation.
/// #[middleware(turn)]
/// async fn greet(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
///     if ctx.conversation().len() == 1 {
///         ctx.emit(MessageEvent::append(Message::user("Begin your answer with a greeting.")));
///     }
///     next.run(ctx).await
/// }
/// # }
/// ```
// CTX-01
pub struct TurnContext<'a> {
    pub(crate) host: &'a mut dyn TurnHost,
    pub(crate) frame: Frame<'a>,
}

impl TurnContext<'_> {
    shared_members!();
    message_members!();

    /// Returns the input event that started the turn. When the outermost layer runs, its text is the newest message of
    /// the conversation already.
    // CTX-12, D-13
    pub fn input(&self) -> &AgentEvent {
        &self.host.scope().input
    }
}
