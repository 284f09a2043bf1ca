//! Owns the input event: what starts a turn (F-EVT).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SpanId;
use crate::conversation::Timestamp;
use crate::name::{AgentName, EventId, TraceId};

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
    /// The span of the agent that sent it, within which the turn lies (F-TRACE).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<SpanId>,
    /// Values for extensions.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// On whose behalf it was sent; passed on unchanged to other agents (F-AGENTS).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Who waits for the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<ReplyTo>,
    /// The agents that called one another until here, the first caller first; this agent is not among them (F-AGENTS).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<AgentName>,
}

/// On whose behalf an event was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// The person or program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<Principal>,
    /// Whatever else the source says.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A person or program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Principal {
    /// What it is, such as `user`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who it is.
    pub id: String,
}

/// Who waits for the answer to an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplyTo {
    /// The agent that asked.
    pub target: AgentName,
    /// What joins the question and the answer.
    pub correlation_id: String,
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
            parent_span_id: None,
            metadata: Map::new(),
            auth: None,
            reply_to: None,
            callers: Vec::new(),
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
