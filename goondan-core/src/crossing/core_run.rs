//! The future of a core, which `next` awaits: boxed in this binary, or polled in the host of this library.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::remote::{Crossing, RemoteResult};
use crate::BoxFuture;
use crate::error::Result;

/// A core that runs in the host of this library.
pub trait RemoteCore: Send {
    /// Polls the core.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<RemoteResult>>;
    /// Ends the run. Without a result yet, this cancels it.
    fn end(&mut self);
}

/// The future of a core.
pub struct CoreRun<'a, T>(Run<'a, T>);

enum Run<'a, T> {
    Local(BoxFuture<'a, Result<T>>),
    /// Borrowed, because a box here would be most of the cost of a layer in a library.
    Remote(&'a mut dyn RemoteCore),
}

impl<'a, T> CoreRun<'a, T> {
    /// A core of this binary.
    pub fn local(run: impl Future<Output = Result<T>> + Send + 'a) -> Self {
        Self(Run::Local(Box::pin(run)))
    }

    /// A core that runs in the host. Dropping the run ends it there.
    pub fn remote(core: &'a mut dyn RemoteCore) -> Self {
        Self(Run::Remote(core))
    }
}

impl<T: Crossing> Future for CoreRun<'_, T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        match &mut self.0 {
            Run::Local(run) => run.as_mut().poll(cx),
            Run::Remote(core) => core.poll(cx).map_ok(T::remote),
        }
    }
}

impl<T> Drop for CoreRun<'_, T> {
    fn drop(&mut self) {
        if let Run::Remote(core) = &mut self.0 {
            core.end();
        }
    }
}

impl<T> fmt::Debug for CoreRun<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CoreRun")
    }
}
