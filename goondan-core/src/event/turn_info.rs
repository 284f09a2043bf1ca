//! The running turn: its ids, and the event that started it.

use super::AgentEvent;
use crate::name::{AgentName, InstanceKey, TraceId, TurnId};

/// The running turn: the values that do not change while it runs.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// The number of times that the turn was resumed after an interruption: 0 while it runs for the first time.
    // RESUME-01
    pub resumption: u32,
}

impl TurnInfo {
    /// A turn of `instance` that answers `input`. The trace comes from the input, or is new.
    // F-TRACE
    pub fn new(agent: AgentName, instance: InstanceKey, input: AgentEvent) -> Self {
        let trace = input.trace_id.clone().unwrap_or_else(TraceId::random);
        Self { agent, instance, turn: TurnId::random(), trace, input, resumption: 0 }
    }

    /// Returns the same for the turn `turn`, which was interrupted and goes on for the `resumption`th time.
    #[must_use]
    pub fn resumed(self, turn: TurnId, resumption: u32) -> Self {
        Self { turn, resumption, ..self }
    }
}
