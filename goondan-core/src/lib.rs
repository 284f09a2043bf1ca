//! The contract and the runtime of goondan. Programs and extensions import the facade crate `goondan` instead.
//!
//! # Layout
//! In the order in which data passes: `name`, `secret`, `error` · `conversation`, `event`: what is said · `tool` · `context`,
//! `pipeline`: what wraps it · `extension`: who wraps it · and with the feature `runtime`: `schema`, `model`, `store`,
//! `agent`: what runs it.

pub mod absent;
mod agents;
mod context;
mod conversation;
mod error;
mod event;
mod extension;
#[doc(hidden)]
pub mod linkage;
mod name;
pub mod pipeline;
pub mod secret;
mod tool;

#[cfg(feature = "runtime")]
mod agent;
#[cfg(feature = "runtime")]
mod model;
#[cfg(feature = "runtime")]
pub mod schema;
#[cfg(feature = "runtime")]
mod state;
#[cfg(feature = "runtime")]
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

/// A future that can be sent and stored: what dynamic dispatch of async functions gives.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub use name::{AgentName, EventId, ExtensionName, InstanceKey, MessageId, ToolCallId, ToolName, TraceId, TurnId};

pub use secret::Secret;

pub use error::{Error, ErrorCode, Result, StdErr};

pub use conversation::{
    Applied, Content, Conversation, ConversationView, Message, MessageData, MessageEvent, MessageRef, Messages, Part,
    Role, Source, TextPart, Timestamp, ToolCallPart, ToolOutput, ToolResultPart,
};

pub use event::{
    AgentDelegate, AgentDelegationResult, AgentEvent, Auth, AuthGranted, ContentSource, Event, EventArgs, EventHandler,
    EventPattern, EventScope, EventSource, ExtensionCleanup, LlmInputMessage, Principal, ReplyTo, RepoAvailable,
    RuntimeEvent, Span, SpanId, StepRef, TokenUsage, ToolCallRef, WorktreeMounted,
};

pub use agents::{AgentRequest, AgentResponse, AgentsApi, AgentsHost, Ticket};

pub use tool::{Effect, ToolCatalog, ToolContext, ToolHandler, ToolItem, ToolSource};

pub use context::host::{self, TurnInfo};
pub use context::{MODEL_KEY, MODEL_OPTIONS_KEY, StepContext, ToolCallContext, TurnContext};

pub use pipeline::{
    FailedTurn, Failure, FinishReason, Kind, LayerInfo, Middleware, MiddlewareKind, Next, Options, Step, StepDraft,
    StepResult, StepStatus, ToolCall, ToolCallDraft, ToolCallResult, ToolCallStatus, ToolCallSummary, ToolError,
    ToolRequest, Turn, TurnDraft, TurnResult,
};

pub use extension::{
    API_VERSION, AnyRegistration, CleanupHandler, Deliveries, EventsApi, Extension, ExtensionApi, ExtensionDescriptor,
    ExtensionHost, LinkedExtension, LogHost, LogLevel, Logger, MiddlewareDescriptor, PipelineApi, RegisterFn, SchemaFn,
    StateApi, Subscription, ToolDescriptor, ToolsApi, length_prefixed, linked, params, record_len,
};

#[cfg(feature = "runtime")]
pub use agent::{Agent, AgentBuilder, Change, ExtensionChange, Instance, Policy, Reloaded, TurnStream, TurnUpdate};
#[cfg(feature = "runtime")]
pub use agents::{AgentCall, LocalRouter, Router};
#[cfg(feature = "runtime")]
pub use model::{Model, ModelFinish, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
#[cfg(feature = "runtime")]
pub use store::{FileStore, InstanceId, MemoryStore, Store};

#[doc(hidden)]
pub use inventory;
