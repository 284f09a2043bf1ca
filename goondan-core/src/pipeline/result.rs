//! Owns the results of turns, steps and tool calls.
//!
//! A middleware gets one from `next` and may transform it; it can neither make nor copy one (NEXT-01). In a library the
//! fields of a result stay with the host until they are asked for: see `linkage`.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{StepDraft, ToolCallDraft, TurnDraft};
use crate::context::{StepContext, ToolCallContext, TurnContext};
use crate::conversation::{Message, Role, Source, ToolOutput};
use crate::error::Error;
use crate::linkage::{Crossed, Crossing, Field, WireError, crossing};
use crate::name::{ToolCallId, TurnId};
use crate::secret::mask_text;

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

/// The outcome of a turn (F-TURN).
#[derive(Debug)]
pub struct TurnResult {
    data: Crossed<TurnData>,
}

/// What a [`TurnResult`] is made of.
#[derive(Debug)]
pub struct TurnData {
    turn: Field<TurnId>,
    finish_reason: Field<FinishReason>,
    response: Field<Option<Arc<Message>>>,
    error: Field<Option<WireError>>,
    steps: Field<u32>,
    tool_calls: Field<Vec<ToolCallSummary>>,
}

crossing!(TurnResult(TurnData) {
    turn: "turnId",
    finish_reason: "finishReason",
    response: "response",
    error: "error",
    steps: "steps",
    tool_calls: "toolCalls",
} here {});

/// One tool call of a turn, in the turn's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCallSummary {
    /// The call.
    pub id: ToolCallId,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// How it ended.
    pub status: ToolCallStatus,
}

/// How far a turn came that failed; part of the [`Error`] that failed it.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedTurn {
    /// The turn.
    pub id: TurnId,
    /// How many steps were started.
    pub steps: u32,
    /// The tool calls that were answered, in request order.
    pub tool_calls: Vec<ToolCallSummary>,
}

impl TurnResult {
    #[cfg(feature = "runtime")]
    pub(crate) fn new(turn: TurnId, finish_reason: FinishReason, response: Option<Arc<Message>>) -> Self {
        Self {
            data: Crossed::here(TurnData {
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

    pub(super) fn recovered(error: Error, draft: TurnDraft, ctx: &TurnContext<'_>) -> Self {
        let source = Source::System;
        let response = Message::new(Role::Assistant, draft.text, source);
        Self {
            data: Crossed::here(TurnData {
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

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepStatus {
    /// The model answered, and its tool calls, if any, have results.
    Completed,
    /// The step failed; a middleware went on in its place.
    Failed,
}

/// A tool call as the model asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// The call.
    pub id: ToolCallId,
    /// The tool's name as the model wrote it, which need not be a legal one.
    pub name: String,
    /// The arguments as the model wrote them; an object, if the model keeps to the contract.
    #[serde(default)]
    pub args: Value,
}

/// The outcome of a step (PIPE-12).
#[derive(Debug)]
pub struct StepResult {
    data: Crossed<StepData>,
}

/// What a [`StepResult`] is made of.
#[derive(Debug)]
pub struct StepData {
    status: Field<StepStatus>,
    has_tool_calls: Field<bool>,
    tool_calls: Field<Vec<ToolRequest>>,
    tool_results: Field<ToolCallResults>,
    metadata: Field<Map<String, Value>>,
    /// Whether the model's answer was none, and the model was told so (F-TURN).
    #[cfg(feature = "runtime")]
    repair: bool,
}

crossing!(StepResult(StepData) {
    status: "status",
    has_tool_calls: "hasToolCalls",
    tool_calls: "toolCalls",
    tool_results: "toolResults",
    metadata: "metadata",
} here { #[cfg(feature = "runtime")] repair });

impl StepResult {
    #[cfg(feature = "runtime")]
    pub(crate) fn new(tool_calls: Vec<ToolRequest>, tool_results: Vec<ToolCallResult>) -> Self {
        Self {
            data: Crossed::here(StepData {
                status: StepStatus::Completed.into(),
                has_tool_calls: (!tool_calls.is_empty()).into(),
                tool_calls: tool_calls.into(),
                tool_results: ToolCallResults(tool_results).into(),
                metadata: Map::new().into(),
                repair: false,
            }),
        }
    }

    /// The result of a step whose answer was none: the model was told so, and another step is wanted.
    #[cfg(feature = "runtime")]
    pub(crate) fn repair(problem: &str) -> Self {
        let mut result = Self::new(Vec::new(), Vec::new());
        result.set_has_tool_calls(true);
        result.data.get_mut().repair = true;
        result.metadata_mut().insert("malformed".to_owned(), problem.into());
        result
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn wants_repair(&self) -> bool {
        self.data.get().repair && self.has_tool_calls()
    }

    pub(super) fn recovered(error: Error, draft: StepDraft, _: &StepContext<'_>) -> Self {
        let mut metadata = Map::new();
        metadata.insert("error".to_owned(), error.to_string().into());
        Self {
            data: Crossed::here(StepData {
                status: StepStatus::Failed.into(),
                has_tool_calls: draft.run_another.into(),
                tool_calls: Vec::new().into(),
                tool_results: ToolCallResults(Vec::new()).into(),
                metadata: metadata.into(),
                #[cfg(feature = "runtime")]
                repair: false,
            }),
        }
    }

    /// How the step ended.
    pub fn status(&self) -> StepStatus {
        *self.data.field(|data| &data.status)
    }

    /// Whether the turn goes on with another step (PIPE-11).
    pub fn has_tool_calls(&self) -> bool {
        *self.data.field(|data| &data.has_tool_calls)
    }

    /// Makes the turn go on with another step, or end with this one (D-07).
    pub fn set_has_tool_calls(&mut self, has_tool_calls: bool) {
        self.data.get_mut().has_tool_calls.set(has_tool_calls);
    }

    /// The calls that the model asked for, in its order.
    pub fn tool_calls(&self) -> &[ToolRequest] {
        self.data.field(|data| &data.tool_calls)
    }

    /// The results of the calls, in the same order.
    pub fn tool_results(&self) -> &[ToolCallResult] {
        &self.data.field(|data| &data.tool_results).0
    }

    /// Values for the outer layers.
    pub fn metadata(&self) -> &Map<String, Value> {
        self.data.field(|data| &data.metadata)
    }

    /// Values for the outer layers, to change them.
    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        self.data.field_mut(|data| &mut data.metadata)
    }
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallStatus {
    /// With an answer.
    Ok,
    /// With an error for the model to read.
    Error,
}

/// Why a tool call failed, as the model reads it (F-TOOL).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolError {
    /// What went wrong.
    pub message: String,
    /// The stable code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What the model can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The page that explains the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help_url: Option<String>,
}

impl From<&Error> for ToolError {
    fn from(error: &Error) -> Self {
        Self {
            message: error.message().into_owned(),
            code: Some(error.code().to_string()),
            suggestion: error.suggestion().map(str::to_owned),
            help_url: error.help_url(),
        }
    }
}

impl ToolError {
    /// The same error without secrets: a middleware writes its fields as it likes.
    fn masked(mut self) -> Self {
        mask_text(&mut self.message);
        self.suggestion.as_mut().into_iter().for_each(mask_text);
        self
    }

    /// The same error with a message of at most `limit` characters (F-TOOL).
    #[cfg(feature = "runtime")]
    #[must_use]
    pub(crate) fn cut(mut self, limit: usize) -> Self {
        const END: &str = "... (truncated)";
        if self.message.chars().count() > limit {
            let end = if limit > END.len() { END } else { "" };
            self.message = self.message.chars().take(limit - end.len()).collect();
            self.message.push_str(end);
        }
        self
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

/// The outcome of a tool call (F-TOOL).
#[derive(Debug)]
pub struct ToolCallResult {
    data: Crossed<ToolCallData>,
}

/// What a [`ToolCallResult`] is made of.
#[derive(Debug)]
pub struct ToolCallData {
    call_id: Field<ToolCallId>,
    tool_name: Field<String>,
    outcome: Field<Outcome>,
}

crossing!(ToolCallResult(ToolCallData) {
    call_id: "toolCallId",
    tool_name: "toolName",
    outcome: "outcome",
} here {});

/// How a call ended: `{"output": …}` or `{"error": …}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Output(Value),
    Error(ToolError),
}

impl From<Result<Value, ToolError>> for Outcome {
    fn from(outcome: Result<Value, ToolError>) -> Self {
        outcome.map_or_else(Self::Error, Self::Output)
    }
}

/// The results of a step's calls. Alone they are no value that could be read from JSON: see NEXT-01.
#[derive(Debug)]
struct ToolCallResults(Vec<ToolCallResult>);

impl Serialize for ToolCallResults {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Crossing::fields))
    }
}

impl<'de> Deserialize<'de> for ToolCallResults {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let results = Vec::<Map<String, Value>>::deserialize(deserializer)?;
        let results = results.into_iter().map(|fields| ToolCallResult::from_fields(fields).map_err(Error::into_std));
        results.collect::<Result<_, _>>().map(Self).map_err(serde::de::Error::custom)
    }
}

impl ToolCallResult {
    #[cfg(feature = "runtime")]
    pub(crate) fn new(call_id: ToolCallId, tool_name: String, outcome: Result<Value, ToolError>) -> Self {
        Self {
            data: Crossed::here(ToolCallData {
                call_id: call_id.into(),
                tool_name: tool_name.into(),
                outcome: Outcome::from(outcome).into(),
            }),
        }
    }

    pub(super) fn recovered(_: Error, draft: ToolCallDraft, ctx: &ToolCallContext<'_>) -> Self {
        Self {
            data: Crossed::here(ToolCallData {
                call_id: ctx.call_id().clone().into(),
                tool_name: ctx.tool_name().to_owned().into(),
                outcome: Outcome::from(draft.outcome.map_err(ToolError::masked)).into(),
            }),
        }
    }

    /// The call.
    pub fn call_id(&self) -> &ToolCallId {
        self.data.field(|data| &data.call_id)
    }

    /// The tool's name as the model wrote it.
    pub fn tool_name(&self) -> &str {
        self.data.field(|data| &data.tool_name)
    }

    /// How the call ended.
    pub fn status(&self) -> ToolCallStatus {
        match self.outcome() {
            Outcome::Output(_) => ToolCallStatus::Ok,
            Outcome::Error(_) => ToolCallStatus::Error,
        }
    }

    /// The answer, when the call ended with one.
    pub fn output(&self) -> Option<&Value> {
        match self.outcome() {
            Outcome::Output(output) => Some(output),
            Outcome::Error(_) => None,
        }
    }

    /// The error, when the call ended with one.
    pub fn error(&self) -> Option<&ToolError> {
        match self.outcome() {
            Outcome::Output(_) => None,
            Outcome::Error(error) => Some(error),
        }
    }

    /// Makes the call end with `output`.
    pub fn set_output(&mut self, output: impl Into<Value>) {
        self.data.get_mut().outcome.set(Outcome::Output(output.into()));
    }

    /// Makes the call end with `error`.
    pub fn set_error(&mut self, error: impl Into<ToolError>) {
        self.data.get_mut().outcome.set(Outcome::Error(error.into().masked()));
    }

    /// What the model is sent: text as text, anything else as JSON, an error with its code, remedy and help page.
    pub fn to_tool_output(&self) -> ToolOutput {
        match self.outcome() {
            Outcome::Output(Value::String(text)) => ToolOutput::Text(text.clone()),
            Outcome::Output(value) => ToolOutput::Json(value.clone()),
            Outcome::Error(error) => ToolOutput::Text(error.to_string()),
        }
    }

    fn outcome(&self) -> &Outcome {
        self.data.field(|data| &data.outcome)
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("error")?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, "\nsuggestion: {suggestion}")?;
        }
        if let Some(url) = &self.help_url {
            write!(f, "\nhelp: {url}")?;
        }
        Ok(())
    }
}
