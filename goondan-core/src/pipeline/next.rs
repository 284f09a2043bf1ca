//! Owns `next`: the rest of the onion, to be run once.

use std::fmt;
use std::sync::Arc;

use super::frame::Depth;
use super::{Failure, Kind, Middleware};
use crate::error::Result;

/// The rest of the chain, as one middleware sees it. Running it consumes it, so a second run does not compile (NEXT-03).
pub struct Next<'a, K: Kind> {
    /// The layers inside, outermost first.
    rest: &'a [Arc<dyn Middleware<K>>],
}

impl<'a, K: Kind> Next<'a, K> {
    pub(super) fn new(rest: &'a [Arc<dyn Middleware<K>>]) -> Self {
        Self { rest }
    }

    /// Runs the inner layers and the core, and gives their result (NEXT-04, NEXT-05).
    ///
    /// # Errors
    /// The failure of an inner layer or of the core (NEXT-06). To recover from it, run [`Next::catch`] instead.
    // Not an `async fn`, which would keep its arguments twice: as they came, and as they are used. Every layer holds such a
    // future, and small ones are cheaper to allocate.
    pub fn run(self, ctx: &mut K::Context<'_>) -> impl Future<Output = Result<K::Output>> + Send {
        let Self { rest } = self;
        let mut inside = Inside::<K> { ctx, outer: None };
        async move {
            let outer = K::frame(inside.ctx).enter(rest.len())?;
            inside.outer = Some(outer);
            let result = match rest.split_first() {
                Some((layer, rest)) => layer.handle(&mut *inside.ctx, Self { rest }).await,
                None => K::run_core(&mut *inside.ctx).await,
            };
            inside.left(rest.len(), result)
        }
    }

    /// Runs the inner layers and the core like [`Next::run`], and catches their failure, from which a result may be made
    /// with [`Failure::recover`].
    ///
    /// # Errors
    /// The failure; `?` passes it on.
    pub async fn catch(self, ctx: &mut K::Context<'_>) -> Result<K::Output, Failure<K>> {
        self.run(ctx).await.map_err(Failure::new)
    }
}

/// While the inside runs: if it does not come to its end, because its future is dropped or it panics, the run goes back
/// to the outer layer all the same.
struct Inside<'c, 'a, K: Kind> {
    ctx: &'c mut K::Context<'a>,
    /// Who runs after it; `None` before the inside has begun, and once it has ended.
    outer: Option<Depth>,
}

impl<K: Kind> Inside<'_, '_, K> {
    #[inline]
    fn left(&mut self, inner: usize, result: Result<K::Output>) -> Result<K::Output> {
        match self.outer.take() {
            Some(outer) => K::frame(self.ctx).leave(inner, outer, result),
            None => result,
        }
    }
}

impl<K: Kind> Drop for Inside<'_, '_, K> {
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
