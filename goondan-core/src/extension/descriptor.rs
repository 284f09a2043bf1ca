//! Owns the descriptor: what is known of an extension before any code of it runs.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use super::ExtensionApi;
use crate::BoxFuture;
use crate::error::Result;
use crate::pipeline::MiddlewareKind;
use crate::tool::Effect;

/// The version of the contract that this build speaks (COMPAT-01).
pub const API_VERSION: &str = "goondan.ai/v1";

/// A type that `#[goondan::extension]` made an extension.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an extension",
    note = "put `#[goondan::extension(name = \"…\")]` on its `impl` block"
)]
pub trait Extension: Send + Sync + 'static {
    /// What is known of it before it runs.
    const DESCRIPTOR: &'static ExtensionDescriptor;
}

/// Computes a JSON Schema. A reference, so that it can be a function of this program or lead into a library.
pub type SchemaFn = &'static (dyn Fn() -> Value + Send + Sync);

/// Makes an instance of an extension.
pub type RegisterFn = &'static (dyn Fn(ExtensionApi, Value) -> BoxFuture<'static, Result<()>> + Send + Sync);

/// What is known of an extension before any code of it runs. `#[goondan::extension]` writes it.
pub struct ExtensionDescriptor {
    /// The name, which is the identity.
    pub name: &'static str,
    /// The first lines of documentation.
    pub description: &'static str,
    /// The crate that holds it.
    pub package: &'static str,
    /// The version of that crate.
    pub version: &'static str,
    /// The version of the contract that it was built for.
    pub api_version: &'static str,
    /// The middlewares that its attributes declare; `#[init]` may register others.
    pub middlewares: &'static [MiddlewareDescriptor],
    /// The tools that its attributes declare; `#[init]` may register others.
    pub tools: &'static [ToolDescriptor],
    /// The patterns of the events that its attributes subscribe to.
    pub subscriptions: &'static [&'static str],
    /// What the host must offer for it to run (COMPAT-02, COMPAT-03).
    pub requires: &'static [&'static str],
    /// The JSON Schema of its config.
    pub config_schema: SchemaFn,
    /// Makes an instance of the extension and registers what it has.
    pub register: RegisterFn,
}

/// A middleware that an attribute declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MiddlewareDescriptor {
    /// The kind.
    pub kind: MiddlewareKind,
    /// The function.
    pub function: &'static str,
    /// The priority.
    pub priority: i32,
    /// The extensions that it must be outside of; a `?` at the end marks one that may be missing.
    pub before: &'static [&'static str],
    /// The extensions that it must be inside of.
    pub after: &'static [&'static str],
}

impl fmt::Debug for ExtensionDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, package, version, middlewares, tools, subscriptions, requires, .. } = self;
        f.debug_struct("ExtensionDescriptor")
            .field("name", name)
            .field("package", &format_args!("{package} {version}"))
            .field("middlewares", middlewares)
            .field("tools", tools)
            .field("subscriptions", subscriptions)
            .field("requires", requires)
            .finish_non_exhaustive()
    }
}

/// A tool that an attribute declares.
#[derive(Clone, Copy)]
pub struct ToolDescriptor {
    /// The full name.
    pub name: &'static str,
    /// What the tool does, for the model.
    pub description: &'static str,
    /// What a call does to the world.
    pub effect: Effect,
    /// How long a call may take, if the attribute says so.
    pub timeout: Option<Duration>,
    /// The JSON Schema of the arguments.
    pub parameters: SchemaFn,
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

/// The entry of an extension in the list of those that are linked into this program.
#[derive(Debug)]
pub struct LinkedExtension(pub &'static ExtensionDescriptor);

inventory::collect!(LinkedExtension);

/// The extensions that are linked into this program, by name and then by package: the linker promises no order.
pub fn linked() -> Vec<&'static ExtensionDescriptor> {
    let mut all: Vec<_> = inventory::iter::<LinkedExtension>().map(|LinkedExtension(descriptor)| *descriptor).collect();
    all.sort_by_key(|descriptor| (descriptor.name, descriptor.package));
    all
}
