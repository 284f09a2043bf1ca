//! The results of turns, steps and tool calls.
//!
//! A result is plain data. In a library its fields are read from the host on first use: see [`crate::crossing`].

mod step;
mod tool_call;
mod turn;

#[cfg(feature = "runtime")]
pub(crate) use step::ModelCall;
pub use step::{StepResult, StepStatus, ToolRequest};
pub use tool_call::{ToolCallResult, ToolError};
pub use turn::{FinishReason, TurnResult};
