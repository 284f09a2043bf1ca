//! The result of a turn.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::{Message, Role, Source};
use crate::crossing::{MaybeRemote, result_fields};
use crate::error::{Error, WireError};
use crate::name::TurnId;
use crate::outcome::ToolCallSummary;
use crate::pipeline::{TurnContext, TurnDraft};

/// What a turn came to. [`Next::run`](crate::Next::run) returns it; a middleware may change it, and can neither make nor
/// copy one.
// F-TURN, NEXT-01.
#[derive(Debug)]
pub struct TurnResult {
    data: MaybeRemote<TurnData>,
}

result_fields! {
    /// The fields of a [`TurnResult`].
    pub struct TurnData for TurnResult {
        turn: TurnId = "turnId",
        finish_reason: FinishReason = "finishReason",
        response: Option<Arc<Message>> = "response",
        error: Option<WireError> = "error",
        steps: u32 = "steps",
        tool_calls: Vec<ToolCallSummary> = "toolCalls",
    }
    local {}
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model answered without calling a tool.
    TextResponse,
    /// The limit of steps was reached.
    MaxSteps,
    /// The turn failed; a middleware answered in its place.
    Error,
}

impl TurnResult {
    #[cfg(feature = "runtime")]
    pub(crate) fn new(turn: TurnId, finish_reason: FinishReason, response: Option<Arc<Message>>) -> Self {
        Self {
            data: MaybeRemote::local(TurnData {
                turn: turn.into(),
                finish_reason: finish_reason.into(),
                response: response.into(),
                error: None.into(),
                steps: 0.into(),
                tool_calls: Vec::new().into(),
            }),
        }
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn set_account(&mut self, steps: u32, tool_calls: Vec<ToolCallSummary>) {
        self.data.get_mut().steps = steps.into();
        self.data.get_mut().tool_calls = tool_calls.into();
    }

    pub(in crate::pipeline) fn recovered(error: Error, draft: TurnDraft, ctx: &TurnContext<'_>) -> Self {
        let source = Source::System;
        let response = Message::new(Role::Assistant, draft.text, source);
        Self {
            data: MaybeRemote::local(TurnData {
                turn: ctx.turn_id().clone().into(),
                finish_reason: FinishReason::Error.into(),
                response: Some(Arc::new(response)).into(),
                error: Some(WireError(error)).into(),
                steps: 0.into(),
                tool_calls: Vec::new().into(),
            }),
        }
    }

    /// The turn.
    pub fn turn_id(&self) -> &TurnId {
        self.data.field(|data| &data.turn)
    }

    /// Why the turn ended.
    pub fn finish_reason(&self) -> FinishReason {
        *self.data.field(|data| &data.finish_reason)
    }

    /// The answer.
    pub fn response(&self) -> Option<&Message> {
        self.data.field(|data| &data.response).as_deref()
    }

    /// The text of the answer; empty when there is none.
    pub fn text(&self) -> Cow<'_, str> {
        self.response().map(Message::text).unwrap_or_default()
    }

    /// Puts `text` in the place of the answer's text, for the caller. The conversation keeps what the model said.
    pub fn set_text(&mut self, text: impl Into<String>) {
        let text = text.into();
        let response = self.data.field_mut(|data| &mut data.response);
        *response = Some(Arc::new(match response.take() {
            Some(message) => Arc::unwrap_or_clone(message).with_content(text),
            None => Message::new(Role::Assistant, text, Source::System),
        }));
    }

    /// What failed, when a middleware answered in the place of a failed turn.
    pub fn error(&self) -> Option<&Error> {
        self.data.field(|data| &data.error).as_ref().map(|WireError(error)| error)
    }

    /// How many steps were run; complete once the turn is over.
    pub fn steps(&self) -> u32 {
        *self.data.field(|data| &data.steps)
    }

    /// The tool calls of all steps, in request order; complete once the turn is over.
    pub fn tool_calls(&self) -> &[ToolCallSummary] {
        self.data.field(|data| &data.tool_calls)
    }
}
