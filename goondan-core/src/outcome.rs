//! The outcomes of model calls, tool calls and failed turns, which errors, results and events report.

use serde::{Deserialize, Serialize};

use crate::name::{ToolCallId, TurnId};

/// The status of a finished tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolCallStatus {
    /// The tool returned a value.
    Ok,
    /// The result is an error, which the model reads.
    Error,
    /// A status that this version does not know.
    #[serde(other)]
    Other,
}

/// One tool call of a turn, listed in the result of the turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCallSummary {
    /// The id of the call.
    pub id: ToolCallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The kind of the result: a value or an error.
    pub status: ToolCallStatus,
}

impl ToolCallSummary {
    #[doc(hidden)]
    pub fn new(id: ToolCallId, name: String, status: ToolCallStatus) -> Self {
        Self { id, name, status }
    }
}

/// The turn that an error ended, and how far it came; part of that [`Error`](crate::Error).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FailedTurn {
    /// The id of the turn.
    pub id: TurnId,
    /// The number of steps that were started.
    pub steps: u32,
    /// The tool calls that have a result, in the order in which the model requested them.
    pub tool_calls: Vec<ToolCallSummary>,
}

impl FailedTurn {
    #[doc(hidden)]
    pub fn new(id: TurnId, steps: u32, tool_calls: Vec<ToolCallSummary>) -> Self {
        Self { id, steps, tool_calls }
    }
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ModelFinish {
    /// The response is complete.
    Stop,
    /// The model requests tool calls.
    ToolCalls,
    /// The provider interrupted a long answer, and continues it when it is asked again.
    Pause,
    /// A limit of tokens was reached.
    Length,
    /// The conversation does not fit into the model's context window.
    ContextFull,
    /// The provider withheld part of the response.
    ContentFilter,
    /// The model refused to answer.
    Refusal,
    /// The provider ended a whole answer without a reason.
    Unknown,
    /// Any other reason.
    #[serde(other)]
    Other,
}
