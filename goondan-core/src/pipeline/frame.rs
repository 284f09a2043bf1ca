//! Owns the host frame: the account that the core keeps between two layers of a run.

use std::fmt;

use super::LayerInfo;
use crate::error::{Error, ErrorCode, Result};
use crate::name::ExtensionName;

/// How many layers lie outside. Small, because every layer keeps one while its inside runs.
pub(super) type Depth = u32;

/// The depth of who is no layer.
const NOBODY: Depth = Depth::MAX;

/// Who runs, and how far `next` has come. Plain numbers in the context, written by [`Next::run`](super::Next::run): a
/// layer costs two stores and a comparison.
///
/// Depths count from 0, the outermost layer; the core is the depth behind the innermost one.
pub struct Frame<'a> {
    layers: &'a [LayerInfo],
    /// The depth whose code runs now.
    running: Depth,
    /// The depth that may be entered next. A depth is entered at most once in a run (NEXT-03).
    fresh: Depth,
    /// The depth that was left last.
    left: Depth,
    /// Whether that depth failed.
    failed: bool,
    /// The depth whose code panicked.
    panicked: Option<Depth>,
}

impl<'a> Frame<'a> {
    /// The frame of a run that has not started.
    pub fn new(layers: &'a [LayerInfo]) -> Self {
        Self { layers, running: NOBODY, fresh: 0, left: NOBODY, failed: false, panicked: None }
    }

    /// The frame of a run that has come to the one layer `layers`.
    pub(super) fn inside(layers: &'a [LayerInfo; 1]) -> Self {
        Self { running: 0, fresh: 1, ..Self::new(layers) }
    }

    /// The extension whose layer runs; none in the core.
    pub(crate) fn extension(&self) -> Option<&ExtensionName> {
        Some(&self.layer(self.running)?.extension)
    }

    /// The layer whose code panicked; none when it was the core.
    pub(super) fn panicking(&self) -> Option<&'a LayerInfo> {
        self.layer(self.panicked?)
    }

    fn layer(&self, depth: Depth) -> Option<&'a LayerInfo> {
        self.layers.get(depth as usize)
    }

    /// The depth that has so many layers inside of it, itself included.
    fn depth(&self, inside: usize) -> Depth {
        // An agent has far fewer layers than would not fit; a `next` of a longer chain is refused by `enter`.
        self.layers.len().wrapping_sub(inside) as Depth
    }

    /// Notes that the layer runs that is the first of the `inside` ones, or the core when there are none, and tells who ran
    /// before.
    ///
    /// # Errors
    /// `E_EXT_NEXT` when that depth was entered before (NEXT-03).
    #[inline]
    pub(super) fn enter(&mut self, inside: usize) -> Result<Depth> {
        let depth = self.depth(inside);
        if depth != self.fresh {
            return Err(
                self.misuse("ran `next` a second time", "run `next` once; to retry, return `Error::retry_after`")
            );
        }
        self.fresh = depth + 1;
        Ok(std::mem::replace(&mut self.running, depth))
    }

    /// Notes that what the layer at `outer` ran inside of it did not come to its end.
    #[inline]
    pub(super) fn abandon(&mut self, outer: Depth) {
        // Unwinding passes the innermost layer first: the one to blame.
        if std::thread::panicking() {
            self.panicked.get_or_insert(self.running);
        }
        self.running = outer;
    }

    /// Notes that what [`Frame::enter`] noted ended and `outer` runs again, and judges the result: a success must rest on the depth below
    /// having ended (NEXT-01), and a failure of its own gets the layer's name.
    #[inline]
    pub(super) fn leave<T>(&mut self, inside: usize, outer: Depth, result: Result<T>) -> Result<T> {
        let depth = self.depth(inside);
        let next_ended = self.left == depth + 1;
        let next_failed = next_ended && self.failed;
        self.running = outer;
        self.left = depth;
        self.failed = result.is_err();
        // Nearly always, and the way that every layer pays for.
        if result.is_ok() && (next_ended || inside == 0) {
            return result;
        }
        self.judge(depth, next_ended, next_failed, result)
    }

    #[cold]
    fn judge<T>(&mut self, depth: Depth, next_ended: bool, next_failed: bool, result: Result<T>) -> Result<T> {
        match (&result, self.layer(depth)) {
            (Ok(_), Some(layer)) if !next_ended => {
                self.failed = true;
                Err(unrun(layer))
            }
            (Err(_), Some(layer)) if !next_failed => result.map_err(|error| named(error, layer)),
            _ => result,
        }
    }

    #[cold]
    fn misuse(&self, why: &str, suggestion: &'static str) -> Error {
        match self.layer(self.running) {
            Some(layer) => misuse(layer, why, suggestion),
            None => Error::new(ErrorCode::EXT_NEXT, why.to_owned()).suggest(suggestion),
        }
    }
}

#[cold]
fn named(error: Error, layer: &LayerInfo) -> Error {
    error.at(&layer.extension, layer.hook())
}

#[cold]
fn unrun(layer: &LayerInfo) -> Error {
    let why = "gave a result without running `next` to its end";
    misuse(layer, why, "return what `next.run(ctx).await` gave in this run")
}

fn misuse(layer: &LayerInfo, why: &str, suggestion: &'static str) -> Error {
    Error::new(ErrorCode::EXT_NEXT, format!("the middleware {why}"))
        .suggest(suggestion)
        .at(&layer.extension, layer.hook())
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").field("running", &self.running).field("left", &self.left).finish_non_exhaustive()
    }
}
