//! Owns the pipeline: three kinds of middleware, each kind an onion around its core.

mod chain;
pub mod context;
mod failure;
mod frame;
mod middleware;
mod next;
mod order;
mod result;

pub use chain::{Chain, Layer, LayerInfo};
pub use context::{MODEL_KEY, MODEL_OPTIONS_KEY, StepContext, ToolCallContext, TurnContext, host};
pub use failure::{Failure, StepDraft, ToolCallDraft, TurnDraft};
pub use frame::Frame;
pub use middleware::{AnyMiddleware, Kind, Middleware, MiddlewareKind, Options, Step, ToolCall, Turn};
pub use next::Next;
pub use order::in_order;
pub use result::{FinishReason, StepResult, StepStatus, ToolCallResult, ToolError, ToolRequest, TurnResult};
