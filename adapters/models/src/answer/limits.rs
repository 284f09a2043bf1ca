//! Limits of the size of an answer, and its size while it arrives.

use goondan_core::size::count_values;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Answer, Kind};
use crate::http::Failure;

/// Limits of the size of a whole answer. A larger one is `E_MODEL_ANSWER`, and is not requested again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
// SIZE-01
pub struct AnswerLimits {
    /// The most bytes that may arrive: events with their names, and comments that keep the connection open. The memory
    /// of the answer has the same limit.
    #[schemars(range(min = 1))]
    pub max_bytes: usize,
    /// The most parts of an answer: texts, thoughts, files, tool calls, blocks.
    #[schemars(range(min = 1))]
    pub max_parts: usize,
    /// The most tool calls among them.
    #[schemars(range(min = 1))]
    pub max_calls: usize,
}

impl Default for AnswerLimits {
    /// An event for each of 128,000 tokens takes up to 50 MB.
    fn default() -> Self {
        Self { max_bytes: 64 << 20, max_parts: 1_000, max_calls: 128 }
    }
}

/// An answer is measured whenever so many bytes more have arrived, and the values of an event with more bytes are
/// counted before it is read.
const STEP: usize = 64 << 10;

/// The memory of a JSON value beside its text, roughly: a list that grows has up to twice its length.
const VALUE: usize = 2 * size_of::<Value>();

/// Compares an answer with its limits while it arrives.
#[derive(Debug)]
pub(crate) struct Measure {
    limits: AnswerLimits,
    /// The number of bytes that had arrived when the answer was measured.
    measured: usize,
}

impl Measure {
    pub(crate) fn new(limits: AnswerLimits) -> Self {
        Self { limits, measured: 0 }
    }

    /// Checks the data of an event before it is read.
    ///
    /// # Errors
    /// When its values would take more than the answer may.
    pub(crate) fn check_event(&self, data: &str) -> Result<(), Failure> {
        let fits = data.len() <= STEP || data.len() + count_values(data) * VALUE <= self.limits.max_bytes;
        if fits { Ok(()) } else { Err(Failure::too_large("bytes", "maxBytes", self.limits.max_bytes)) }
    }

    /// Checks the answer after an event, when `received` bytes have arrived.
    ///
    /// # Errors
    /// When it exceeds a limit.
    pub(crate) fn check(&mut self, answer: &Answer<'_>, received: usize) -> Result<(), Failure> {
        let AnswerLimits { max_bytes, max_parts, max_calls } = self.limits;
        if answer.parts.len() > max_parts {
            return Err(Failure::too_large("parts", "maxParts", max_parts));
        }
        if answer.calls > max_calls {
            return Err(Failure::too_large("tool calls", "maxCalls", max_calls));
        }
        if received - self.measured >= STEP {
            self.measured = received;
            if answer.size() > max_bytes {
                return Err(Failure::too_large("bytes", "maxBytes", max_bytes));
            }
        }
        Ok(())
    }
}

impl Answer<'_> {
    /// Returns roughly the memory of the parts.
    fn size(&self) -> usize {
        let content = |kind: &Kind| match kind {
            Kind::Text(text) | Kind::Reasoning(text) => text.len(),
            Kind::Call { name, arguments, .. } => name.len() + arguments.len(),
            Kind::File { url, .. } => url.len(),
            Kind::Block | Kind::LateCall => 0,
        };
        let parts: usize = self.parts.iter().map(|part| content(&part.kind) + size_of_members(&part.rest)).sum();
        let unopened = self.unopened.as_ref().map_or(0, |(_, rest)| size_of_members(rest));
        parts + unopened + size_of_members(&self.notes)
    }
}

fn size_of_members(members: &Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| name.len() + size_of_json(value)).sum()
}

/// It recurses no deeper than serde_json, which read the value.
fn size_of_json(value: &Value) -> usize {
    VALUE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size_of_json).sum(),
            Value::Object(members) => size_of_members(members),
        }
}
