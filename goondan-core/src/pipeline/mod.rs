//! Owns the pipeline: three kinds of middleware, each kind an onion around its core.

mod chain;
mod failure;
mod frame;
mod middleware;
mod next;
mod order;
mod panic;
mod result;

pub use chain::{Chain, Layer, LayerInfo};
pub use failure::{Failure, StepDraft, ToolCallDraft, TurnDraft};
pub use frame::Frame;
pub use middleware::{AnyMiddleware, Kind, Middleware, MiddlewareKind, Options, Step, ToolCall, Turn};
pub use next::Next;
pub use order::in_order;
#[cfg(feature = "runtime")]
pub(crate) use panic::catch_panics;
pub(crate) use panic::panicked;
pub use result::{
    FailedTurn, FinishReason, StepResult, StepStatus, ToolCallResult, ToolCallStatus, ToolCallSummary, ToolError,
    ToolRequest, TurnResult,
};
