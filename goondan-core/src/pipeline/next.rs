//! `next`: the rest of the chain, which a layer runs once, and its failure.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::frame::Depth;
use super::{Kind, Middleware};
use crate::error::{Error, Result};
use crate::name::ExtensionName;
use crate::panic::Guarded;

/// The rest of the chain: the layers inside of a middleware, and the core. Every middleware takes it as a parameter,
/// and must run it to its end to return a result.
///
/// Code before [`Next::run`] sees the context first, code after it sees the result of the inner layers and may change
/// it. Running `next` consumes it, so a second run does not compile. To run a step or a tool call again, return
/// [`Error::retry_after`](crate::Error::retry_after); to refuse to run it, return any other error.
///
/// ```
/// use goondan::prelude::*;
///
/// # struct Audit;
/// # #[goondan::extension(name = "audit")]
/// # impl Audit {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// #[middleware(toolCall)]
/// async fn guard(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
///     if ctx.tool_name() == "shell__run" {
///         return Err(Error::msg("no shell in this conversation"));
///     }
///     let result = next.run(ctx).await?;
///     tracing::info!(tool = ctx.tool_name(), status = ?result.status(), "a tool was called");
///     Ok(result)
/// }
/// # }
/// ```
// NEXT-03
pub struct Next<'a, K: Kind> {
    /// The layers inside, outermost first.
    rest: &'a [NamedMiddleware<K>],
}

/// A middleware, and the name of its extension.
pub(super) type NamedMiddleware<K> = (ExtensionName, Arc<dyn Middleware<K>>);

impl<'a, K: Kind> Next<'a, K> {
    pub(super) fn new(rest: &'a [NamedMiddleware<K>]) -> Self {
        Self { rest }
    }

    /// Returns the layers inside, outermost first.
    pub(super) fn rest(&self) -> &'a [NamedMiddleware<K>] {
        self.rest
    }

    /// Runs the inner layers and the core, and returns their result.
    ///
    /// # Errors
    /// The failure of an inner layer or of the core. To recover from it, call [`Next::catch`] instead.
    // NEXT-04, NEXT-05, NEXT-06
    // Not an `async fn`, which would store its arguments twice: as they were passed, and as they are used. Every layer
    // boxes such a future, and small ones are cheaper to allocate.
    pub fn run(self, ctx: &mut K::Context<'_>) -> impl Future<Output = Result<K::Output>> + Send {
        let Self { rest } = self;
        let mut inner = InnerRun::<K> { ctx, outer: None };
        async move {
            let outer = K::frame(inner.ctx).enter(rest.len())?;
            inner.outer = Some(outer);
            let result = match rest.split_first() {
                Some(((extension, layer), rest)) => {
                    let mut future = Guarded::new(extension, layer.handle(&mut *inner.ctx, Self { rest }));
                    let result = (&mut future).await;
                    // It was dropped when it was ready; this saves the layer a check.
                    std::mem::forget(future);
                    result
                }
                None => K::run_core(&mut *inner.ctx).await,
            };
            inner.end(rest.len(), result)
        }
    }

    /// Runs the inner layers and the core like [`Next::run`], but returns a failure from which the middleware can
    /// recover with [`Failure::recover`].
    ///
    /// # Errors
    /// The failure of an inner layer or of the core.
    pub async fn catch(self, ctx: &mut K::Context<'_>) -> Result<K::Output, Failure<K>> {
        self.run(ctx).await.map_err(Failure::new)
    }
}

/// Guards the frame while the inner layers run: if their future is dropped or panics, `outer` runs again.
struct InnerRun<'c, 'a, K: Kind> {
    ctx: &'c mut K::Context<'a>,
    /// The depth that runs afterwards; `None` before the inner layers were entered, and once they have returned.
    outer: Option<Depth>,
}

impl<K: Kind> InnerRun<'_, '_, K> {
    #[inline]
    fn end(&mut self, inside: usize, result: Result<K::Output>) -> Result<K::Output> {
        match self.outer.take() {
            Some(outer) => {
                let mut result = K::frame(self.ctx).leave(inside, outer, result);
                if let Ok(result) = &mut result {
                    K::follow(self.ctx, result);
                }
                result
            }
            None => result,
        }
    }
}

impl<K: Kind> Drop for InnerRun<'_, '_, K> {
    fn drop(&mut self) {
        if let Some(outer) = self.outer {
            K::frame(self.ctx).abandon(outer);
        }
    }
}

impl<K: Kind> fmt::Debug for Next<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Next<{}>({} layers)", K::KIND, self.rest.len())
    }
}

/// The failure of an inner layer or of the core, returned by [`Next::catch`].
///
/// `?` passes it on unchanged. [`Failure::recover`] turns it into a result, which is the only way for a middleware to
/// return a result after `next` failed.
pub struct Failure<K> {
    error: Error,
    kind: PhantomData<fn() -> K>,
}

impl<K: Kind> Failure<K> {
    fn new(error: Error) -> Self {
        Self { error, kind: PhantomData }
    }

    /// Returns the error.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Returns the error by value, for example to return it with more context.
    pub fn into_error(self) -> Error {
        self.error
    }

    /// Returns a result that replaces the failure, with the content of `draft`.
    ///
    /// ```
    /// use goondan::Result;
    /// use goondan::middleware::{Next, ToolCall, ToolCallContext, ToolCallDraft, ToolCallResult};
    ///
    /// async fn lenient(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
    ///     match next.catch(ctx).await {
    ///         Ok(result) => Ok(result),
    ///         Err(failure) => Ok(failure.recover(ctx, ToolCallDraft::output("nothing found"))),
    ///     }
    /// }
    /// ```
    // LEGACY-POINTS-05
    pub fn recover(self, ctx: &K::Context<'_>, draft: K::Draft) -> K::Output {
        K::recover(self.error, draft, ctx)
    }
}

impl<K> From<Failure<K>> for Error {
    fn from(failure: Failure<K>) -> Self {
        failure.error
    }
}

impl<K: Kind> fmt::Debug for Failure<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}
