//! Owns the parameters of middlewares.

use super::Taken;
use crate::context::{StepContext, ToolCallContext, TurnContext};
use crate::extension::ExtensionApi;
use crate::pipeline::{Next, Step, ToolCall, Turn};

/// What a middleware can be given: its context, `next`, and the handle of the extension.
#[derive(Debug)]
pub struct MiddlewareSlots<C, N, A> {
    context: C,
    next: N,
    api: A,
}

impl<C, N, A> MiddlewareSlots<C, N, A> {
    /// All slots full.
    pub fn new(context: C, next: N, api: A) -> Self {
        Self { context, next, api }
    }
}

/// Writes the parameter trait of one kind of middleware.
macro_rules! middleware_param {
    ($(#[$doc:meta])* $param:ident, $take:ident, $kind:ident, $context:ident, $message:literal, $all:literal) => {
        $(#[$doc])*
        #[diagnostic::on_unimplemented(message = $message, label = "wrong type, or taken twice", note = $all)]
        pub trait $param<Slots, Rest>: Sized {
            /// Takes the parameter, and gives the slots without it.
            fn take(slots: Slots) -> (Self, Rest);
        }

        #[diagnostic::do_not_recommend]
        impl<'a, 'h, N, A> $param<MiddlewareSlots<&'a mut $context<'h>, N, A>, MiddlewareSlots<Taken, N, A>>
            for &'a mut $context<'h>
        {
            fn take(slots: MiddlewareSlots<Self, N, A>) -> (Self, MiddlewareSlots<Taken, N, A>) {
                (slots.context, MiddlewareSlots { context: Taken, next: slots.next, api: slots.api })
            }
        }

        #[diagnostic::do_not_recommend]
        impl<'a, C, A> $param<MiddlewareSlots<C, Next<'a, $kind>, A>, MiddlewareSlots<C, Taken, A>>
            for Next<'a, $kind>
        {
            fn take(slots: MiddlewareSlots<C, Self, A>) -> (Self, MiddlewareSlots<C, Taken, A>) {
                (slots.next, MiddlewareSlots { context: slots.context, next: Taken, api: slots.api })
            }
        }

        #[diagnostic::do_not_recommend]
        impl<'a, C, N> $param<MiddlewareSlots<C, N, &'a ExtensionApi>, MiddlewareSlots<C, N, Taken>>
            for &'a ExtensionApi
        {
            fn take(slots: MiddlewareSlots<C, N, Self>) -> (Self, MiddlewareSlots<C, N, Taken>) {
                (slots.api, MiddlewareSlots { context: slots.context, next: slots.next, api: Taken })
            }
        }

        impl<C, N, A> MiddlewareSlots<C, N, A> {
            /// Takes a parameter of a middleware of this kind.
            #[doc(hidden)]
            pub fn $take<P: $param<Self, Rest>, Rest>(self) -> (P, Rest) {
                P::take(self)
            }
        }
    };
}

middleware_param! {
    /// What a turn middleware may take, each at most once: `&mut TurnContext<'_>`, `Next<'_, Turn>` and `&ExtensionApi`.
    TurnParam, take_in_turn, Turn, TurnContext,
    "`{Self}` is not something that this turn middleware can take",
    "it can take `ctx: &mut TurnContext<'_>`, `next: Next<'_, Turn>` and `api: &ExtensionApi`"
}
middleware_param! {
    /// What a step middleware may take, each at most once: `&mut StepContext<'_>`, `Next<'_, Step>` and `&ExtensionApi`.
    StepParam, take_in_step, Step, StepContext,
    "`{Self}` is not something that this step middleware can take",
    "it can take `ctx: &mut StepContext<'_>`, `next: Next<'_, Step>` and `api: &ExtensionApi`"
}
middleware_param! {
    /// What a tool-call middleware may take, each at most once: `&mut ToolCallContext<'_>`, `Next<'_, ToolCall>` and
    /// `&ExtensionApi`.
    ToolCallParam, take_in_tool_call, ToolCall, ToolCallContext,
    "`{Self}` is not something that this tool-call middleware can take",
    "it can take `ctx: &mut ToolCallContext<'_>`, `next: Next<'_, ToolCall>` and `api: &ExtensionApi`"
}

/// Holds for the slots of a middleware that takes `next`: without it, it could not run the rest of the chain (NEXT-01).
#[diagnostic::on_unimplemented(
    message = "this middleware does not take `next`",
    label = "add a parameter `next: Next<'_, Turn>`, `Next<'_, Step>` or `Next<'_, ToolCall>`, as the kind says",
    note = "a middleware runs the rest of the chain exactly once, by `next.run(ctx).await`"
)]
pub trait TakesNext {}

impl<C, A> TakesNext for MiddlewareSlots<C, Taken, A> {}

/// Asserts that a middleware took `next`.
#[doc(hidden)]
pub fn all_taken<Slots: TakesNext>(_slots: &Slots) {}
