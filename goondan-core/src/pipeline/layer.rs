//! The description of a layer: its kind, its options, and the extension that it comes from.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::OnError;
use crate::name::ExtensionName;

/// One of the three kinds of middleware, as a value.
// API-05
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum MiddlewareKind {
    /// Around the whole handling of one input event.
    // PIPE-06
    Turn,
    /// Around one model call and the tool calls that it asks for.
    // PIPE-07
    Step,
    /// Around one tool call.
    // PIPE-08
    ToolCall,
}

impl MiddlewareKind {
    /// All kinds, from the outermost to the innermost.
    pub const ALL: [Self; 3] = [Self::Turn, Self::Step, Self::ToolCall];

    /// Returns the kind as it is written in `#[middleware(…)]`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Step => "step",
            Self::ToolCall => "toolCall",
        }
    }
}

impl fmt::Display for MiddlewareKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The options of a middleware: its priority, its name, and constraints on its position in the chain.
///
/// ```
/// use goondan::middleware::MiddlewareOptions;
///
/// let options = MiddlewareOptions::priority(-10).named("audit").before("retry?");
/// assert_eq!(options.priority, -10);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MiddlewareOptions {
    /// The lower, the further out. Defaults to 0.
    // API-09, ORDER-06
    #[serde(skip)]
    pub priority: i32,
    /// The name of the middleware in errors and in `goondan order`. `#[middleware]` sets the name of the function.
    pub name: Cow<'static, str>,
    /// The extensions whose layers of this kind must be inside of this one, whatever the priorities. An agent without
    /// such an extension is an error, unless the name ends in `?`.
    // ORDER-11
    pub before: Vec<Cow<'static, str>>,
    /// The extensions whose layers of this kind must be outside of this one, in the same way.
    pub after: Vec<Cow<'static, str>>,
}

impl MiddlewareOptions {
    /// Returns the defaults with `priority`.
    pub fn priority(priority: i32) -> Self {
        Self { priority, ..Self::default() }
    }

    /// Sets the name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Requires the layer to be further out than `extension`: see the field
    /// [`before`](field@MiddlewareOptions::before).
    #[must_use]
    pub fn before(mut self, extension: impl Into<Cow<'static, str>>) -> Self {
        self.before.push(extension.into());
        self
    }

    /// Requires the layer to be further in than `extension`: see the field
    /// [`after`](field@MiddlewareOptions::after).
    #[must_use]
    pub fn after(mut self, extension: impl Into<Cow<'static, str>>) -> Self {
        self.after.push(extension.into());
        self
    }
}

/// The description of a layer: where it comes from, and the reasons for its position in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LayerInfo {
    /// The extension that registered the layer.
    pub extension: ExtensionName,
    /// The kind.
    pub kind: MiddlewareKind,
    /// The name of the function; empty if it was registered without a name.
    pub function: Cow<'static, str>,
    /// The priority; a lower one is further out.
    pub priority: i32,
    /// The extensions whose layers must be inside of this one. A trailing `?` marks one that may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Cow<'static, str>>,
    /// The extensions whose layers must be outside of this one, in the same notation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Cow<'static, str>>,
    /// The effect of a failure of the layer.
    // FAIL-01
    #[serde(skip_serializing_if = "OnError::is_abort")]
    pub on_error: OnError,
    /// Whether the layer guards a swarm: it lies outside of all that do not, whatever its priority.
    // GUARD-01, D-43
    #[serde(skip_serializing_if = "is_false")]
    pub guards_swarm: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl LayerInfo {
    /// The layer that `extension` registered with `options`. Its failures abort.
    pub fn new(extension: ExtensionName, kind: MiddlewareKind, options: MiddlewareOptions) -> Self {
        let MiddlewareOptions { priority, name, before, after } = options;
        Self { extension, kind, function: name, priority, before, after, on_error: OnError::Abort, guards_swarm: false }
    }

    /// Returns the constraints as they were written: the option, and the extension.
    pub(super) fn constraints(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let before = self.before.iter().map(|name| ("before", &**name));
        before.chain(self.after.iter().map(|name| ("after", &**name)))
    }

    /// Returns the name of the layer in errors.
    #[doc(hidden)]
    pub fn part(&self) -> String {
        match self.function.as_ref() {
            "" => format!("{} middleware", self.kind),
            function => format!("{} middleware `{function}`", self.kind),
        }
    }
}
