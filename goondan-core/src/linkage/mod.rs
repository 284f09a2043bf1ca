//! What `goondan-abi` needs beyond the facade: the traits behind contexts, results that cross, and JSON forms.
//!
//! Only that crate is meant to name this module.

mod wire;

/// What contexts and handles are backed by: the runtime, or in a library the tables of its host.
pub mod host {
    pub use crate::conversation::host::{ConversationHost, RemoteConversation, Snapshot};
    pub use crate::event::TurnInfo;
    pub use crate::pipeline::host::{MessageHost, RunHost, StepHost, ToolCallHost, TurnHost};
    pub use crate::tool::ToolHost;
}

pub use crate::conversation::RemoteMessage;
pub use crate::crossing::{CoreRun, Crossing, RemoteCore, RemoteHost, RemoteResult, Returned};
pub use crate::error::WireError;
pub use crate::pipeline::Layer;
pub use wire::{WireAgentRequest, WireAgentResponse, WireField, WireScope, WireToolItem};
