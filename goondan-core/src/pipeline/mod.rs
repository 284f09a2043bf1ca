//! The pipeline: three kinds of middleware, and for each kind a chain of layers around its core.
//!
//! A [`Chain`] runs its layers with a context of its kind. Each layer gets the rest of the chain as [`Next`], and a
//! [`Frame`] in the context checks that every layer runs it once. The innermost `next` runs the core, which the
//! [`host`] of the context implements.

mod chain;
mod context;
mod failure;
mod frame;
mod middleware;
mod next;
mod on_error;
mod order;
mod result;
mod skip;

pub use chain::{Chain, Layer, LayerInfo};
pub(crate) use context::host;
pub use context::{StepContext, ToolCallContext, TurnContext};
pub use failure::{Failure, StepDraft, ToolCallDraft, TurnDraft};
pub(crate) use frame::Frame;
pub use middleware::{AnyMiddleware, Kind, Middleware, MiddlewareKind, MiddlewareOptions, Step, ToolCall, Turn};
pub use next::Next;
pub use on_error::OnError;
pub use order::in_order;
pub use result::{
    FinishReason, ModelCall, StepResult, StepResultExt, StepStatus, ToolCallResult, ToolCallResultExt, ToolError,
    ToolRequest, TurnResult, TurnResultExt,
};
pub use skip::LayerTimeout;
