//! Owns the names that are not offered. Some are looked for, out of habit or by readers of older drafts. So that the
//! compiler says what to write instead, they are functions that ask for a trait which no type has: no call compiles. The
//! `for` in their conditions keeps the compiler from judging them here.

use crate::conversation::ConversationView;
use crate::error::Result;
use crate::extension::PipelineApi;
use crate::peers::AgentsApi;
use crate::pipeline::ToolCallContext;
use crate::pipeline::{StepResult, ToolCallResult, TurnResult};

/// Holds for nothing that sees a tool call: other agents are out of its reach (AGENTS-02).
#[diagnostic::on_unimplemented(
    message = "a tool-call middleware has no way to other agents",
    label = "not in a tool call",
    note = "call `ctx.agents()` in a turn or step middleware, or `ctx.runtime()` in a tool"
)]
pub trait ReachesAgents {}

impl ToolCallContext<'_> {
    #[doc(hidden)]
    pub fn agents(&self) -> AgentsApi<'_>
    where
        for<'never> Self: ReachesAgents,
    {
        unreachable!("nothing is `ReachesAgents`")
    }
}

/// Holds for no view of a conversation: it changes by events alone (CONV-09).
#[diagnostic::on_unimplemented(
    message = "the messages of a conversation change only by events",
    label = "write `ctx.emit(MessageEvent::append(message))`",
    note = "`MessageEvent::replace`, `remove` and `truncate` change what is there"
)]
pub trait ChangesInPlace {}

impl ConversationView<'_> {
    #[doc(hidden)]
    pub fn push<M>(&self, _message: M)
    where
        for<'never> Self: ChangesInPlace,
    {
    }
}

/// Holds for nothing: middlewares are registered by kind, not at points (API-06).
#[diagnostic::on_unimplemented(
    message = "the pipeline has no points to register at",
    label = "write `#[middleware(turn)]`, `#[middleware(step)]` or `#[middleware(toolCall)]` on a function",
    note = "what comes before `next.run(ctx)` is its pre phase, what comes after it its post phase"
)]
pub trait HasPoints {}

#[allow(clippy::missing_errors_doc, reason = "they cannot be called")]
impl PipelineApi<'_> {
    #[doc(hidden)]
    pub fn mutate<P, F>(&self, _point: P, _handler: F) -> Result<()>
    where
        for<'never> Self: HasPoints,
    {
        Ok(())
    }

    #[doc(hidden)]
    pub fn wrap<P, F>(&self, _point: P, _handler: F) -> Result<()>
    where
        for<'never> Self: HasPoints,
    {
        Ok(())
    }
}

/// Holds for no result: it comes from `next`, or from the failure that `next` gave (NEXT-01).
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be made by hand",
    label = "write `next.run(ctx).await`, and change what it gives",
    note = "to stop, return an error: `Err(Error::msg(\"…\"))`",
    note = "to answer after a failure: `next.catch(ctx).await`, and `failure.recover(ctx, draft)`"
)]
pub trait MadeByHand {}

#[allow(clippy::should_implement_trait, reason = "it cannot be called")]
impl TurnResult {
    #[doc(hidden)]
    pub fn default() -> Self
    where
        for<'never> Self: MadeByHand,
    {
        unreachable!("nothing is `MadeByHand`")
    }
}

#[allow(clippy::should_implement_trait, reason = "it cannot be called")]
impl StepResult {
    #[doc(hidden)]
    pub fn default() -> Self
    where
        for<'never> Self: MadeByHand,
    {
        unreachable!("nothing is `MadeByHand`")
    }
}

#[allow(clippy::should_implement_trait, reason = "it cannot be called")]
impl ToolCallResult {
    #[doc(hidden)]
    pub fn default() -> Self
    where
        for<'never> Self: MadeByHand,
    {
        unreachable!("nothing is `MadeByHand`")
    }
}
