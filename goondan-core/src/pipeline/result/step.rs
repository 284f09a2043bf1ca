//! The result of a step.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::ToolCallResult;
use crate::crossing::{Crossing, MaybeRemote, result_fields};
use crate::error::Error;
use crate::name::ToolCallId;
use crate::pipeline::{StepContext, StepDraft};

/// What a step came to: the tool calls that the model asked for, and their results.
// PIPE-12
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
        metadata: Map<String, Value> = "metadata",
    }
    local {
        /// Whether the model's answer was malformed, and the model is asked again (F-TURN).
        #[cfg(feature = "runtime")]
        repair: bool,
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

impl StepResult {
    #[cfg(feature = "runtime")]
    pub(crate) fn new(tool_calls: Vec<ToolRequest>, tool_results: Vec<ToolCallResult>) -> Self {
        Self {
            data: MaybeRemote::local(StepData {
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

    pub(in crate::pipeline) fn recovered(error: Error, draft: StepDraft, _: &StepContext<'_>) -> Self {
        let mut metadata = Map::new();
        metadata.insert("error".to_owned(), error.to_string().into());
        Self {
            data: MaybeRemote::local(StepData {
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
