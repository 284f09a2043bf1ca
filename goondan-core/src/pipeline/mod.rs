//! The pipeline: three kinds of middleware, and for each kind a chain of layers around its core.
//!
//! A [`Chain`] runs its layers with a context of its kind. Each layer gets the rest of the chain as [`Next`], and a
//! [`Frame`] in the context checks that every layer runs it once. The innermost `next` runs the core, which the
//! [`host`] of the context implements.

mod chain;
pub mod context;
mod failure;
mod frame;
mod middleware;
mod next;
mod on_error;
mod order;
mod result;
#[cfg(feature = "runtime")]
mod skip;

pub use chain::{Chain, Layer, LayerInfo};
pub use context::{StepContext, ToolCallContext, TurnContext, host};
pub use failure::{Failure, StepDraft, ToolCallDraft, TurnDraft};
pub use frame::Frame;
pub use middleware::{AnyMiddleware, Kind, Middleware, MiddlewareKind, Options, Step, ToolCall, Turn};
pub use next::Next;
pub use on_error::OnError;
pub use order::in_order;
#[cfg(feature = "runtime")]
pub(crate) use result::ModelCall;
pub use result::{FinishReason, StepResult, StepStatus, ToolCallResult, ToolError, ToolRequest, TurnResult};
