//! The extensions that are linked into a program, as far as a bundle is checked against them.

use std::fmt;

use goondan_core::{ExtensionDescriptor, MiddlewareDescriptor, SchemaFn, ToolDescriptor, linked};
use serde_json::Value;

/// An extension of the program, as far as a bundle is checked against it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KnownExtension<'a> {
    /// The name that an entry refers to it by: `linked:<name>`.
    pub name: &'a str,
    /// Whether it guards: then its failures are never skipped.
    pub guard: bool,
    /// The capabilities that it requires of the program.
    pub requires: &'a [&'a str],
    /// The JSON Schema of its config.
    pub config_schema: ConfigSchema,
    /// The middlewares that it declares.
    pub middlewares: &'a [MiddlewareDescriptor],
    /// The tools that it declares.
    pub tools: &'a [ToolDescriptor],
}

/// The JSON Schema of a config. One that a function computes is computed only for a bundle that uses the extension: a
/// program may have many extensions.
#[derive(Clone)]
#[non_exhaustive]
pub enum ConfigSchema {
    /// This one.
    Value(Value),
    /// The value that this function returns.
    Function(SchemaFn),
}

impl ConfigSchema {
    pub(crate) fn compute(&self) -> Value {
        match self {
            Self::Value(schema) => schema.clone(),
            Self::Function(schema) => schema(),
        }
    }
}

impl From<Value> for ConfigSchema {
    fn from(schema: Value) -> Self {
        Self::Value(schema)
    }
}

impl fmt::Debug for ConfigSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.compute(), f)
    }
}

impl<'a> KnownExtension<'a> {
    /// An extension with the schema of its config and without middlewares and tools, which can be set.
    pub fn new(name: &'a str, config_schema: impl Into<ConfigSchema>) -> Self {
        Self { name, guard: false, requires: &[], config_schema: config_schema.into(), middlewares: &[], tools: &[] }
    }
}

impl KnownExtension<'static> {
    /// Returns the extensions that are linked into this program.
    pub fn linked() -> Vec<Self> {
        linked().into_iter().map(Self::from).collect()
    }
}

impl From<&'static ExtensionDescriptor> for KnownExtension<'static> {
    fn from(descriptor: &'static ExtensionDescriptor) -> Self {
        let ExtensionDescriptor { name, guard, requires, config_schema, middlewares, tools, .. } = descriptor;
        let config_schema = ConfigSchema::Function(*config_schema);
        Self { name, guard: *guard, requires, config_schema, middlewares, tools }
    }
}
