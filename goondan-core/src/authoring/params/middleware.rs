//! The parameters of middlewares.

use std::marker::PhantomData;

use super::Used;
use crate::extension::ExtensionApi;
use crate::pipeline::{Kind, Next, Step, ToolCall, Turn};
use crate::pipeline::{StepContext, ToolCallContext, TurnContext};

/// The slots that a middleware of the kind `K` has left: its context, `next`, and the handle of the extension.
#[derive(Debug)]
pub struct MiddlewareSlots<K, C, N, A> {
    kind: PhantomData<K>,
    context: C,
    next: N,
    api: A,
}

impl<K: Kind, C, N, A> MiddlewareSlots<K, C, N, A> {
    /// All slots available.
    pub fn new(_kind: K, context: C, next: N, api: A) -> Self {
        Self { kind: PhantomData, context, next, api }
    }

    /// Takes a parameter.
    #[doc(hidden)]
    pub fn take<P: MiddlewareParam<K, Self, Rest>, Rest>(self) -> (P, Rest) {
        P::take(self)
    }

    fn without_context(self) -> (C, MiddlewareSlots<K, Used, N, A>) {
        let Self { kind, context, next, api } = self;
        (context, MiddlewareSlots { kind, context: Used, next, api })
    }
}

/// A parameter that a middleware of the kind `K` may take, each at most once: the context of the kind, such as
/// `&mut TurnContext<'_>`, `Next<'_, K>` and `&ExtensionApi`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that this middleware can take",
    label = "not in a middleware of this kind, or taken before",
    note = "it can take `ctx: &mut {K}Context<'_>`, `next: Next<'_, {K}>` and `api: &ExtensionApi`"
)]
pub trait MiddlewareParam<K, Slots, Rest>: Sized {
    /// Returns the parameter, and the slots without it.
    fn take(slots: Slots) -> (Self, Rest);
}

#[diagnostic::do_not_recommend]
impl<'a, 'h, N, A> MiddlewareParam<Turn, MiddlewareSlots<Turn, Self, N, A>, MiddlewareSlots<Turn, Used, N, A>>
    for &'a mut TurnContext<'h>
{
    fn take(slots: MiddlewareSlots<Turn, Self, N, A>) -> (Self, MiddlewareSlots<Turn, Used, N, A>) {
        slots.without_context()
    }
}

#[diagnostic::do_not_recommend]
impl<'a, 'h, N, A> MiddlewareParam<Step, MiddlewareSlots<Step, Self, N, A>, MiddlewareSlots<Step, Used, N, A>>
    for &'a mut StepContext<'h>
{
    fn take(slots: MiddlewareSlots<Step, Self, N, A>) -> (Self, MiddlewareSlots<Step, Used, N, A>) {
        slots.without_context()
    }
}

#[diagnostic::do_not_recommend]
impl<'a, 'h, N, A>
    MiddlewareParam<ToolCall, MiddlewareSlots<ToolCall, Self, N, A>, MiddlewareSlots<ToolCall, Used, N, A>>
    for &'a mut ToolCallContext<'h>
{
    fn take(slots: MiddlewareSlots<ToolCall, Self, N, A>) -> (Self, MiddlewareSlots<ToolCall, Used, N, A>) {
        slots.without_context()
    }
}

#[diagnostic::do_not_recommend]
impl<K: Kind, C, A> MiddlewareParam<K, MiddlewareSlots<K, C, Self, A>, MiddlewareSlots<K, C, Used, A>> for Next<'_, K> {
    fn take(slots: MiddlewareSlots<K, C, Self, A>) -> (Self, MiddlewareSlots<K, C, Used, A>) {
        let MiddlewareSlots { kind, context, next, api } = slots;
        (next, MiddlewareSlots { kind, context, next: Used, api })
    }
}

#[diagnostic::do_not_recommend]
impl<K: Kind, C, N> MiddlewareParam<K, MiddlewareSlots<K, C, N, Self>, MiddlewareSlots<K, C, N, Used>>
    for &ExtensionApi
{
    fn take(slots: MiddlewareSlots<K, C, N, Self>) -> (Self, MiddlewareSlots<K, C, N, Used>) {
        let MiddlewareSlots { kind, context, next, api } = slots;
        (api, MiddlewareSlots { kind, context, next, api: Used })
    }
}

/// Implemented by the slots of a middleware of the kind `K` that took `next`: without it, the middleware could not run
/// the rest of the chain.
// NEXT-01
#[diagnostic::on_unimplemented(
    message = "this middleware does not take `next`",
    label = "add the parameter `next: Next<'_, {K}>`",
    note = "a middleware runs the rest of the chain exactly once, by `next.run(ctx).await`"
)]
pub trait UsesNext<K> {}

impl<K, C, A> UsesNext<K> for MiddlewareSlots<K, C, Used, A> {}

/// Asserts at compile time that a middleware took `next`.
#[doc(hidden)]
pub fn assert_uses_next<K: Kind>(_slots: &impl UsesNext<K>) {}
