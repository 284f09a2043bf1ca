//! The native extension framework and runtime for LLM agents.
//!
//! An extension is an `impl` block, or a module, under [`#[goondan::extension]`](macro@extension). Its functions are layers
//! around the turns, steps and tool calls of an agent, tools, and listeners to events. They are given what they ask for by
//! type:
//!
//! ```
//! use goondan::prelude::*;
//!
//! #[derive(Debug, Deserialize, JsonSchema)]
//! #[serde(rename_all = "camelCase", deny_unknown_fields)]
//! pub struct Config {
//!     max_messages: usize,
//! }
//!
//! pub struct MessageWindow {
//!     max: usize,
//! }
//!
//! /// Keeps the newest messages of a conversation.
//! #[goondan::extension(name = "message-window")]
//! impl MessageWindow {
//!     #[init]
//!     fn new(config: Config) -> Self {
//!         Self { max: config.max_messages }
//!     }
//!
//!     #[middleware(turn)]
//!     async fn trim(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
//!         let excess = ctx.conversation().len().saturating_sub(self.max);
//!         let oldest: Vec<_> = ctx.conversation().iter().take(excess).map(|message| message.id().to_owned()).collect();
//!         for id in oldest {
//!             ctx.emit(MessageEvent::remove(id));
//!         }
//!         next.run(ctx).await
//!     }
//!
//!     /// Tells how many messages the window keeps.
//!     #[tool(effect = read)]
//!     async fn status(&self) -> Result<usize> {
//!         Ok(self.max)
//!     }
//! }
//! ```
//!
//! # Layout
//! Re-exports only, in the order in which data passes. The crate `goondan-core` holds the contract and the runtime,
//! `goondan-macros` the attributes. Extensions build without the feature `runtime`.

// The examples of the README compile and run.
#[cfg(all(doctest, feature = "runtime"))]
#[doc = include_str!("../README.md")]
struct Readme;

pub use goondan_core::BoxFuture;

pub use serde_json::{Map, Value, json};

pub use goondan_core::{
    AgentName, EventId, ExtensionName, InstanceKey, MessageId, ToolCallId, ToolName, TraceId, TurnId,
};

pub use goondan_core::{Secret, secret};

pub use goondan_core::{Error, ErrorCode, Result, StdErr};

pub use goondan_core::{
    Applied, Content, Conversation, ConversationView, Message, MessageData, MessageEvent, MessageRef, Messages, Part,
    Role, Source, TextPart, Timestamp, ToolCallPart, ToolOutput, ToolResultPart,
};

pub use goondan_core::{
    AgentDelegate, AgentDelegationResult, AgentEvent, Auth, AuthGranted, ContentSource, Event, EventArgs, EventHandler,
    EventPattern, EventScope, EventSource, ExtensionCleanup, LlmInputMessage, Principal, ReplyTo, RepoAvailable,
    RuntimeEvent, Span, SpanId, StepRef, TokenUsage, ToolCallRef, WorktreeMounted,
};

pub use goondan_core::{AgentRequest, AgentResponse, AgentsApi, Ticket};

pub use goondan_core::{Effect, ToolCatalog, ToolContext, ToolHandler, ToolItem, ToolSource};

pub use goondan_core::{MODEL_KEY, MODEL_OPTIONS_KEY, StepContext, ToolCallContext, TurnContext, TurnInfo};

pub use goondan_core::{
    FailedTurn, Failure, FinishReason, Kind, LayerInfo, Middleware, MiddlewareKind, Next, Options, Step, StepDraft,
    StepResult, StepStatus, ToolCall, ToolCallDraft, ToolCallResult, ToolCallStatus, ToolCallSummary, ToolError,
    ToolRequest, Turn, TurnDraft, TurnResult,
};

pub use goondan_core::{
    API_VERSION, AnyRegistration, CleanupHandler, Deliveries, EventsApi, Extension, ExtensionApi, ExtensionDescriptor,
    ExtensionHost, LinkedExtension, LogHost, LogLevel, Logger, MiddlewareDescriptor, PipelineApi, RegisterFn, SchemaFn,
    StateApi, Subscription, ToolDescriptor, ToolsApi, absent, linked, params,
};

pub use goondan_macros::{cleanup, extension, init, middleware, on, tool};

#[cfg(feature = "runtime")]
pub use goondan_core::{
    Agent, AgentBuilder, AgentCall, Change, ExtensionChange, FileStore, Instance, InstanceId, LocalRouter, MemoryStore,
    Model, ModelFinish, ModelRequest, ModelResponse, Policy, Reloaded, Router, ScriptItem, ScriptedModel, Store,
    TurnStream, TurnUpdate, schema, store,
};

#[cfg(feature = "plugins")]
pub use goondan_abi::{
    ExtensionRecord, ExtensionSchemas, Inspected, Library, Loaded, MiddlewareRecord, ToolRecord, ToolSchema,
};
// Without a name that leads to it, the crate would be left out, and with it the symbol that libraries export.
#[cfg(not(feature = "plugins"))]
use goondan_abi as _;

#[cfg(feature = "testing")]
pub use goondan_core::testing;

#[cfg(feature = "bundle")]
pub use goondan_bundle::{self as bundle, Bundle};

/// What nearly every extension names: `use goondan::prelude::*;`.
///
/// The attributes of functions are here so that their documentation is at hand; they mean something inside of
/// [`#[goondan::extension]`](macro@crate::extension) alone.
///
/// The derives `Deserialize`, `Serialize` and `JsonSchema` write code that names their crates, so an extension with a
/// config also depends on `serde` and `schemars`.
pub mod prelude {
    pub use goondan_core::{
        Error, Event, ExtensionApi, Message, MessageEvent, Next, Result, Role, Step, StepContext, StepResult, ToolCall,
        ToolCallContext, ToolCallResult, ToolContext, Turn, TurnContext, TurnResult,
    };
    pub use goondan_macros::{cleanup, init, middleware, on, tool};
    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};
}

/// What expansions name, the standard library included: see `goondan-macros/src/paths.rs`. Not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use core::clone::Clone;
    pub use core::option::Option;
    pub use core::primitive::{str, u8};
    pub use core::result::Result::Ok;
    pub use core::time::Duration;
    pub use core::{env, unreachable};
    pub use std::boxed::Box;
    pub use std::sync::Arc;

    pub use goondan_core::{
        API_VERSION, AnyRegistration, BoxFuture, CleanupHandler, Effect, Event, EventHandler, Extension, ExtensionApi,
        ExtensionDescriptor, LinkedExtension, Middleware, MiddlewareDescriptor, MiddlewareKind, Next, Options, Result,
        Step, StepContext, StepResult, ToolCall, ToolCallContext, ToolCallResult, ToolContext, ToolDescriptor,
        ToolHandler, Turn, TurnContext, TurnResult, inventory, length_prefixed, params, record_len,
    };
    pub use serde_json::Value;
}
