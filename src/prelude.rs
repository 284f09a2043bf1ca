//! The imports of nearly every extension: `use goondan::prelude::*;`.
//!
//! The attributes of functions are here so that editors show their documentation; they have a meaning only inside
//! [`#[goondan::extension]`](macro@crate::extension).
//!
//! The derives `Deserialize`, `Serialize` and `JsonSchema` expand to code that names their crates, so an extension
//! with a config also depends on `serde` and `schemars`.

pub use goondan_core::{
    Error, Event, ExtensionApi, InitContext, Message, MessageEvent, Next, Result, Role, Step, StepContext, StepResult,
    ToolCall, ToolCallContext, ToolCallResult, ToolContext, ToolReply, Turn, TurnContext, TurnResult,
};
pub use goondan_macros::{cleanup, init, middleware, on, tool};
pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
