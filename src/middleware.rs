//! The three kinds of middleware: their contexts, `next`, and their results.
//!
//! [`#[middleware]`](macro@crate::middleware) turns a function into a layer around turns, steps or tool calls:
//!
//! | kind | wraps | context | result |
//! | --- | --- | --- | --- |
//! | [`Turn`] | the handling of one input event | [`TurnContext`] | [`TurnResult`] |
//! | [`Step`] | one model call and its tool calls | [`StepContext`] | [`StepResult`] |
//! | [`ToolCall`] | one tool call | [`ToolCallContext`] | [`ToolCallResult`] |
//!
//! A layer runs [`Next`] exactly once: `next.run(ctx).await` consumes it and returns the result of the inner layers.
//! [`Next::catch`] also returns their failure, from which [`Failure::recover`] makes a result.

pub use goondan_core::{
    AnswerReviewer, AnswerVerdict, CacheUse, FailedTurn, Failure, FinishReason, InputMasker, IntoVerdict, Kind,
    LayerInfo, Middleware, MiddlewareKind, MiddlewareOptions, ModelAnswer, ModelFinish, ModelInfo, ModelOptions, Next,
    OnError, PieceKind, PieceTransformer, Prices, ReasoningEffort, ReasoningOptions, ReasoningSummary, ResponseFormat,
    Review, Step, StepContext, StepDraft, StepResult, StepStatus, ToolCall, ToolCallContext, ToolCallDraft,
    ToolCallResult, ToolCallStatus, ToolCallSummary, ToolChoice, ToolError, ToolRequest, Turn, TurnContext, TurnDraft,
    TurnInfo, TurnResult,
};
