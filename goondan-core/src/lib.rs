//! The contract and the runtime of goondan. Programs and extensions import the facade crate `goondan` instead of this
//! one.
//!
//! # Layout
//! A module imports only modules above it in this list; the exception is `error` and `name`, which import each other.
//!
//! | module | holds |
//! | --- | --- |
//! | `name`, `error`, `secret`, `depth`, `log`, `panic`, `outcome` | names and ids, errors, redaction, the limit of nesting, the logger |
//! | `nearest` | suggestions for misspelt names |
//! | `schema` | JSON Schema validation |
//! | `conversation` | messages, message events, the conversation and its view |
//! | `event` | input events, bus events and the bus, runtime events |
//! | `model_call` | the options of a model call, what is known of a model |
//! | `peers` | requests to other agents and to models |
//! | `tool` | tools, the catalog of a step, handlers |
//! | `crossing` | values that may be in another binary |
//! | `pipeline` | the kinds of middleware, contexts, `Next`, chains, results |
//! | `extension` | descriptors, the handle through which an extension registers and acts, what `#[init]` can ask |
//! | `authoring` | the traits and functions that macro expansions call |
//! | `model`, `state`, `store` | the ports to models and to persistence, with built-in implementations |
//! | `agent` | the builder, instances, turns |
//! | `testing` | the harness for tests of extensions |
//! | `linkage` | re-exports for `goondan-abi` |

mod error;
mod name;
mod outcome;
mod panic;
pub mod secret;

mod depth;
mod log;

#[cfg(feature = "runtime")]
#[doc(hidden)]
pub mod nearest;
#[cfg(feature = "runtime")]
pub mod schema;

mod conversation;
mod event;
mod model_call;
mod peers;
mod tool;

mod crossing;
pub mod pipeline;

mod authoring;
mod extension;

#[cfg(feature = "runtime")]
mod model;
#[cfg(feature = "runtime")]
mod state;
#[cfg(feature = "runtime")]
pub mod store;

#[cfg(feature = "runtime")]
mod agent;
#[cfg(feature = "testing")]
pub mod testing;

#[doc(hidden)]
pub mod linkage;

/// A boxed future that is `Send`: the return type of async functions in traits that are used as `dyn`.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub use name::{
    AgentName, EventId, ExtensionName, InstanceKey, MessageId, ModelName, ToolCallId, ToolName, TraceId, TurnId,
};

pub use secret::Secret;

pub use error::{Error, ErrorCode, Report, Result, StandardError, StdErr};

pub use conversation::{
    Applied, Content, Conversation, ConversationView, FilePart, Message, MessageData, MessageEvent, MessageRef,
    Messages, Part, ProviderData, ProviderPart, ReasoningPart, Role, Source, TextPart, Timestamp, ToolCallPart,
    ToolOutput, ToolResultPart,
};

pub use event::{
    AgentDelegate, AgentDelegationResult, AgentEvent, AgentReload, AgentReloadAnswer, Auth, AuthGranted, ContentSource,
    Cost, Deliveries, Event, EventArgs, EventHandler, EventPattern, EventScope, EventSource, ExtensionCleanup,
    FilesChanged, LlmInputMessage, Principal, ReloadEffect, ReplyTo, RepoAvailable, RuntimeEvent, Span, SpanId,
    StepRef, TokenUsage, ToolCallRef, ToolProgress, TurnInfo, WorktreeMounted,
};

pub use model_call::{
    CacheUse, ModelInfo, ModelOptions, Prices, ReasoningEffort, ReasoningOptions, ReasoningSummary, ResponseFormat,
    ToolChoice,
};

pub use peers::{AgentRequest, AgentResponse, AgentsApi, AgentsHost, RequestTarget, Ticket};

pub use tool::{Effect, ReplyPart, ToolCatalog, ToolContext, ToolHandler, ToolItem, ToolReply, ToolSource};

pub use outcome::{FailedTurn, ModelFinish, ToolCallStatus, ToolCallSummary};

pub use pipeline::{
    Failure, FinishReason, Kind, LayerInfo, Middleware, MiddlewareKind, Next, OnError, Options, Step, StepContext,
    StepDraft, StepResult, StepStatus, ToolCall, ToolCallContext, ToolCallDraft, ToolCallResult, ToolError,
    ToolRequest, Turn, TurnContext, TurnDraft, TurnResult,
};

pub use extension::{
    API_VERSION, AnyRegistration, CleanupHandler, EventsApi, Extension, ExtensionApi, ExtensionDescriptor,
    ExtensionHost, InitContext, LinkedExtension, MiddlewareDescriptor, PipelineApi, PresentExtension, RegisterFn,
    SchemaFn, StateApi, Subscription, Surroundings, ToolDescriptor, ToolsApi, length_prefixed, linked, record_len,
};

pub use log::{LogHost, LogLevel, Logger};

pub use authoring::{absent, params};

#[cfg(feature = "runtime")]
#[doc(hidden)]
pub use extension::skipped_guard;

#[cfg(feature = "runtime")]
pub use agent::LocalRouter;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub use agent::join;
#[cfg(feature = "runtime")]
pub use agent::{
    Agent, AgentBuilder, BackgroundTurn, BackgroundTurns, Change, ExtensionChange, Instance, InstanceEvents, Policy,
    ReloadRequest, ReloadRequests, Reloaded, TurnNotice, TurnStream, TurnUpdate,
};
#[cfg(feature = "runtime")]
pub use event::EventStream;
#[cfg(feature = "runtime")]
pub use model::{
    BundlePath, CassetteMode, Deltas, Finding, FindingPlace, Findings, Model, ModelDelta, ModelProvider, ModelRequest,
    ModelResponse, ProviderContext, ProviderDescriptor, RecordedModel, ScriptItem, ScriptedModel, find_provider,
    linked_providers,
};
#[cfg(feature = "runtime")]
pub use peers::{AgentCall, Router};
#[cfg(feature = "runtime")]
pub use store::{FileStore, InstanceId, MemoryStore, Store};

#[doc(hidden)]
pub use inventory;
pub use linkage::host;
