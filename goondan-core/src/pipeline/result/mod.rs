//! The results of turns, steps and tool calls.
//!
//! A result is plain data. In a library its fields stay with the host until they are read: see [`crate::crossing`].

mod step;
mod tool_call;
mod turn;

pub use step::{StepResult, StepStatus, ToolRequest};
pub use tool_call::{ToolCallResult, ToolError};
pub use turn::{FinishReason, TurnResult};
