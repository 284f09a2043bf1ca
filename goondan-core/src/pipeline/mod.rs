//! The pipeline: three kinds of middleware, and for each kind a chain of layers around its core.
//!
//! A [`Chain`] runs its layers with a context of its kind. Each layer gets the rest of the chain as [`Next`], and a
//! [`Frame`] in the context checks that every layer runs it once. The innermost `next` runs the core, which the
//! [`host`] of the context implements.

mod chain;
mod context;
mod draft;
mod frame;
mod layer;
mod mask;
mod middleware;
mod next;
mod on_error;
mod order;
mod result;
mod review;
mod skip;
mod transform;

pub use chain::{Chain, Layer};
pub use context::directive;
pub(crate) use context::host;
pub use context::{StepContext, ToolCallContext, TurnContext};
pub use draft::{StepDraft, ToolCallDraft, TurnDraft};
pub(crate) use frame::Frame;
pub use layer::{LayerInfo, MiddlewareKind, MiddlewareOptions};
pub use mask::{InputMasker, mask_event};
pub use middleware::{AnyMiddleware, Kind, Middleware, Step, ToolCall, Turn};
pub use next::{Failure, Next};
pub use on_error::OnError;
pub use order::in_order;
pub use result::{
    FinishReason, ModelCall, Repair, StepResult, StepResultExt, StepStatus, ToolCallResult, ToolCallResultExt,
    ToolError, ToolRequest, TurnResult, TurnResultExt, VALUE,
};
pub use review::{AnswerReviewer, AnswerVerdict, IntoVerdict, ModelAnswer, Review, Reviewer};
pub use skip::LayerTimeout;
pub use transform::{PieceKind, PieceTransformer, Transformer};
