//! Owns tools: what the model may call, what a step shows of it, and who answers.

mod catalog;
mod handler;
mod host;
#[cfg(feature = "runtime")]
mod registry;

pub use catalog::{Effect, ToolCatalog, ToolItem, ToolSource};
pub use handler::{ToolContext, ToolHandler};
pub use host::ToolHost;
#[cfg(feature = "runtime")]
pub(crate) use registry::{SharedTools, Tool, ToolRegistry};
