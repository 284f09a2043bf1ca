//! Owns the host frame: the account that the core keeps between two layers of a run.

use std::fmt;

use super::LayerInfo;
use crate::error::{Error, ErrorCode, Result};
use crate::name::ExtensionName;

/// Who runs, and how far `next` has come. Plain numbers in the context, written by [`Next::run`](super::Next::run): a
/// layer costs two stores and a comparison.
///
/// Depths count from 0, the outermost layer; the core is the depth behind the innermost one.
pub struct Frame<'a> {
    layers: &'a [LayerInfo],
    /// The depth whose code runs now.
    running: usize,
    /// The depth that may be entered next. A depth is entered at most once in a run (NEXT-03).
    fresh: usize,
    /// The depth that was left last.
    left: usize,
    /// Whether that depth failed.
    failed: bool,
    /// The depth whose code panicked.
    panicked: Option<usize>,
}

impl<'a> Frame<'a> {
    /// The frame of a run that has not started.
    pub fn new(layers: &'a [LayerInfo]) -> Self {
        Self { layers, running: usize::MAX, fresh: 0, left: usize::MAX, failed: false, panicked: None }
    }

    /// The frame of a run that has come to the one layer `layers`.
    pub(super) fn inside(layers: &'a [LayerInfo; 1]) -> Self {
        Self { running: 0, fresh: 1, ..Self::new(layers) }
    }

    /// The extension whose layer runs; none in the core.
    pub(crate) fn extension(&self) -> Option<&ExtensionName> {
        Some(&self.layers.get(self.running)?.extension)
    }

    /// The layer whose code panicked; none when it was the core.
    pub(super) fn panicking(&self) -> Option<&'a LayerInfo> {
        self.layers.get(self.panicked?)
    }

    /// Notes that the layer at `depth` runs, and tells who ran before.
    ///
    /// # Errors
    /// `E_EXT_NEXT` when that depth was entered before (NEXT-03).
    pub(super) fn enter(&mut self, depth: usize) -> Result<usize> {
        if depth != self.fresh {
            return Err(
                self.misuse("ran `next` a second time", "run `next` once; to retry, return `Error::retry_after`")
            );
        }
        self.fresh = depth + 1;
        Ok(std::mem::replace(&mut self.running, depth))
    }

    /// Notes that what the layer at `outer` ran inside of it did not come to its end.
    pub(super) fn abandon(&mut self, outer: usize) {
        // Unwinding passes the innermost layer first: the one to blame.
        if std::thread::panicking() {
            self.panicked.get_or_insert(self.running);
        }
        self.running = outer;
    }

    /// Notes that `depth` ended and `outer` runs again, and judges the result: a success must rest on the depth below
    /// having ended (NEXT-01), and a failure of its own gets the layer's name.
    pub(super) fn leave<T>(&mut self, depth: usize, outer: usize, result: Result<T>) -> Result<T> {
        let next_ended = self.left == depth + 1;
        let next_failed = next_ended && self.failed;
        self.running = outer;
        self.left = depth;
        self.failed = result.is_err();
        match (&result, self.layers.get(depth)) {
            (Ok(_), Some(layer)) if !next_ended => {
                self.failed = true;
                let why = "gave a result without running `next` to its end";
                Err(misuse(layer, why, "return what `next.run(ctx).await` gave in this run"))
            }
            (Err(_), Some(layer)) if !next_failed => result.map_err(|error| error.at(&layer.extension, layer.hook())),
            _ => result,
        }
    }

    fn misuse(&self, why: &str, suggestion: &'static str) -> Error {
        match self.layers.get(self.running) {
            Some(layer) => misuse(layer, why, suggestion),
            None => Error::new(ErrorCode::EXT_NEXT, why.to_owned()).suggest(suggestion),
        }
    }
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
