//! The common part of middlewares' directives: they are taken before `next` has reached the core.

use goondan_core::host::Directive;
use goondan_core::{Conversation, Error, ExtensionName, LayerInfo, MiddlewareKind, Result};

/// A part of a step that takes the directives of one type.
pub(super) trait Directed<D: Directive> {
    /// Takes a directive of the extension `by`, before the model is asked.
    ///
    /// # Errors
    /// When the directive must not be followed; the step fails.
    fn take(&mut self, directive: D, by: &ExtensionName, conversation: &Conversation) -> Result<()>;

    /// Returns whether another directive would change nothing, so that one that comes too late needs no warning.
    fn is_done(&self) -> bool {
        false
    }
}

/// Logs that an extension called a method of its context after `next` had reached the core, where it has no effect.
#[cold]
pub(super) fn warn_late(method: &str, by: &ExtensionName) {
    tracing::warn!(extension = %by, "`{method}` changed nothing: it was called after `next`");
}

/// Names the thing that a layer has set, such as a `reviewer`, in an error of it.
#[cold]
pub(super) fn at_part(error: Error, what: &str, layer: &LayerInfo) -> Error {
    let part = match layer.function.as_ref() {
        "" => what.to_owned(),
        function => format!("{what} of `{function}`"),
    };
    error.at(&layer.extension, part)
}

/// Names the layer of an error.
pub(super) fn at_layer(error: Error, by: &ExtensionName, kind: MiddlewareKind) -> Error {
    error.at(by, format!("{kind} middleware"))
}
