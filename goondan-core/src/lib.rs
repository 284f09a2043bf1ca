//! The contract between extensions and the runtime of goondan: names, messages, events, tools, the pipeline. Programs
//! and extensions import the facade crate `goondan` instead of this one.
//!
//! # Layout
//! A module imports only modules above it in this list; the exception is `error` and `name`, which import each other.
//!
//! | module | holds |
//! | --- | --- |
//! | `name`, `error`, `secret`, `depth`, `size`, `bundle_file`, `log`, `panic`, `outcome` | names and ids, errors, redaction, the limit of nesting, the measure of limits of size, files that are not trusted, the logger |
//! | `conversation` | messages, message events, the conversation and its view |
//! | `question` | questions about tool calls, and the calls that wait |
//! | `event` | input events, bus events, runtime events |
//! | `decision` | decisions about calls that wait |
//! | `model_call` | the options of a model call, facts about models |
//! | `peers` | requests to other agents and to models |
//! | `tool` | tools, the catalog of a step, handlers |
//! | `crossing` | values that may be in another binary |
//! | `pipeline` | the kinds of middleware, contexts, `Next`, chains, results |
//! | `extension` | descriptors, the handle through which an extension registers and acts, the context of `#[init]` |
//! | `authoring` | the traits and functions that macro expansions call |
//! | `host` | the members of all these for the runtime alone |
//! | `linkage` | the members for `goondan-abi` |
#![cfg_attr(docsrs, feature(doc_cfg))]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod error;
mod name;
mod outcome;
mod panic;
pub mod secret;
mod shown;

mod presentation;

mod bundle_file;
mod depth;
mod log;
pub mod size;

mod conversation;
mod question;

mod event;

mod decision;
mod model_call;
mod peers;
mod tool;

mod crossing;
mod pipeline;

mod authoring;
mod extension;

#[doc(hidden)]
pub mod host;
#[doc(hidden)]
pub mod linkage;

/// A boxed future that is `Send`: the return type of async functions in traits that are used as `dyn`.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub use name::{
    AgentName, EventId, ExtensionName, InstanceKey, LiveQuestionId, MessageId, ModelName, ToolCallId, ToolName,
    TraceId, TurnId,
};

pub use secret::Secret;

pub use presentation::{Presentation, ToolOutcome};

pub use bundle_file::{BundleFile, BundleFileError};

pub use error::{Error, ErrorCode, Report, Result, StandardError, StdErr};

pub use conversation::{
    Applied, Content, Conversation, ConversationView, FilePart, Message, MessageData, MessageEvent, MessageRef,
    Messages, Part, ProviderData, ProviderPart, ReasoningPart, Role, Source, TextPart, Timestamp, ToolCallPart,
    ToolOutput, ToolResultPart,
};

pub use event::{
    AgentDelegate, AgentDelegationResult, AgentEvent, AgentReload, AgentReloadAnswer, AnswerFormat, Auth, AuthGranted,
    ConversationRewound, Cost, Deliveries, Event, EventArgs, EventHandler, EventPattern, EventScope, EventSource,
    ExtensionCleanup, KeptPrefix, LlmInputMessage, PrefixBreak, PrefixChange, Principal, ReloadEffect, ReplyTo,
    RepoAvailable, RequestPart, RuntimeEvent, Span, SpanId, StepRef, TokenUsage, ToolCallRef, ToolProgress, TurnInfo,
    WorktreeMounted,
};

pub use decision::{Decision, Verdict};

pub use question::{
    AnswerKind, AnswerOption, AskedQuestion, LiveWait, OnInput, Question, QuestionId, Unanswered, Wait,
};

pub use model_call::{
    CacheUse, ModelInfo, ModelOptions, Prices, ReasoningEffort, ReasoningOptions, ReasoningSummary, ResponseFormat,
    ToolChoice,
};

pub use shown::{ExtensionShown, ItemState, Shown, ShownItem};

pub use peers::{AgentRequest, AgentResponse, AgentsApi, AgentsHost, RequestTarget, RequestTicket};

pub use tool::{
    Effect, LineTemplate, Presenter, ProviderTool, ReplyPart, ShownCall, ToolCatalog, ToolContext, ToolHandler,
    ToolItem, ToolReply, ToolSource,
};

pub use outcome::{FailedTurn, ModelFinish, ToolCallStatus, ToolCallSummary};

pub use pipeline::{
    AnswerReviewer, AnswerVerdict, Failure, FinishReason, InputMasker, IntoVerdict, Kind, LayerInfo, Middleware,
    MiddlewareKind, MiddlewareOptions, ModelAnswer, Next, OnError, PieceKind, PieceTransformer, Review, Step,
    StepContext, StepDraft, StepResult, StepStatus, ToolCall, ToolCallContext, ToolCallDraft, ToolCallResult,
    ToolError, ToolRequest, Turn, TurnContext, TurnDraft, TurnResult,
};

pub use extension::{
    API_VERSION, AnyRegistration, BundleFiles, CleanupHandler, EventsApi, Extension, ExtensionApi, ExtensionDescriptor,
    ExtensionHost, ExtensionInfo, InitContext, LinkedExtension, MiddlewareDescriptor, PipelineApi, PresentExtension,
    RegisterFn, SchemaFn, SharedState, StateApi, Subscription, ToolDescriptor, ToolsApi, length_prefixed, linked,
    record_len,
};

pub use log::{LogHost, LogLevel, Logger};

pub use authoring::{absent, params};

#[doc(hidden)]
pub use inventory;
