//! Spans: a turn, step or tool call as a node of a trace.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, ErrorCode, Result};

/// A turn, step or tool call in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Span {
    /// The id of the span.
    #[serde(rename = "spanId")]
    pub id: SpanId,
    /// The parent span: the step of a tool call, the turn of a step, and for a turn that another agent requested, the
    /// span in which it sent the request.
    #[serde(rename = "parentSpanId", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SpanId>,
}

impl Span {
    /// Returns a new span of a turn or a request; `caller` is the span that requested it, if one did.
    #[inline]
    pub fn of_turn(caller: Option<SpanId>) -> Self {
        Self { id: SpanId::random(), parent: caller }
    }

    /// Returns a new span with this one as its parent.
    #[must_use]
    #[inline]
    pub fn child(self) -> Self {
        Self { id: SpanId::random(), parent: Some(self.id) }
    }
}

/// The id of a span: 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

impl SpanId {
    /// Returns a new random id. It is never zero, which means "no span" in trace formats.
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
        // `from_str_radix` also accepts a sign and other lengths.
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
