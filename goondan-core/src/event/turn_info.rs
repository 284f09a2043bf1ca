//! The running turn: its ids, and the event that started it.

use super::AgentEvent;
use crate::name::{AgentName, InstanceKey, TraceId, TurnId};

/// The running turn: the values that do not change while it runs.
#[derive(Clone, Debug)]
pub struct TurnInfo {
    /// The name of the agent that runs the turn.
    pub agent: AgentName,
    /// The key of its instance.
    pub instance: InstanceKey,
    /// The id of the turn.
    pub turn: TurnId,
    /// The id of the trace: it is shared by everything that one input event causes.
    pub trace: TraceId,
    /// The event that started the turn.
    pub input: AgentEvent,
}
