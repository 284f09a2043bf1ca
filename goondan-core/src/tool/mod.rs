//! Tools: the catalog of a step, the handlers that answer calls, and the registry of an instance.

mod catalog;
mod handler;
mod host;
mod large;
mod presenter;
mod provided;
mod reply;

pub use catalog::{Effect, ToolCatalog, ToolCatalogExt, ToolItem, ToolItemExt, ToolSource};
pub use handler::{ToolContext, ToolHandler};
pub use host::ToolHost;
pub use large::{ReplyLimit, ReplySize};
pub use presenter::{LineTemplate, Presenter, ShownCall, WireShownCall};
pub use provided::ProviderTool;
pub use reply::{ReplyPart, ToolReply, WireReply};
