//! The kinds of middleware, and the trait that a middleware implements.

use std::sync::Arc;

use super::{Frame, MiddlewareKind, Next, StepDraft, StepResult, ToolCallDraft, ToolCallResult, TurnDraft, TurnResult};
use crate::BoxFuture;
use crate::crossing::{CoreRun, Crossing};
use crate::error::{Error, Result};
use crate::pipeline::host::{RunHost, StepHost, ToolCallHost, TurnHost};
use crate::pipeline::{StepContext, ToolCallContext, TurnContext};

/// A kind of middleware, as a type: [`Turn`], [`Step`] or [`ToolCall`]. The trait is sealed: there are no other kinds.
// API-05
pub trait Kind: sealed::Sealed + Sized + Send + Sync + 'static {
    /// The context of a middleware of this kind.
    type Context<'a>: Send;
    /// The result of a run of this kind.
    type Output: Crossing;
    /// The value that a middleware recovers with when `next` failed.
    type Draft: Send;
    /// The implementation behind a context of this kind.
    #[doc(hidden)]
    type Host<'a>: ?Sized + Send + 'a;

    /// The kind as a value.
    const KIND: MiddlewareKind;

    #[doc(hidden)]
    fn context<'a>(host: &'a mut Self::Host<'a>, frame: Frame<'a>) -> Self::Context<'a>;
    #[doc(hidden)]
    fn frame<'c, 'a>(ctx: &'c mut Self::Context<'a>) -> &'c mut Frame<'a>;
    #[doc(hidden)]
    fn run_host<'c>(ctx: &'c Self::Context<'_>) -> &'c dyn RunHost;
    #[doc(hidden)]
    fn run_core<'c>(ctx: &'c mut Self::Context<'_>) -> CoreRun<'c, Self::Output>;
    /// Updates a result, which an inner layer or the core has returned, to the state of the host.
    #[doc(hidden)]
    #[inline]
    fn follow(_ctx: &mut Self::Context<'_>, _result: &mut Self::Output) {}
    #[doc(hidden)]
    fn erase(middleware: Arc<dyn Middleware<Self>>) -> AnyMiddleware;
    #[doc(hidden)]
    fn recover(error: Error, draft: Self::Draft, ctx: &Self::Context<'_>) -> Self::Output;
}

mod sealed {
    pub trait Sealed {}
}

/// The kind of middleware around the whole handling of one input event.
#[derive(Clone, Copy, Debug)]
pub struct Turn;

/// The kind of middleware around one model call and the tool calls that it asks for.
#[derive(Clone, Copy, Debug)]
pub struct Step;

/// The kind of middleware around one tool call.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall;

/// A middleware of any kind.
#[derive(Clone)]
pub enum AnyMiddleware {
    /// Of the kind [`Turn`].
    Turn(Arc<dyn Middleware<Turn>>),
    /// Of the kind [`Step`].
    Step(Arc<dyn Middleware<Step>>),
    /// Of the kind [`ToolCall`].
    ToolCall(Arc<dyn Middleware<ToolCall>>),
}

impl AnyMiddleware {
    /// Returns the kind as a value.
    pub fn kind(&self) -> MiddlewareKind {
        match self {
            Self::Turn(_) => MiddlewareKind::Turn,
            Self::Step(_) => MiddlewareKind::Step,
            Self::ToolCall(_) => MiddlewareKind::ToolCall,
        }
    }
}

macro_rules! kind {
    ($kind:ident, $context:ident, $output:ident, $draft:ident, $host:ident $(, $follow:item)?) => {
        impl sealed::Sealed for $kind {}

        impl Kind for $kind {
            type Context<'a> = $context<'a>;
            type Output = $output;
            type Draft = $draft;
            type Host<'a> = dyn $host + 'a;

            const KIND: MiddlewareKind = MiddlewareKind::$kind;

            #[inline]
            fn context<'a>(host: &'a mut (dyn $host + 'a), frame: Frame<'a>) -> $context<'a> {
                $context { host, frame }
            }

            #[inline]
            fn frame<'c, 'a>(ctx: &'c mut Self::Context<'a>) -> &'c mut Frame<'a> {
                &mut ctx.frame
            }

            fn run_host<'c>(ctx: &'c $context<'_>) -> &'c dyn RunHost {
                &*ctx.host
            }

            #[inline]
            fn run_core<'c>(ctx: &'c mut $context<'_>) -> CoreRun<'c, $output> {
                ctx.host.run_core()
            }

            $($follow)?

            fn erase(middleware: Arc<dyn Middleware<Self>>) -> AnyMiddleware {
                AnyMiddleware::$kind(middleware)
            }

            fn recover(error: Error, draft: $draft, ctx: &$context<'_>) -> $output {
                draft.recovered(error, ctx)
            }
        }
    };
}

kind!(
    Turn,
    TurnContext,
    TurnResult,
    TurnDraft,
    TurnHost,
    #[inline]
    fn follow(ctx: &mut TurnContext<'_>, result: &mut TurnResult) {
        ctx.host.follow(result);
    }
);
kind!(Step, StepContext, StepResult, StepDraft, StepHost);
kind!(ToolCall, ToolCallContext, ToolCallResult, ToolCallDraft, ToolCallHost);

/// A middleware of the kind `K`. `#[middleware]` generates implementations; by hand one looks like this:
///
/// ```
/// use goondan::middleware::{Middleware, Next, Step, StepContext, StepResult};
/// use goondan::{BoxFuture, Result};
///
/// struct Counting;
///
/// impl Middleware<Step> for Counting {
///     fn handle<'a>(
///         &'a self,
///         ctx: &'a mut StepContext<'_>,
///         next: Next<'a, Step>,
///     ) -> BoxFuture<'a, Result<StepResult>> {
///         Box::pin(async move {
///             let steps = ctx.step_index() + 1;
///             ctx.metadata_mut().insert("steps".into(), steps.into());
///             next.run(ctx).await
///         })
///     }
/// }
/// ```
pub trait Middleware<K: Kind>: Send + Sync + 'static {
    /// Runs the layer: its code before `next.run(ctx)`, the rest of the chain, and its code afterwards.
    // PIPE-04
    fn handle<'a>(&'a self, ctx: &'a mut K::Context<'_>, next: Next<'a, K>) -> BoxFuture<'a, Result<K::Output>>;
}
