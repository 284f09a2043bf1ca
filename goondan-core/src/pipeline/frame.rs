//! Tracks one run of a chain: which layer runs, and how far `next` has come.

use std::fmt;

use super::LayerInfo;
use crate::error::{Error, ErrorCode, Result};
use crate::name::ExtensionName;

/// The position of a layer, counted from 0, the outermost one. Small, because every layer stores one while the rest of
/// the chain runs.
pub(super) type Depth = u32;

/// The depth of the caller of the chain.
const OUTSIDE: Depth = Depth::MAX;

/// The state of one run of a chain. It is part of the context, and [`Next::run`](super::Next::run) updates it: plain
/// numbers, so that a layer costs two stores and a comparison.
///
/// The core has the depth after the innermost layer.
pub struct Frame<'a> {
    layers: &'a [LayerInfo],
    /// The depth whose code runs now.
    running: Depth,
    /// The depth that may be entered next. A depth is entered at most once in a run (NEXT-03).
    next: Depth,
    /// The depth that was left last.
    left: Depth,
    /// Whether that depth failed.
    failed: bool,
    /// The depth whose code panicked.
    panicked: Option<Depth>,
    /// The state that a layer shares with its probe if its failures are skipped. It depends on the kind.
    pub(super) watch: Option<std::sync::Arc<dyn std::any::Any + Send + Sync>>,
}

impl<'a> Frame<'a> {
    /// A frame for a run that has not started.
    pub fn new(layers: &'a [LayerInfo]) -> Self {
        Self { layers, running: OUTSIDE, next: 0, left: OUTSIDE, failed: false, panicked: None, watch: None }
    }

    /// A frame for a run in which the one layer of `layers` runs already.
    pub(super) fn inside(layers: &'a [LayerInfo; 1]) -> Self {
        Self { running: 0, next: 1, ..Self::new(layers) }
    }

    /// Returns the extension whose layer runs, or `None` in the core.
    pub(crate) fn extension(&self) -> Option<&ExtensionName> {
        Some(&self.layer(self.running)?.extension)
    }

    /// Returns the layer that runs, or `None` in the core.
    pub(crate) fn running(&self) -> Option<&'a LayerInfo> {
        self.layer(self.running)
    }

    /// Returns the error with the name of the layer that runs.
    #[cold]
    pub(crate) fn blame(&self, error: Error) -> Error {
        match self.layer(self.running) {
            Some(layer) => at_layer(error, layer),
            None => error,
        }
    }

    /// Returns the layer whose code panicked, or `None` if it was the core.
    pub(super) fn panicking(&self) -> Option<&'a LayerInfo> {
        self.layer(self.panicked?)
    }

    fn layer(&self, depth: Depth) -> Option<&'a LayerInfo> {
        self.layers.get(depth as usize)
    }

    /// Returns the depth of the outermost one of the `inside` innermost layers.
    fn depth(&self, inside: usize) -> Depth {
        // A chain has far fewer layers than `Depth` can count. A `next` of a longer chain than this wraps around, and
        // `enter` refuses it.
        self.layers.len().wrapping_sub(inside) as Depth
    }

    /// Records that the outermost one of the `inside` innermost layers runs, or the core if `inside` is 0. Returns the
    /// depth that ran before.
    ///
    /// # Errors
    /// `E_EXT_NEXT` when that depth was entered before (NEXT-03).
    #[inline]
    pub(super) fn enter(&mut self, inside: usize) -> Result<Depth> {
        let depth = self.depth(inside);
        if depth != self.next {
            return Err(
                self.misuse("ran `next` a second time", "run `next` once; to retry, return `Error::retry_after`")
            );
        }
        self.next = depth + 1;
        Ok(std::mem::replace(&mut self.running, depth))
    }

    /// Records that the rest of the chain, run by the layer at `outer`, was dropped before its end.
    #[inline]
    pub(super) fn abandon(&mut self, outer: Depth) {
        // Unwinding passes the innermost layer first: the one that panicked.
        if std::thread::panicking() {
            self.panicked.get_or_insert(self.running);
        } else {
            // A panic further in, if any, was caught when the future was dropped.
            self.panicked = None;
        }
        self.running = outer;
    }

    /// Records that the layer of the matching [`Frame::enter`] returned, and that `outer` runs again. Returns the
    /// result, checked: a layer may succeed only if its `next` ended (NEXT-01), and an error that a layer did not get
    /// from `next` is given its name.
    #[inline]
    pub(super) fn leave<T>(&mut self, inside: usize, outer: Depth, result: Result<T>) -> Result<T> {
        let depth = self.depth(inside);
        let next_ended = self.left == depth + 1;
        let next_failed = next_ended && self.failed;
        self.running = outer;
        self.left = depth;
        self.failed = result.is_err();
        // The common case, which every layer pays for.
        if result.is_ok() && (next_ended || inside == 0) {
            return result;
        }
        self.check(depth, next_ended, next_failed, result)
    }

    #[cold]
    fn check<T>(&mut self, depth: Depth, next_ended: bool, next_failed: bool, result: Result<T>) -> Result<T> {
        match (&result, self.layer(depth)) {
            (Ok(_), Some(layer)) if !next_ended => {
                self.failed = true;
                Err(next_not_run(layer))
            }
            (Err(_), Some(layer)) if !next_failed => result.map_err(|error| at_layer(error, layer)),
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
pub(super) fn at_layer(error: Error, layer: &LayerInfo) -> Error {
    error.at(&layer.extension, layer.part())
}

#[cold]
pub(super) fn next_not_run(layer: &LayerInfo) -> Error {
    let why = "returned a result without running `next` to its end";
    misuse(layer, why, "return the result of `next.run(ctx).await` of this run")
}

fn misuse(layer: &LayerInfo, why: &str, suggestion: &'static str) -> Error {
    Error::new(ErrorCode::EXT_NEXT, format!("the middleware {why}"))
        .suggest(suggestion)
        .at(&layer.extension, layer.part())
}

impl fmt::Debug for Frame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frame").field("running", &self.running).field("left", &self.left).finish_non_exhaustive()
    }
}
