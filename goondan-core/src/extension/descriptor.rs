//! The descriptor: static data that describes an extension before any of its code runs.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::ExtensionApi;
use crate::BoxFuture;
use crate::error::Result;
use crate::error::{Error, ErrorCode};
use crate::pipeline::MiddlewareKind;
use crate::pipeline::OnError;
use crate::tool::{Effect, LineTemplate};

/// The version of the contract of this build.
// COMPAT-01
pub const API_VERSION: &str = "goondan.ai/v1";

/// A type that is an extension. `#[goondan::extension]` implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an extension",
    note = "put `#[goondan::extension(name = \"…\")]` on its `impl` block"
)]
pub trait Extension: Send + Sync + 'static {
    /// The descriptor of the extension.
    const DESCRIPTOR: &'static ExtensionDescriptor;
}

/// Computes a JSON Schema. A trait object, because it is a function of this program or a call into a library.
pub type SchemaFn = &'static (dyn Fn() -> Value + Send + Sync);

/// Makes an extension for one conversation, and registers it.
pub type RegisterFn = &'static (dyn Fn(ExtensionApi, Value) -> BoxFuture<'static, Result<()>> + Send + Sync);

/// Static data that describes an extension before any of its code runs. `#[goondan::extension]` generates it.
#[non_exhaustive]
pub struct ExtensionDescriptor {
    /// The name, which identifies the extension.
    pub name: &'static str,
    /// The description, from the first lines of the documentation.
    pub description: &'static str,
    /// The crate that contains it.
    pub package: &'static str,
    /// The version of that crate.
    pub version: &'static str,
    /// The version of the contract that it was built for.
    pub api_version: &'static str,
    /// The middlewares that attributes declare; `#[init]` may register others.
    pub middlewares: &'static [MiddlewareDescriptor],
    /// The tools that attributes declare; `#[init]` may register others.
    pub tools: &'static [ToolDescriptor],
    /// The patterns of events that attributes subscribe to.
    pub subscriptions: &'static [&'static str],
    /// The capabilities that the extension requires of the host.
    // COMPAT-02, COMPAT-03
    pub requires: &'static [&'static str],
    /// Whether the extension guards: then its failures are never skipped.
    // FAIL-01
    pub guard: bool,
    /// The JSON Schema of its config.
    pub config_schema: SchemaFn,
    /// Makes the extension for one conversation, and registers its functions.
    pub register: RegisterFn,
}

impl ExtensionDescriptor {
    /// Returns the descriptor of an extension of this version of the contract that declares nothing yet.
    pub const fn new(name: &'static str, config_schema: SchemaFn, register: RegisterFn) -> Self {
        Self {
            name,
            description: "",
            package: "",
            version: "",
            api_version: API_VERSION,
            middlewares: &[],
            tools: &[],
            subscriptions: &[],
            requires: &[],
            guard: false,
            config_schema,
            register,
        }
    }

    /// Sets the description.
    #[must_use]
    pub const fn description(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Sets the crate that contains the extension, and its version.
    #[must_use]
    pub const fn package(self, package: &'static str, version: &'static str) -> Self {
        Self { package, version, ..self }
    }

    /// Sets the declared middlewares.
    #[must_use]
    pub const fn middlewares(self, middlewares: &'static [MiddlewareDescriptor]) -> Self {
        Self { middlewares, ..self }
    }

    /// Sets the declared tools.
    #[must_use]
    pub const fn tools(self, tools: &'static [ToolDescriptor]) -> Self {
        Self { tools, ..self }
    }

    /// Sets the patterns of events.
    #[must_use]
    pub const fn subscriptions(self, subscriptions: &'static [&'static str]) -> Self {
        Self { subscriptions, ..self }
    }

    /// Sets the required capabilities.
    #[must_use]
    pub const fn requires(self, requires: &'static [&'static str]) -> Self {
        Self { requires, ..self }
    }

    /// Sets whether the extension guards.
    #[must_use]
    pub const fn guard(self, guard: bool) -> Self {
        Self { guard, ..self }
    }

    /// Checks that an agent may have the extension under `on_error`.
    ///
    /// # Errors
    /// `E_EXT_GUARD` when the failures of an extension that guards are to be skipped.
    // FAIL-01
    pub fn check_on_error(&self, on_error: OnError) -> Result<()> {
        if self.guard && on_error == OnError::Skip { Err(skipped_guard()) } else { Ok(()) }
    }
}

/// The error for an extension that guards and whose failures are to be skipped.
#[doc(hidden)]
pub fn skipped_guard() -> Error {
    let message =
        "the extension guards: if its failures were skipped, it would let everything pass that it cannot judge";
    Error::new(ErrorCode::EXT_GUARD, message)
        .suggest("write `onError: abort`, or remove it, since `abort` is the default")
}

/// A middleware that an attribute declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MiddlewareDescriptor {
    /// The kind.
    pub kind: MiddlewareKind,
    /// The name of the function.
    pub function: &'static str,
    /// The priority.
    pub priority: i32,
    /// The extensions whose layers must be inside of this one. A trailing `?` marks one that may be missing.
    pub before: &'static [&'static str],
    /// The extensions whose layers must be outside of this one, in the same notation.
    pub after: &'static [&'static str],
}

impl MiddlewareDescriptor {
    /// Returns the descriptor of a middleware with the priority 0, beside any other.
    pub const fn new(kind: MiddlewareKind, function: &'static str) -> Self {
        Self { kind, function, priority: 0, before: &[], after: &[] }
    }

    /// Sets the priority.
    #[must_use]
    pub const fn priority(self, priority: i32) -> Self {
        Self { priority, ..self }
    }

    /// Sets the extensions whose layers must be inside of this one.
    #[must_use]
    pub const fn before(self, before: &'static [&'static str]) -> Self {
        Self { before, ..self }
    }

    /// Sets the extensions whose layers must be outside of this one.
    #[must_use]
    pub const fn after(self, after: &'static [&'static str]) -> Self {
        Self { after, ..self }
    }
}

impl fmt::Debug for ExtensionDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, package, version, middlewares, tools, subscriptions, requires, guard, .. } = self;
        f.debug_struct("ExtensionDescriptor")
            .field("name", name)
            .field("package", &format_args!("{package} {version}"))
            .field("middlewares", middlewares)
            .field("tools", tools)
            .field("subscriptions", subscriptions)
            .field("requires", requires)
            .field("guard", guard)
            .finish_non_exhaustive()
    }
}

/// A tool that an attribute declares.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ToolDescriptor {
    /// The full name.
    pub name: &'static str,
    /// The description of the tool, for the model.
    pub description: &'static str,
    /// Whether a call changes anything, and may be repeated.
    pub effect: Effect,
    /// The longest time that a call may take, if the attribute sets it.
    pub timeout: Option<Duration>,
    /// Whether the handler asks a person, by [`ToolReply::ask`](crate::ToolReply::ask).
    pub asks: bool,
    /// Whether calls run beside other calls of the same answer.
    pub parallel: bool,
    /// The JSON Schema of the arguments.
    pub parameters: SchemaFn,
    /// The line that presents a call to people, if the attribute has a text for it.
    pub line: Option<LineTemplate>,
}

impl ToolDescriptor {
    /// Returns the descriptor of a tool whose calls must not run twice, with the timeout of other tools.
    pub const fn new(name: &'static str, parameters: SchemaFn) -> Self {
        let (effect, timeout, line) = (Effect::Once, None, None);
        Self { name, description: "", effect, timeout, asks: false, parallel: false, parameters, line }
    }

    /// Sets the description of the tool, for the model.
    #[must_use]
    pub const fn description(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Sets whether a call changes anything, and may be repeated.
    #[must_use]
    pub const fn effect(self, effect: Effect) -> Self {
        Self { effect, ..self }
    }

    /// Sets how long a call may take.
    #[must_use]
    pub const fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Says that the handler asks a person.
    #[must_use]
    pub const fn asks(self) -> Self {
        Self { asks: true, ..self }
    }

    /// Lets calls run beside other calls of the same answer.
    #[must_use]
    pub const fn parallel(self) -> Self {
        Self { parallel: true, ..self }
    }

    /// Sets the line that presents a call to people.
    #[must_use]
    pub const fn line(self, line: LineTemplate) -> Self {
        Self { line: Some(line), ..self }
    }
}

impl fmt::Debug for ToolDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, effect, timeout, .. } = self;
        f.debug_struct("ToolDescriptor")
            .field("name", name)
            .field("effect", effect)
            .field("timeout", timeout)
            .finish_non_exhaustive()
    }
}

/// The entry of an extension in the [`inventory`] of extensions that are linked into this program.
#[derive(Debug)]
pub struct LinkedExtension(&'static ExtensionDescriptor);

impl LinkedExtension {
    /// Returns the entry of the extension with this descriptor.
    pub const fn new(descriptor: &'static ExtensionDescriptor) -> Self {
        Self(descriptor)
    }
}

inventory::collect!(LinkedExtension);

/// Returns the extensions that are linked into this program, sorted by name and then by package, because the linker
/// guarantees no order.
pub fn linked() -> Vec<&'static ExtensionDescriptor> {
    let mut all: Vec<_> = inventory::iter::<LinkedExtension>().map(|LinkedExtension(descriptor)| *descriptor).collect();
    all.sort_by_key(|descriptor| (descriptor.name, descriptor.package));
    all
}
