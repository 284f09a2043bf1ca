//! The contract and the runtime of goondan. Programs and extensions import the facade crate `goondan` instead.
//!
//! # Layout
//! In the order in which data passes: `name`, `error` · `conversation`, `event`: what is said · `tool` · `context`,
//! `pipeline`: what wraps it · `extension`: who wraps it · and with the feature `runtime`: `schema`, `model`, `store`,
//! `agent`: what runs it.

mod context;
mod conversation;
mod error;
mod event;
mod extension;
mod name;
pub mod pipeline;
mod tool;

#[cfg(feature = "runtime")]
mod agent;
#[cfg(feature = "runtime")]
mod model;
#[cfg(feature = "runtime")]
pub mod schema;
#[cfg(feature = "runtime")]
pub mod store;

/// A future that can be sent and stored: what dynamic dispatch of async functions gives.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub use name::{AgentName, EventId, ExtensionName, InstanceKey, MessageId, ToolCallId, ToolName, TraceId, TurnId};

pub use error::{Error, ErrorCode, Result, StdErr};

pub use conversation::{
    Applied, Content, Conversation, ConversationView, Message, MessageData, MessageEvent, MessageRef, Messages, Part,
    Role, Source, TextPart, Timestamp, ToolCallPart, ToolOutput, ToolResultPart,
};

pub use event::{AgentEvent, EventSource};

pub use tool::{ToolCatalog, ToolContext, ToolHandler, ToolItem};

pub use context::{StepContext, ToolCallContext, TurnContext, host};

pub use pipeline::{
    FailedTurn, Failure, FinishReason, Kind, Middleware, MiddlewareKind, Next, Options, Step, StepDraft, StepResult,
    StepStatus, ToolCall, ToolCallDraft, ToolCallResult, ToolCallStatus, ToolCallSummary, ToolError, ToolRequest, Turn,
    TurnDraft, TurnResult,
};

pub use extension::{
    API_VERSION, AnyRegistration, Extension, ExtensionApi, ExtensionDescriptor, ExtensionHost, LinkedExtension,
    MiddlewareDescriptor, PipelineApi, ToolsApi, length_prefixed, linked, params, record_len,
};

#[cfg(feature = "runtime")]
pub use agent::{Agent, AgentBuilder, Instance, Policy};
#[cfg(feature = "runtime")]
pub use model::{Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
#[cfg(feature = "runtime")]
pub use store::{FileStore, InstanceId, MemoryStore, Store};
#[cfg(feature = "runtime")]
pub use tool::ToolRegistry;

#[doc(hidden)]
pub use inventory;
