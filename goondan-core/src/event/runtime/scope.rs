//! Owns when and where something happened: the scope that all runtime events have, and the spans in it (F-TRACE).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::conversation::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::event::TurnInfo;
use crate::name::{AgentName, InstanceKey, TraceId, TurnId};

/// When and where a runtime event happened: what all of them have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventScope {
    /// The agent.
    pub agent_name: AgentName,
    /// Its instance.
    pub instance_key: InstanceKey,
    /// When it happened.
    pub timestamp: Timestamp,
    /// The turn.
    pub turn_id: TurnId,
    /// What joins everything that one input caused.
    pub trace_id: TraceId,
    /// The turn, step or tool call as a span of that trace.
    #[serde(flatten)]
    pub span: Span,
}

impl EventScope {
    /// Something that happens now, in `span` of the running turn.
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

/// A turn, step or tool call within a trace (F-TRACE).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The span.
    #[serde(rename = "spanId")]
    pub id: SpanId,
    /// The span within which it lies: that of the step for a tool call, that of the turn for a step, and for a turn that of
    /// the tool call with which another agent asked for it.
    #[serde(rename = "parentSpanId", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SpanId>,
}

impl Span {
    /// A new span of a turn, within the tool call of the agent that asked for it, if one did.
    pub fn of_turn(caller: Option<SpanId>) -> Self {
        Self { id: SpanId::random(), parent: caller }
    }

    /// A new span within this one.
    #[must_use]
    pub fn child(self) -> Self {
        Self { id: SpanId::random(), parent: Some(self.id) }
    }
}

/// The id of a span: 16 hexadecimal digits (F-TRACE).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

impl SpanId {
    /// A new id. It is never zero, which trace formats take for no span.
    pub fn random() -> Self {
        Self(fastrand::u64(1..))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for SpanId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // The parser of numbers also takes a sign and other lengths.
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = digits.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        number.map(Self).ok_or_else(|| {
            Error::new(ErrorCode::INPUT, format!("`{text}` is not the id of a span"))
                .suggest("use 16 hexadecimal digits")
        })
    }
}

impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SpanId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
