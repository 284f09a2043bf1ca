//! The scope of runtime events: when and where something happened, with its span in the trace.
// F-TRACE

use serde::{Deserialize, Serialize};

use crate::conversation::Timestamp;
use crate::event::{Span, TurnInfo};
use crate::name::{AgentName, InstanceKey, TraceId, TurnId};

/// When and where a runtime event happened. Every runtime event has one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EventScope {
    /// The name of the agent.
    pub agent_name: AgentName,
    /// The key of its instance.
    pub instance_key: InstanceKey,
    /// When it happened.
    pub timestamp: Timestamp,
    /// The id of the turn.
    pub turn_id: TurnId,
    /// The id of the trace: it is shared by everything that one input event causes.
    pub trace_id: TraceId,
    /// The span of the turn, step or tool call in that trace.
    #[serde(flatten)]
    pub span: Span,
}

impl EventScope {
    /// Returns the scope of an event that happens now, in `span` of the turn `turn`.
    pub fn now(turn: &TurnInfo, span: Span) -> Self {
        Self {
            agent_name: turn.agent.clone(),
            instance_key: turn.instance.clone(),
            timestamp: Timestamp::now(),
            turn_id: turn.turn.clone(),
            trace_id: turn.trace.clone(),
            span,
        }
    }
}
