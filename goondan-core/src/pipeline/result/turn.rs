//! The result of a turn.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::{Message, Role, Source};
use crate::crossing::{MaybeRemote, result_fields};
use crate::error::{Error, ErrorCode, Result, WireError};
use crate::event::{TokenUsage, value_of};
use crate::name::TurnId;
use crate::outcome::ToolCallSummary;
use crate::question::Wait;

/// The result of a turn: the answer, and why the turn ended.
///
/// A program gets it from `Instance::run`, and a turn middleware from [`Next::run`](crate::Next::run).
/// A middleware can change the answer that the caller reads, and can neither construct nor clone a result.
///
/// ```
/// use goondan::Agent;
/// use goondan::middleware::FinishReason;
/// use goondan::model::{ScriptItem, ScriptedModel};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi")])).build()?;
/// let turn = agent.instance("user:42").await?.run("hello").await?;
/// assert_eq!(turn.text(), "hi");
/// assert_eq!((turn.finish_reason(), turn.steps()), (FinishReason::TextResponse, 1));
/// # Ok::<(), goondan::Error>(())
/// # })?;
/// # Ok::<(), goondan::Error>(())
/// ```
// F-TURN, NEXT-01
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
        error: Option<Arc<WireError>> = "error",
        steps: u32 = "steps",
        tool_calls: Vec<ToolCallSummary> = "toolCalls",
        usage: Option<TokenUsage> = "usage",
        whole_usage: Option<TokenUsage> = "wholeUsage",
        stored: Option<bool> = "stored",
        waits: Option<Box<[Wait]>> = "waits",
    }
    local {}
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The model answered without calling a tool.
    TextResponse,
    /// The limit of steps was reached.
    MaxSteps,
    /// The limit of tokens cut the answer off. The answer is the part before the cut.
    Length,
    /// The turn failed, and a middleware recovered with an answer.
    Error,
    /// The turn does not run, because tool calls wait for decisions: see [`TurnResult::waits`]. It has no answer yet.
    // ASK-01
    Suspended,
    /// A reason that this version does not know.
    #[serde(other)]
    Other,
}

impl TurnResult {
    #[inline]
    pub(in crate::pipeline) fn recovered(error: Error, text: String, turn: TurnId) -> Self {
        let source = Source::System;
        let response = Message::new(Role::Assistant, text, source);
        Self {
            data: MaybeRemote::local(TurnData {
                turn: turn.into(),
                finish_reason: FinishReason::Error.into(),
                response: Some(Arc::new(response)).into(),
                error: Some(Arc::new(WireError(error))).into(),
                steps: 0.into(),
                tool_calls: Vec::new().into(),
                usage: None.into(),
                whole_usage: None.into(),
                stored: None.into(),
                waits: None.into(),
            }),
        }
    }

    /// Returns the id of the turn.
    pub fn turn_id(&self) -> &TurnId {
        self.data.field(|data| &data.turn)
    }

    /// Returns why the turn ended.
    pub fn finish_reason(&self) -> FinishReason {
        *self.data.field(|data| &data.finish_reason)
    }

    /// Returns the message that answers, if there is one.
    ///
    /// It follows the conversation: when a middleware replaces the message of the answer, the layers outside of it and
    /// the caller get the replacement. If the message is removed, or has no text any more, the answer is the last
    /// message of the assistant with a text that the turn has added, or there is none. An answer that
    /// [`TurnResult::set_text`] or a recovery has set stays as it is.
    pub fn response(&self) -> Option<&Message> {
        self.data.field(|data| &data.response).as_deref()
    }

    /// Returns the text of the answer, or an empty text if there is none.
    pub fn text(&self) -> Cow<'_, str> {
        self.response().map(Message::text).unwrap_or_default()
    }

    /// Returns whether the answer is a value that fits the schema which was expected: see
    /// [`AgentEvent::expecting`](crate::AgentEvent::expecting).
    // VALUE-01
    pub fn is_value(&self) -> bool {
        self.response().is_some_and(|message| message.metadata().get(VALUE) == Some(&Value::Bool(true)))
    }

    /// Returns the value that the answer is.
    ///
    /// # Errors
    /// `E_ANSWER_SCHEMA` when its text is no value of the type `T`.
    // VALUE-01
    pub fn value<T: DeserializeOwned>(&self) -> Result<T> {
        if self.response().is_none() {
            let message = match self.finish_reason() {
                FinishReason::MaxSteps => "the turn reached its limit of steps before its answer",
                FinishReason::Suspended => "the turn waits for decisions, and has no answer yet",
                _ => "the turn has no answer",
            };
            return Err(Error::new(ErrorCode::ANSWER_SCHEMA, message)
                .suggest("look at how the turn ended: `finish_reason`, and `waits` of a suspended one"));
        }
        value_of(&self.text())
    }

    /// Replaces the text of the answer for the caller, whatever the conversation holds. The conversation keeps its
    /// message; to change both, replace the message.
    pub fn set_text(&mut self, text: impl Into<String>) {
        let text = text.into();
        let response = self.data.field_mut(|data| &mut data.response);
        *response = Some(Arc::new(match response.take() {
            Some(message) => Arc::unwrap_or_clone(message).with_content(text),
            None => Message::new(Role::Assistant, text, Source::System),
        }));
    }

    /// Returns the error of a failed turn that a middleware recovered from.
    pub fn error(&self) -> Option<&Error> {
        self.data.field(|data| &data.error).as_deref().map(|WireError(error)| error)
    }

    /// Returns how many steps were run. It is 0 until the turn chain has returned: middlewares do not see it.
    pub fn steps(&self) -> u32 {
        *self.data.field(|data| &data.steps)
    }

    /// Returns the tool calls of all steps, in the order of their requests. Empty until the turn chain has returned.
    pub fn tool_calls(&self) -> &[ToolCallSummary] {
        self.data.field(|data| &data.tool_calls)
    }

    /// Returns the tokens that all model calls of the turn used, if the model reports them. Those before an
    /// interruption are not counted.
    pub fn usage(&self) -> Option<TokenUsage> {
        *self.data.field(|data| &data.usage)
    }

    /// Returns the tokens of the turn and of the turns of other agents that it has waited for, and those that they have
    /// waited for, as far as their models report them. It is [`TurnResult::usage`] if no other agent was asked.
    // WORK-02, D-40
    pub fn whole_usage(&self) -> Option<TokenUsage> {
        self.data.field(|data| &data.whole_usage).or_else(|| self.usage())
    }

    /// Returns the calls that wait for decisions, in the order of their requests, each with its open questions, if the
    /// turn is [suspended](FinishReason::Suspended). `Instance::decide` goes on with it.
    // ASK-01
    pub fn waits(&self) -> &[Wait] {
        // A program of an older version suspends no turn, and has no such field.
        if self.finish_reason() != FinishReason::Suspended {
            return &[];
        }
        self.data.field(|data| &data.waits).as_deref().unwrap_or_default()
    }

    /// Returns whether no turn ran, because the event was answered before: the answer comes from the conversation, as
    /// it is now, and there are no steps, calls and tokens.
    // ONCE-01
    pub fn is_stored(&self) -> bool {
        self.data.field(|data| &data.stored).unwrap_or_default()
    }

    /// Returns whether the event was answered before, and the answer is no longer in the conversation: a window, a
    /// compaction or a person has taken it out, or the turn had none.
    // ONCE-01
    pub fn answer_is_gone(&self) -> bool {
        self.is_stored() && self.response().is_none()
    }
}

/// The metadata key of a message whose text is a value that was expected.
pub const VALUE: &str = "value";

/// The members of a [`TurnResult`] for the runtime.
pub trait TurnResultExt {
    /// Returns the result of a turn in this binary.
    fn from_parts(turn: TurnId, finish_reason: FinishReason, response: Option<Arc<Message>>) -> Self;
    /// Returns the result of a turn that has ended earlier.
    fn stored(turn: TurnId, finish_reason: FinishReason, response: Option<Arc<Message>>) -> Self;
    /// Returns the result of a turn whose calls wait for decisions.
    fn suspended(turn: TurnId, waits: Vec<Wait>) -> Self;
    /// Sets the tokens that all model calls of the turn took, and those of the turn with all that it has waited for.
    fn set_usage(&mut self, usage: Option<TokenUsage>, whole: Option<TokenUsage>);
    /// Sets how many steps the turn had, and its tool calls.
    fn set_totals(&mut self, steps: u32, tool_calls: Vec<ToolCallSummary>);
    /// Returns whether the answer is this message, and not one that a middleware has set.
    fn has_response(&self, message: Option<&Arc<Message>>) -> bool;
    /// Sets the message with the answer.
    fn set_response(&mut self, message: Option<Arc<Message>>);
}

impl TurnResultExt for TurnResult {
    #[inline]
    fn from_parts(turn: TurnId, finish_reason: FinishReason, response: Option<Arc<Message>>) -> Self {
        Self {
            data: MaybeRemote::local(TurnData {
                turn: turn.into(),
                finish_reason: finish_reason.into(),
                response: response.into(),
                error: None.into(),
                steps: 0.into(),
                tool_calls: Vec::new().into(),
                usage: None.into(),
                whole_usage: None.into(),
                stored: None.into(),
                waits: None.into(),
            }),
        }
    }

    fn stored(turn: TurnId, finish_reason: FinishReason, response: Option<Arc<Message>>) -> Self {
        let mut result = Self::from_parts(turn, finish_reason, response);
        result.data.get_mut().stored = Some(true).into();
        result
    }

    fn suspended(turn: TurnId, waits: Vec<Wait>) -> Self {
        let mut result = Self::from_parts(turn, FinishReason::Suspended, None);
        result.data.get_mut().waits = Some(waits.into()).into();
        result
    }

    fn set_usage(&mut self, usage: Option<TokenUsage>, whole: Option<TokenUsage>) {
        let data = self.data.get_mut();
        (data.usage, data.whole_usage) = (usage.into(), whole.into());
    }

    fn set_totals(&mut self, steps: u32, tool_calls: Vec<ToolCallSummary>) {
        self.data.get_mut().steps = steps.into();
        self.data.get_mut().tool_calls = tool_calls.into();
    }

    #[inline]
    fn has_response(&self, message: Option<&Arc<Message>>) -> bool {
        self.data.field(|data| &data.response).as_ref().map(Arc::as_ptr) == message.map(Arc::as_ptr)
    }

    fn set_response(&mut self, message: Option<Arc<Message>>) {
        self.data.get_mut().response = message.into();
    }
}
