//! Owns the input event: what starts a turn (F-EVT).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conversation::Timestamp;
use crate::name::{EventId, TraceId};

/// What an agent is asked to handle; one event is one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEvent {
    /// The event.
    pub id: EventId,
    /// What kind of event it is, such as `message`.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// The text for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Where it came from.
    pub source: EventSource,
    /// What joins everything that one input causes; a turn makes one up when the event has none (F-TRACE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<TraceId>,
    /// Values for extensions.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Where an event came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventSource {
    /// `agent` or `connector`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Whatever else the source says.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl AgentEvent {
    /// An event with a text for the model, from the embedding program.
    pub fn input(text: impl Into<String>) -> Self {
        Self {
            id: EventId::random(),
            kind: "message".to_owned(),
            created_at: Timestamp::now(),
            input: Some(text.into()),
            source: EventSource { kind: "connector".to_owned(), name: "local".to_owned(), other: Map::new() },
            trace_id: None,
            metadata: Map::new(),
        }
    }
}

impl From<&str> for AgentEvent {
    fn from(text: &str) -> Self {
        Self::input(text)
    }
}

impl From<String> for AgentEvent {
    fn from(text: String) -> Self {
        Self::input(text)
    }
}
