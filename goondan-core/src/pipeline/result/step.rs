//! The result of a step.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ToolCallResult;
use crate::conversation::ToolCallPart;
use crate::crossing::{Crossing, MaybeRemote, result_fields};
use crate::depth::Unchecked;
use crate::error::Error;
use crate::event::TokenUsage;
use crate::name::{ExtensionName, ToolCallId};
use crate::outcome::ModelFinish;

/// The result of a step: the tool calls that the model asked for, and their results.
///
/// A step middleware gets it from [`Next::run`](crate::Next::run). It can change whether another step follows, and pass
/// values to outer layers in the metadata; it can neither construct nor clone one.
///
/// ```
/// use goondan::prelude::*;
///
/// # struct OneShot;
/// # #[goondan::extension(name = "one-shot")]
/// # impl OneShot {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// /// Ends the turn after the tool `answer__submit` was called.
/// #[middleware(step)]
/// async fn stop(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
///     let mut result = next.run(ctx).await?;
///     if result.tool_calls().iter().any(|call| call.name == "answer__submit") {
///         result.set_continues(false);
///     }
///     Ok(result)
/// }
/// # }
/// ```
// PIPE-12, NEXT-01
#[derive(Debug)]
pub struct StepResult {
    data: MaybeRemote<StepData>,
}

result_fields! {
    /// The fields of a [`StepResult`].
    pub struct StepData for StepResult {
        status: StepStatus = "status",
        has_tool_calls: bool = "hasToolCalls",
        tool_calls: Vec<ToolRequest> = "toolCalls",
        tool_results: ToolCallResults = "toolResults",
        metadata: Unchecked = "metadata",
        usage: Option<TokenUsage> = "usage",
        model: Option<String> = "model",
        finish_reason: Option<ModelFinish> = "finishReason",
        prepared_by: Option<ExtensionName> = "preparedBy",
    }
    local {
        /// The fault of the model's answer, if another step asks it again (F-TURN).
        repair: Option<Repair>,
    }
}

/// Why the model is asked again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Repair {
    /// The fault of its answer.
    pub problem: Box<str>,
    /// The most repetitions in a row, if a reviewer of the answer limits them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// The text of the answer, if it is no value that fits the schema which is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Box<str>>,
}

impl Repair {
    /// An answer is malformed.
    pub fn malformed(problem: &str) -> Self {
        Self { problem: problem.into(), at_most: None, attempt: None }
    }
}

/// The end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum StepStatus {
    /// The model answered, and its tool calls, if any, have results.
    Completed,
    /// The step failed, and a middleware recovered.
    Failed,
    /// Tool calls of the step wait for decisions. The turn is suspended, whatever layers return, and the layers run
    /// again around the whole step when it goes on: the events that they emit now are dropped.
    // ASK-01
    Suspended,
    /// A status that this version does not know.
    #[serde(other)]
    Other,
}

/// A tool call as the model asked for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The id of the call.
    pub id: ToolCallId,
    /// The tool's name as the model wrote it; not necessarily a legal one.
    pub name: String,
    /// The arguments as the model wrote them. They should be an object, but nothing enforces it.
    #[serde(default)]
    pub args: Value,
}

impl ToolRequest {
    /// A call of the tool `name` with the arguments `args`.
    pub fn new(id: ToolCallId, name: impl Into<String>, args: Value) -> Self {
        Self { id, name: name.into(), args }
    }
}

impl From<&ToolCallPart> for ToolRequest {
    fn from(call: &ToolCallPart) -> Self {
        Self::new(call.tool_call_id.clone(), call.tool_name.clone(), call.input.clone())
    }
}

impl StepResult {
    #[inline]
    pub(in crate::pipeline) fn recovered(error: &Error, run_another: bool) -> Self {
        let mut metadata = Unchecked::default();
        metadata.insert("error".to_owned(), error.to_string().into());
        Self {
            data: MaybeRemote::local(StepData {
                status: StepStatus::Failed.into(),
                has_tool_calls: run_another.into(),
                tool_calls: Vec::new().into(),
                tool_results: ToolCallResults(Vec::new()).into(),
                metadata: metadata.into(),
                usage: None.into(),
                model: None.into(),
                finish_reason: None.into(),
                prepared_by: None.into(),
                repair: None,
            }),
        }
    }

    /// Returns how the step ended.
    pub fn status(&self) -> StepStatus {
        *self.data.field(|data| &data.status)
    }

    /// Returns whether tool calls of the step wait for decisions.
    // ASK-01
    pub fn is_suspended(&self) -> bool {
        self.status() == StepStatus::Suspended
    }

    /// Returns whether the turn continues with another step: unless a layer says otherwise, if there were tool calls.
    // PIPE-11
    #[inline]
    pub fn continues(&self) -> bool {
        *self.data.field(|data| &data.has_tool_calls)
    }

    /// Makes the turn continue with another step, even if the model has given its final answer, or end with this one.
    /// The answer stays in the conversation, so append an instruction for the model:
    ///
    /// ```
    /// use goondan::prelude::*;
    ///
    /// # struct Tested;
    /// # #[goondan::extension(name = "tested")]
    /// # impl Tested {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Lets no turn end that has changed files and run no tests.
    /// #[middleware(step)]
    /// async fn ask_for_tests(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
    ///     let mut result = next.run(ctx).await?;
    ///     let called = |name: &str| result.tool_calls().iter().any(|call| call.name == name);
    ///     if called("files__write") {
    ///         ctx.metadata_mut().insert("untested".to_owned(), true.into());
    ///     } else if called("tests__run") {
    ///         ctx.metadata_mut().remove("untested");
    ///     }
    ///     if !result.continues() && ctx.metadata_mut().remove("untested").is_some() {
    ///         ctx.emit(MessageEvent::append(Message::user("Run the tests before you end.")));
    ///         result.set_continues(true);
    ///     }
    ///     Ok(result)
    /// }
    /// # }
    /// ```
    // D-07
    pub fn set_continues(&mut self, continues: bool) {
        self.data.get_mut().has_tool_calls.set(continues);
    }

    /// Returns the calls that the model asked for, in its order.
    pub fn tool_calls(&self) -> &[ToolRequest] {
        self.data.field(|data| &data.tool_calls)
    }

    /// Returns the results of the calls, in the same order.
    pub fn tool_results(&self) -> &[ToolCallResult] {
        &self.data.field(|data| &data.tool_results).0
    }

    /// Returns the tokens that the model call used, if the model reports them.
    pub fn usage(&self) -> Option<TokenUsage> {
        *self.data.field(|data| &data.usage)
    }

    /// Returns the model that answered, if its provider reports it.
    pub fn model(&self) -> Option<&str> {
        self.data.field(|data| &data.model).as_deref()
    }

    /// Returns why the model stopped, if it reports that.
    pub fn finish_reason(&self) -> Option<ModelFinish> {
        *self.data.field(|data| &data.finish_reason)
    }

    /// Returns the extension that has prepared the answer, if the model was not asked.
    // PREP-01
    pub fn prepared_by(&self) -> Option<&ExtensionName> {
        self.data.field(|data| &data.prepared_by).as_ref()
    }

    /// Returns the values that inner layers left for outer ones.
    pub fn metadata(&self) -> &Map<String, Value> {
        self.data.field(|data| &data.metadata)
    }

    /// Returns the same values, to change them.
    pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        self.data.field_mut(|data| &mut data.metadata)
    }
}

/// The results of a step's calls, as one field. `ToolCallResult` itself must not implement `Deserialize` (NEXT-01).
#[derive(Debug)]
struct ToolCallResults(Vec<ToolCallResult>);

impl Clone for ToolCallResults {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(ToolCallResult::copied).collect())
    }
}

impl Serialize for ToolCallResults {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let results: crate::Result<Vec<_>> = self.0.iter().map(Crossing::fields).collect();
        results.map_err(|error| serde::ser::Error::custom(error.message()))?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolCallResults {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let results = Vec::<Map<String, Value>>::deserialize(deserializer)?;
        let results = results.into_iter().map(|fields| ToolCallResult::from_fields(fields).map_err(Error::into_std));
        results.collect::<Result<_, _>>().map(Self).map_err(serde::de::Error::custom)
    }
}

/// Facts about a model call that has ended, besides its content.
#[derive(Debug, Default)]
pub struct ModelCall {
    /// The tokens that the call took.
    pub usage: Option<TokenUsage>,
    /// The name of the model that answered.
    pub model: Option<String>,
    /// Why the model stopped.
    pub finish_reason: Option<ModelFinish>,
    /// The extension that has prepared the answer instead.
    pub prepared_by: Option<ExtensionName>,
}

/// The members of a [`StepResult`] for the runtime.
pub trait StepResultExt {
    /// Returns the result of a step in this binary.
    fn from_parts(tool_calls: Vec<ToolRequest>, tool_results: Vec<ToolCallResult>, model_call: &ModelCall) -> Self;
    /// The result of a step whose answer is not used: another step asks the model again.
    fn repair(repair: Repair, model_call: &ModelCall) -> Self;
    /// The result of a step whose calls wait for decisions.
    fn suspended(tool_calls: Vec<ToolRequest>, tool_results: Vec<ToolCallResult>, model_call: &ModelCall) -> Self;
    /// Checks the metadata, into which middlewares have put values.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH` with the place.
    fn check_metadata(&self) -> crate::Result<()>;
    /// Returns the fault of the answer, if the model is asked again.
    fn asks_again(&self) -> Option<&Repair>;
}

impl StepResultExt for StepResult {
    #[inline]
    fn from_parts(tool_calls: Vec<ToolRequest>, tool_results: Vec<ToolCallResult>, model_call: &ModelCall) -> Self {
        Self {
            data: MaybeRemote::local(StepData {
                status: StepStatus::Completed.into(),
                has_tool_calls: (!tool_calls.is_empty()).into(),
                tool_calls: tool_calls.into(),
                tool_results: ToolCallResults(tool_results).into(),
                metadata: Unchecked::default().into(),
                usage: model_call.usage.into(),
                model: model_call.model.clone().into(),
                finish_reason: model_call.finish_reason.into(),
                prepared_by: model_call.prepared_by.clone().into(),
                repair: None,
            }),
        }
    }

    fn repair(repair: Repair, model_call: &ModelCall) -> Self {
        let mut result = Self::from_parts(Vec::new(), Vec::new(), model_call);
        result.set_continues(true);
        result.metadata_mut().insert("malformed".to_owned(), Value::from(&*repair.problem));
        result.data.get_mut().repair = Some(repair);
        result
    }

    fn suspended(tool_calls: Vec<ToolRequest>, tool_results: Vec<ToolCallResult>, model_call: &ModelCall) -> Self {
        let mut result = Self::from_parts(tool_calls, tool_results, model_call);
        let data = result.data.get_mut();
        (data.status, data.has_tool_calls) = (StepStatus::Suspended.into(), false.into());
        result
    }

    #[inline]
    fn check_metadata(&self) -> crate::Result<()> {
        self.data.field(|data| &data.metadata).check("a value in the metadata")
    }

    fn asks_again(&self) -> Option<&Repair> {
        self.data.get().repair.as_ref().filter(|_| self.continues())
    }
}
