//! Input events, bus events and runtime events.
//!
//! An [`AgentEvent`] starts a turn. An [`Event`] has a name and arguments and is emitted on the bus of an instance,
//! where extensions subscribe to it with [`#[on]`](macro@crate::on). A [`RuntimeEvent`] reports what the runtime
//! did; it is emitted on the bus too, and streamed and stored on request.
//!
//! ```
//! use goondan::Result;
//! use goondan::event::{Event, RuntimeEvent};
//!
//! fn count_steps(event: &Event) -> Result<u32> {
//!     match event.payload()? {
//!         RuntimeEvent::TurnCompleted { step_count, .. } => Ok(step_count),
//!         _ => Ok(0),
//!     }
//! }
//! ```

pub use goondan_core::{
    AgentDelegate, AgentDelegationResult, AgentEvent, AgentReload, AgentReloadAnswer, AnswerFormat, Auth, AuthGranted,
    ConversationRewound, Cost, Event, EventArgs, EventHandler, EventPattern, EventScope, EventSource, ExtensionCleanup,
    ExtensionShown, ItemState, KeptPrefix, LlmInputMessage, PrefixBreak, PrefixChange, Principal, ReloadEffect,
    ReplyTo, RepoAvailable, RequestPart, RuntimeEvent, Shown, ShownItem, Span, SpanId, StepRef, Subscription,
    TokenUsage, ToolCallRef, ToolProgress, WorktreeMounted,
};
