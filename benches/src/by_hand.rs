//! What somebody would write who has no framework: the yardsticks.

mod turn;

use std::fmt;
use std::sync::Arc;

use goondan::{BoxFuture, Result};

pub use turn::{Agent, Call, CallStage, PlainModel, PlainTool, Request, StepStage, Talk, TurnStage};

/// What a chain by hand stands around.
pub trait Stage: Send + Sync + 'static {
    /// What the layers see.
    type Context: Send;
    /// What they hand on.
    type Output: Send;

    /// What is inside of the layers.
    fn core(ctx: &mut Self::Context) -> BoxFuture<'_, Result<Self::Output>>;
}

/// A layer of the chain by hand: borrowed `Next`, boxed future.
pub trait Layer<S: Stage>: Send + Sync {
    /// Runs the layer.
    fn handle<'a>(&'a self, ctx: &'a mut S::Context, next: Rest<'a, S>) -> BoxFuture<'a, Result<S::Output>>;
}

/// The rest of the chain by hand.
pub struct Rest<'a, S: Stage>(&'a [Arc<dyn Layer<S>>]);

impl<S: Stage> fmt::Debug for Rest<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rest({})", self.0.len())
    }
}

impl<'a, S: Stage> Rest<'a, S> {
    /// All layers.
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

/// Does nothing.
#[derive(Debug)]
pub struct Plain;

impl<S: Stage> Layer<S> for Plain {
    fn handle<'a>(&'a self, ctx: &'a mut S::Context, next: Rest<'a, S>) -> BoxFuture<'a, Result<S::Output>> {
        Box::pin(async move { next.run(ctx).await })
    }
}

/// So many layers that do nothing.
pub fn plain<S: Stage>(depth: usize) -> Vec<Arc<dyn Layer<S>>> {
    (0..depth).map(|_| Arc::new(Plain) as _).collect()
}

/// Counts how often it runs, to measure the layers around it.
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
