//! Owns tools: what the model may call, what a step shows of it, and who answers.

mod catalog;
mod handler;
#[cfg(feature = "runtime")]
mod registry;

pub use catalog::{Effect, ToolCatalog, ToolItem, ToolSource};
pub use handler::{ToolContext, ToolHandler};
#[cfg(feature = "runtime")]
pub(crate) use registry::{SharedTools, Tool, ToolRegistry};
