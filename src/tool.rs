//! Tools: what a step offers to the model, and the handlers that answer.
//!
//! [`#[tool]`](macro@crate::tool) turns a function into a tool. A tool that is known only at run time is a [`ToolItem`]
//! with a [`ToolHandler`], registered through [`ToolsApi`](crate::extension::ToolsApi).

pub use goondan_core::{
    Effect, LineTemplate, Presentation, Presenter, ProviderTool, ReplyPart, ShownCall, ToolCatalog, ToolContext,
    ToolHandler, ToolItem, ToolOutcome, ToolReply, ToolSource,
};
