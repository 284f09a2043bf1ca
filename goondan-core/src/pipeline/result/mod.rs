//! The results of turns, steps and tool calls.
//!
//! A result is plain data. In a library its fields are read from the host on first use: see [`crate::crossing`].

mod step;
mod tool_call;
mod turn;

pub use step::{ModelCall, Repair, StepResult, StepResultExt, StepStatus, ToolRequest};
pub use tool_call::{ToolCallResult, ToolCallResultExt, ToolError};
pub use turn::{FinishReason, TurnResult, TurnResultExt, VALUE};
