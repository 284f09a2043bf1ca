//! How tool calls and failed turns ended, as errors, results and events report it.

use serde::{Deserialize, Serialize};

use crate::name::{ToolCallId, TurnId};

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallStatus {
    /// With an answer.
    Ok,
    /// With an error for the model to read.
    Error,
}

/// One tool call of a turn, in the turn's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallSummary {
    /// The call.
    pub id: ToolCallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// How it ended.
    pub status: ToolCallStatus,
}

/// How far a turn came that failed; part of the [`Error`] that failed it.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedTurn {
    /// The turn.
    pub id: TurnId,
    /// How many steps were started.
    pub steps: u32,
    /// The tool calls that were answered, in request order.
    pub tool_calls: Vec<ToolCallSummary>,
}
