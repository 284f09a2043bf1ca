//! Methods that do not exist on purpose. Authors may expect them, so a call fails to compile with a remedy:
//! each requires a trait that no type implements. The `for<'never>` defers the check to the call.

use crate::conversation::ConversationView;
use crate::extension::ExtensionApi;
use crate::peers::AgentsApi;
use crate::pipeline::{StepResult, ToolCallContext, ToolCallResult, TurnResult};

/// Implemented by no type: a tool-call middleware cannot reach other agents.
// AGENTS-02
#[diagnostic::on_unimplemented(
    message = "a tool-call middleware has no way to other agents",
    label = "not in a tool call",
    note = "call `ctx.agents()` in a turn or step middleware, or in a tool"
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

/// Implemented by no type: requests to other agents belong to a turn, so the handle of an extension cannot send them.
// AGENTS-01
#[diagnostic::on_unimplemented(
    message = "the handle of an extension has no way to other agents",
    label = "a request belongs to a turn: it is sent through the context of a function",
    note = "write `ctx.agents()` in a turn or step middleware, or in a tool"
)]
pub trait HandleReachesAgents {}

impl ExtensionApi {
    #[doc(hidden)]
    pub fn agents(&self) -> AgentsApi<'_>
    where
        for<'never> Self: HandleReachesAgents,
    {
        unreachable!("nothing is `HandleReachesAgents`")
    }
}

/// Implemented by no type: a conversation changes by message events alone.
// CONV-09
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

/// Implemented by no type: a result is returned by `next`, or by the recovery from a failure of `next`.
// NEXT-01
#[diagnostic::on_unimplemented(
    message = "a `{Self}` cannot be made by hand",
    label = "write `next.run(ctx).await`, and change what it returns",
    note = "to stop, return an error: `Err(Error::msg(\"…\"))`",
    note = "to answer after a failure: `next.catch(ctx).await`, and `failure.recover(ctx, draft)`"
)]
pub trait MadeByHand {}

/// The return type is a parameter, because the compiler recommends functions that return `Self` wherever an unknown one
/// is called.
macro_rules! are_made_by_next {
    ($($result:ty),+) => {
        $(#[allow(clippy::new_ret_no_self, clippy::should_implement_trait, reason = "they cannot be called")]
        impl $result {
            #[doc(hidden)]
            pub fn new<A, T>(_argument: A) -> T
            where
                for<'never> Self: MadeByHand,
            {
                unreachable!("nothing is `MadeByHand`")
            }

            #[doc(hidden)]
            pub fn default<T>() -> T
            where
                for<'never> Self: MadeByHand,
            {
                unreachable!("nothing is `MadeByHand`")
            }
        })+
    };
}

are_made_by_next!(TurnResult, StepResult, ToolCallResult);
