//! Owns `next`: the rest of the onion, to be run once.

use std::fmt;
use std::sync::Arc;

use super::{Failure, Kind, Middleware};
use crate::error::Result;

/// The rest of the chain, as one middleware sees it. Running it consumes it, so a second run does not compile (NEXT-03).
pub struct Next<'a, K: Kind> {
    layers: &'a [Arc<dyn Middleware<K>>],
    depth: usize,
}

impl<'a, K: Kind> Next<'a, K> {
    pub(super) fn new(layers: &'a [Arc<dyn Middleware<K>>], depth: usize) -> Self {
        Self { layers, depth }
    }

    /// Runs the inner layers and the core, and gives their result (NEXT-04, NEXT-05).
    ///
    /// # Errors
    /// The failure of an inner layer or of the core (NEXT-06). To recover from it, run [`Next::catch`] instead.
    pub async fn run(self, ctx: &mut K::Context<'_>) -> Result<K::Output> {
        let outer = K::frame(ctx).enter(self.depth)?;
        let mut inside = Inside::<K> { ctx, outer: Some(outer) };
        let result = match self.layers.get(self.depth) {
            Some(layer) => layer.handle(&mut *inside.ctx, Self::new(self.layers, self.depth + 1)).await,
            None => K::run_core(&mut *inside.ctx).await,
        };
        inside.outer = None;
        K::frame(inside.ctx).leave(self.depth, outer, result)
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
    /// Who runs after it; `None` once the inside has ended.
    outer: Option<usize>,
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
        write!(f, "Next<{}>(depth {} of {})", K::KIND, self.depth, self.layers.len())
    }
}
