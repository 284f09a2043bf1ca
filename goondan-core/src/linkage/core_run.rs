//! Owns the run of a core as `next` awaits it: in a box of its own, or on the other side of a linkage.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::{Crossing, RemoteResult};
use crate::BoxFuture;
use crate::error::Result;

/// A core on the other side, which has been started.
pub trait FarCore: Send {
    /// Runs it as far as it comes.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<RemoteResult>>;
    /// Ends it, before its result when it is cancelled.
    fn end(&mut self);
}

/// A run of a core.
pub struct CoreRun<'a, T>(Place<'a, T>);

enum Place<'a, T> {
    Here(BoxFuture<'a, Result<T>>),
    /// Without a box: this is most of what a layer in a library costs.
    Far(&'a mut dyn FarCore),
}

impl<'a, T> CoreRun<'a, T> {
    /// The run of a core of this binary.
    pub fn here(run: impl Future<Output = Result<T>> + Send + 'a) -> Self {
        Self(Place::Here(Box::pin(run)))
    }

    /// The run of a core on the other side. Dropping it ends that.
    pub fn far(core: &'a mut dyn FarCore) -> Self {
        Self(Place::Far(core))
    }
}

impl<T: Crossing> Future for CoreRun<'_, T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        match &mut self.0 {
            Place::Here(run) => run.as_mut().poll(cx),
            Place::Far(core) => core.poll(cx).map_ok(T::remote),
        }
    }
}

impl<T> Drop for CoreRun<'_, T> {
    fn drop(&mut self) {
        if let Place::Far(core) = &mut self.0 {
            core.end();
        }
    }
}

impl<T> fmt::Debug for CoreRun<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CoreRun")
    }
}
