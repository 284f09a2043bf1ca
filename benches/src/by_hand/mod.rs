//! The yardsticks: layers, chains and turns as one would write them without a framework.
//!
//! A [`Stage`] is a kind of work with layers around it. Those of a turn are in `turn`; [`crate::step::IdleStep`] is
//! the one beside which layers in libraries are measured.

mod turn;

use std::fmt;
use std::sync::Arc;

use goondan::{BoxFuture, Result};

pub use turn::{Agent, Call, CallStage, Conversation, PlainModel, PlainTool, Request, StepStage, TurnStage};

/// A kind of work that a chain by hand wraps.
pub trait Stage: Send + Sync + 'static {
    /// What the layers see and change.
    type Context: Send;
    /// What the layers return.
    type Output: Send;

    /// Runs the work inside the layers.
    fn core(ctx: &mut Self::Context) -> BoxFuture<'_, Result<Self::Output>>;
}

/// A layer of the chain by hand: borrowed `Next`, boxed future.
pub trait Layer<S: Stage>: Send + Sync {
    /// Runs the layer.
    fn handle<'a>(&'a self, ctx: &'a mut S::Context, next: Next<'a, S>) -> BoxFuture<'a, Result<S::Output>>;
}

/// The rest of a chain by hand: the layers that have not run yet, and the core.
pub struct Next<'a, S: Stage>(&'a [Arc<dyn Layer<S>>]);

impl<S: Stage> fmt::Debug for Next<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Next({})", self.0.len())
    }
}

impl<'a, S: Stage> Next<'a, S> {
    /// The whole chain.
    pub fn new(layers: &'a [Arc<dyn Layer<S>>]) -> Self {
        Self(layers)
    }

    /// Runs the rest of the chain.
    pub fn run(self, ctx: &'a mut S::Context) -> BoxFuture<'a, Result<S::Output>> {
        match self.0.split_first() {
            Some((layer, rest)) => layer.handle(ctx, Self(rest)),
            None => S::core(ctx),
        }
    }
}

/// A layer that only runs the rest of the chain.
#[derive(Debug)]
pub struct NoopLayer;

impl<S: Stage> Layer<S> for NoopLayer {
    fn handle<'a>(&'a self, ctx: &'a mut S::Context, next: Next<'a, S>) -> BoxFuture<'a, Result<S::Output>> {
        Box::pin(async move { next.run(ctx).await })
    }
}

/// Makes `depth` layers that do nothing.
pub fn noop_layers<S: Stage>(depth: usize) -> Vec<Arc<dyn Layer<S>>> {
    (0..depth).map(|_| Arc::new(NoopLayer) as _).collect()
}

/// Work that only counts how often it runs, to measure the layers around it.
#[derive(Debug)]
pub struct Count;

impl Stage for Count {
    type Context = u64;
    type Output = Box<u64>;

    fn core(runs: &mut u64) -> BoxFuture<'_, Result<Box<u64>>> {
        Box::pin(async move {
            *runs += 1;
            Ok(Box::new(*runs))
        })
    }
}
