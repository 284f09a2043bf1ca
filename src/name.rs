//! Names and ids, each a type of its own.

pub use goondan_core::{
    AgentName, EventId, ExtensionName, InstanceKey, LiveQuestionId, MessageId, ModelName, ToolCallId, ToolName,
    TraceId, TurnId,
};
