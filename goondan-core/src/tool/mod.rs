//! Tools: the catalog of a step, the handlers that answer calls, and the registry of an instance.

mod catalog;
mod handler;
mod host;
#[cfg(feature = "runtime")]
mod registry;
mod reply;

pub use catalog::{Effect, ToolCatalog, ToolItem, ToolSource};
pub use handler::{ToolContext, ToolHandler};
pub use host::ToolHost;
#[cfg(feature = "runtime")]
pub(crate) use registry::{Described, SharedTools, Tool, ToolRegistry};
pub use reply::{ReplyPart, ToolReply, WireReply};
