//! The running turn: its ids and the event that started it.

use super::AgentEvent;
use crate::name::{AgentName, InstanceKey, TraceId, TurnId};

/// The running turn: what stays the same while it runs (CTX-14).
#[derive(Clone, Debug)]
pub struct TurnInfo {
    /// The agent that runs the turn.
    pub agent: AgentName,
    /// Its instance.
    pub instance: InstanceKey,
    /// The turn.
    pub turn: TurnId,
    /// What joins everything that one input caused.
    pub trace: TraceId,
    /// What started the turn (CTX-12).
    pub input: AgentEvent,
}
