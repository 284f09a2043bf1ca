//! The extensions that are linked into a program, as far as a bundle is checked against them.

use goondan_core::{ExtensionDescriptor, MiddlewareDescriptor, ToolDescriptor, linked};
use serde_json::Value;

/// An extension of the program, as far as a bundle is checked against it.
#[derive(Clone, Debug)]
pub struct KnownExtension<'a> {
    /// The name that an entry refers to it by: `linked:<name>`.
    pub name: &'a str,
    /// Whether it guards: then its failures are never skipped.
    pub guard: bool,
    /// The JSON Schema of its config.
    pub config_schema: Value,
    /// The middlewares that it declares.
    pub middlewares: &'a [MiddlewareDescriptor],
    /// The tools that it declares.
    pub tools: &'a [ToolDescriptor],
}

impl KnownExtension<'static> {
    /// Returns the extensions that are linked into this program.
    pub fn linked() -> Vec<Self> {
        linked().into_iter().map(Self::from).collect()
    }
}

impl From<&'static ExtensionDescriptor> for KnownExtension<'static> {
    fn from(descriptor: &'static ExtensionDescriptor) -> Self {
        let ExtensionDescriptor { name, guard, config_schema, middlewares, tools, .. } = descriptor;
        Self { name, guard: *guard, config_schema: config_schema(), middlewares, tools }
    }
}
