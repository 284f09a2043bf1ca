//! Events: input events start turns, bus events are emitted on the event bus of an instance, and runtime events report
//! the work of the runtime.

mod answer;
mod bus_event;
mod input;
mod pattern;
mod runtime;
mod span;
mod standard;
mod turn_info;

pub use answer::AnswerFormat;
pub(crate) use answer::value_of;
pub use bus_event::{Event, EventArgs, EventHandler};
pub use input::{AgentEvent, AgentEventExt, Auth, EventSource, Principal, ReplyTo};
pub use pattern::{Deliveries, EventPattern};
pub use runtime::{
    Cost, EventScope, KeptPrefix, LlmInputMessage, PrefixBreak, PrefixChange, RequestPart, RuntimeEvent, StepRef,
    TokenUsage, ToolCallRef,
};
pub use span::{Span, SpanId};
pub use standard::{
    AgentDelegate, AgentDelegationResult, AgentReload, AgentReloadAnswer, AuthGranted, ConversationRewound,
    ExtensionCleanup, ReloadEffect, RepoAvailable, ToolProgress, WorktreeMounted,
};
pub use turn_info::TurnInfo;
