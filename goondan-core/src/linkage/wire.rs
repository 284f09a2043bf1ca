//! JSON forms of types that cross to another binary as a whole and do not implement serde themselves.

use std::borrow::Cow;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::conversation::{Content, FilePart, MessageEvent, Part};
use crate::depth::{self, Unchecked};
use crate::error::{Error, ErrorCode, Result, WireError};
use crate::event::{AgentEvent, AnswerFormat, TokenUsage, TurnInfo};
use crate::model_call::{ModelInfo, ModelOptions, ModelOptionsExt};
use crate::name::{AgentName, InstanceKey, MessageId, ModelName, ToolCallId, ToolName, TraceId, TurnId};
use crate::outcome::ModelFinish;
use crate::peers::{AgentRequest, AgentResponse, RequestTarget};
use crate::pipeline::AnswerVerdict;
use crate::tool::{Effect, ProviderTool, ToolCatalog, ToolCatalogExt, ToolItem, ToolReply, ToolSource, WireReply};

/// The data that stays the same during a turn.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireScope<'a> {
    agent_name: Cow<'a, AgentName>,
    instance_key: Cow<'a, InstanceKey>,
    turn_id: Cow<'a, TurnId>,
    trace_id: Cow<'a, TraceId>,
    input_event: Cow<'a, AgentEvent>,
    /// An older host does not write it.
    #[serde(default)]
    resumption: u32,
}

impl<'a> From<&'a TurnInfo> for WireScope<'a> {
    fn from(scope: &'a TurnInfo) -> Self {
        Self {
            agent_name: Cow::Borrowed(&scope.agent),
            instance_key: Cow::Borrowed(&scope.instance),
            turn_id: Cow::Borrowed(&scope.turn),
            trace_id: Cow::Borrowed(&scope.trace),
            input_event: Cow::Borrowed(&scope.input),
            resumption: scope.resumption,
        }
    }
}

impl From<WireScope<'_>> for TurnInfo {
    fn from(scope: WireScope<'_>) -> Self {
        Self {
            agent: scope.agent_name.into_owned(),
            instance: scope.instance_key.into_owned(),
            turn: scope.turn_id.into_owned(),
            trace: scope.trace_id.into_owned(),
            input: scope.input_event.into_owned(),
            resumption: scope.resumption,
        }
    }
}

/// A tool, with the members that a model is not sent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireToolItem<'a> {
    name: Cow<'a, ToolName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parameters: Option<Cow<'a, Value>>,
    /// `None` if the name is among the unknown members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effect: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    asks: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    parallel: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<Cow<'a, ToolSource>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lenient: bool,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    provider_tools: Cow<'a, [ProviderTool]>,
    /// Kept, so that a library which changes the catalog loses nothing that a newer host has written.
    #[serde(flatten)]
    unknown: Cow<'a, Map<String, Value>>,
}

fn name_of(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Idempotent => "idempotent",
        Effect::Once => "once",
        Effect::Other => "other",
    }
}

impl<'a> From<&'a ToolItem> for WireToolItem<'a> {
    fn from(item: &'a ToolItem) -> Self {
        let mut unknown = item.unknown.as_deref().map_or_else(Cow::default, Cow::Borrowed);
        let mut effect = Some(name_of(item.effect));
        if unknown.contains_key("effect") {
            if item.effect == Effect::Other {
                effect = None;
            } else {
                unknown.to_mut().shift_remove("effect");
            }
        }
        Self {
            name: Cow::Borrowed(&item.name),
            description: item.description.as_deref().map(Cow::Borrowed),
            parameters: item.parameters.as_ref().map(Cow::Borrowed),
            effect: effect.map(Cow::Borrowed),
            timeout: item.timeout,
            asks: item.asks,
            parallel: item.parallel,
            source: item.source.as_ref().map(Cow::Borrowed),
            lenient: item.lenient,
            provider_tools: Cow::Borrowed(&item.provider_tools),
            unknown,
        }
    }
}

impl From<WireToolItem<'_>> for ToolItem {
    fn from(item: WireToolItem<'_>) -> Self {
        let mut unknown = item.unknown.into_owned();
        let effect = item.effect.map_or(Effect::default(), |name| {
            let known =
                [Effect::Read, Effect::Idempotent, Effect::Once].into_iter().find(|known| name_of(*known) == name);
            known.unwrap_or_else(|| {
                unknown.insert("effect".to_owned(), name.into());
                Effect::Other
            })
        });
        Self {
            name: item.name.into_owned(),
            description: item.description.map(Cow::into_owned),
            parameters: item.parameters.map(Cow::into_owned),
            effect,
            timeout: item.timeout,
            asks: item.asks,
            parallel: item.parallel,
            source: item.source.map(Cow::into_owned),
            lenient: item.lenient,
            provider_tools: item.provider_tools.into_owned(),
            unknown: (!unknown.is_empty()).then(|| Box::new(unknown)),
        }
    }
}

/// The model that a request asks: the agent's own if it has no name.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireModel {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<ModelName>,
}

/// The model that has answered. A newer host may tell more of it.
#[derive(Debug, Serialize, Deserialize)]
struct WireAnswered {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<ModelName>,
}

/// Returns the members `target`, of agents, and `model`.
fn members_of(target: RequestTarget) -> (Option<String>, Option<WireModel>) {
    match target {
        RequestTarget::Agent(name) => (Some(name), None),
        RequestTarget::Model(name) => (None, Some(WireModel { name })),
    }
}

fn target_of(target: Option<String>, model: Option<WireModel>) -> Result<RequestTarget> {
    match (target, model) {
        (Some(name), None) => Ok(RequestTarget::Agent(name)),
        (None, Some(model)) => Ok(RequestTarget::Model(model.name)),
        (None, None) | (Some(_), Some(_)) => {
            let message = "a request, and its answer, has one of the members `target` and `model`";
            Err(Error::new(ErrorCode::INPUT, message).suggest("name an agent by `target`, or a model by `model`"))
        }
    }
}

/// A request to another agent, or to a model.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireAgentRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<WireModel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance_key: Option<InstanceKey>,
    #[serde(default)]
    timeout: Duration,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    #[serde(default)]
    options: ModelOptions,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Box<AnswerFormat>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ephemeral: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "files")]
    files: Vec<FilePart>,
}

impl From<AgentRequest> for WireAgentRequest {
    fn from(request: AgentRequest) -> Self {
        let AgentRequest { target, input, instance_key, timeout, metadata, system, options, answer, ephemeral, files } =
            request;
        let (target, model) = members_of(target);
        Self { target, model, input, instance_key, timeout, metadata, system, options, answer, ephemeral, files }
    }
}

impl TryFrom<WireAgentRequest> for AgentRequest {
    type Error = Error;

    fn try_from(request: WireAgentRequest) -> Result<Self> {
        let WireAgentRequest {
            input, instance_key, timeout, metadata, system, options, answer, ephemeral, files, ..
        } = request;
        let target = target_of(request.target, request.model)?;
        Ok(Self { target, input, instance_key, timeout, metadata, system, options, answer, ephemeral, files })
    }
}

/// Reads parts, each of which is a file.
fn files<'de, D: Deserializer<'de>>(files: D) -> std::result::Result<Vec<FilePart>, D::Error> {
    let parts = Vec::<Part>::deserialize(files)?.into_iter();
    let files = parts.map(|part| match part {
        Part::File(file) => Ok(*file),
        _ => Err(D::Error::custom("`files` has a part that is no file")),
    });
    files.collect()
}

/// The answer of another agent, or of a model.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireAgentResponse {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<WireAnswered>,
    response: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "files")]
    files: Vec<FilePart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finish_reason: Option<ModelFinish>,
}

impl From<AgentResponse> for WireAgentResponse {
    fn from(AgentResponse { target, response, files, usage, finish_reason }: AgentResponse) -> Self {
        let (target, model) = members_of(target);
        let model = model.map(|WireModel { name }| WireAnswered { name });
        Self { target, model, response, files, usage, finish_reason }
    }
}

impl TryFrom<WireAgentResponse> for AgentResponse {
    type Error = Error;

    fn try_from(answer: WireAgentResponse) -> Result<Self> {
        let WireAgentResponse { target, model, response, files, usage, finish_reason } = answer;
        let model = model.map(|WireAnswered { name }| WireModel { name });
        Ok(Self { target: target_of(target, model)?, response, files, usage, finish_reason })
    }
}

/// The verdict on an answer. One of a type that this version does not know is an error: the answer may not be kept.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WireVerdict {
    /// The answer is kept.
    Keep,
    /// It is replaced.
    Replace {
        /// By this.
        content: Content,
    },
    /// The step fails.
    Refuse {
        /// With this.
        error: WireError,
    },
    /// The model is asked again.
    AskAgain {
        /// The words for the model.
        words: String,
        /// The most times in a row.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at_most: Option<u32>,
    },
}

impl From<AnswerVerdict> for WireVerdict {
    fn from(verdict: AnswerVerdict) -> Self {
        match verdict {
            AnswerVerdict::Keep => Self::Keep,
            AnswerVerdict::Replace(content) => Self::Replace { content },
            AnswerVerdict::Refuse(error) => Self::Refuse { error: WireError(error) },
            AnswerVerdict::AskAgain { words, at_most } => Self::AskAgain { words, at_most },
        }
    }
}

impl From<WireVerdict> for AnswerVerdict {
    fn from(verdict: WireVerdict) -> Self {
        match verdict {
            WireVerdict::Keep => Self::Keep,
            WireVerdict::Replace { content } => Self::Replace(content),
            WireVerdict::Refuse { error: WireError(error) } => Self::Refuse(error),
            WireVerdict::AskAgain { words, at_most } => Self::AskAgain { words, at_most },
        }
    }
}

/// A field of a context, or the argument of a directive, as it crosses to another binary.
pub trait WireField: Sized {
    /// Returns the JSON of the field.
    ///
    /// # Errors
    /// When the value has no JSON form.
    fn to_json(&self) -> Result<Vec<u8>>;
    /// Returns the JSON of a field that an extension changed, and drops the field.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH` when it holds a value that is nested too deeply.
    fn into_json(self) -> Result<Vec<u8>> {
        self.to_json()
    }
    /// Returns the field that `json` holds.
    ///
    /// # Errors
    /// When `json` is another value.
    fn from_json(json: &[u8]) -> Result<Self>;
    /// Returns the field that a host wrote, which may be newer than this library and write more.
    ///
    /// # Errors
    /// When `json` is another value.
    fn from_host(json: &[u8]) -> Result<Self> {
        Self::from_json(json)
    }
}

macro_rules! wire_fields {
    ($($type:ty),*) => {
        $(
            impl WireField for $type {
                fn to_json(&self) -> Result<Vec<u8>> {
                    Ok(serde_json::to_vec(self)?)
                }

                fn from_json(json: &[u8]) -> Result<Self> {
                    Ok(serde_json::from_slice(json)?)
                }
            }
        )*
    };
}

wire_fields!(u32, u64, String, ToolCallId, Option<ModelName>, Vec<MessageId>);

impl WireField for ModelInfo {
    fn to_json(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    fn from_json(json: &[u8]) -> Result<Self> {
        Ok(serde_json::from_slice(json)?)
    }

    /// Prices that this version cannot compute with are not known.
    fn from_host(json: &[u8]) -> Result<Self> {
        Self::from_json(json).or_else(|_| {
            let mut members: Map<String, Value> = serde_json::from_slice(json)?;
            members.shift_remove("prices");
            Ok(Self::deserialize(Value::Object(members))?)
        })
    }
}

impl WireField for () {
    fn to_json(&self) -> Result<Vec<u8>> {
        Ok(b"true".to_vec())
    }

    fn from_json(json: &[u8]) -> Result<Self> {
        if json == b"true" { Ok(()) } else { Err(Error::msg("a directive without an argument is `true`")) }
    }
}

impl WireField for MessageEvent {
    fn to_json(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    fn from_json(json: &[u8]) -> Result<Self> {
        depth::from_json(json)
    }
}

impl WireField for Content {
    fn to_json(&self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    fn from_json(json: &[u8]) -> Result<Self> {
        depth::from_json(json)
    }
}

impl WireField for ToolReply {
    fn to_json(&self) -> Result<Vec<u8>> {
        self.clone().into_json()
    }

    fn into_json(self) -> Result<Vec<u8>> {
        Ok(serde_json::to_vec(&WireReply(self))?)
    }

    fn from_json(json: &[u8]) -> Result<Self> {
        Self::from_json(json)
    }
}

impl WireField for Map<String, Value> {
    fn to_json(&self) -> Result<Vec<u8>> {
        depth::check_map(self).map_err(|error| error.refuse("an argument"))?;
        Ok(serde_json::to_vec(self)?)
    }

    fn into_json(self) -> Result<Vec<u8>> {
        Unchecked::from(self).to_json()
    }

    fn from_json(json: &[u8]) -> Result<Self> {
        depth::from_json(json)
    }
}

impl WireField for ModelOptions {
    fn to_json(&self) -> Result<Vec<u8>> {
        let Some(unknown) = self.unknown.as_deref() else { return Ok(serde_json::to_vec(self)?) };
        let mut members = unknown.clone();
        if let Value::Object(known) = serde_json::to_value(self)? {
            members.extend(known);
        }
        Ok(serde_json::to_vec(&members)?)
    }

    fn into_json(self) -> Result<Vec<u8>> {
        self.checked()?.to_json()
    }

    fn from_json(json: &[u8]) -> Result<Self> {
        depth::from_json(json)
    }

    /// Keeps options that this version does not know, and those with such a value, until the library sets them.
    fn from_host(json: &[u8]) -> Result<Self> {
        Self::from_json(json).or_else(|_| {
            let (mut options, mut unknown) = (Self::default(), Map::new());
            for (name, value) in depth::from_json::<Map<String, Value>>(json)? {
                let option = Map::from_iter([(name.clone(), value.clone())]);
                match Self::deserialize(Value::Object(option)) {
                    Ok(option) => options = options.or(&option),
                    Err(_) => _ = unknown.insert(name, value),
                }
            }
            options.unknown = Some(Box::new(unknown));
            Ok(options)
        })
    }
}

impl WireField for ToolCatalog {
    fn to_json(&self) -> Result<Vec<u8>> {
        self.check_depth()?;
        Ok(serde_json::to_vec(&self.iter().map(WireToolItem::from).collect::<Vec<_>>())?)
    }

    fn into_json(self) -> Result<Vec<u8>> {
        self.checked()?.to_json()
    }

    fn from_json(json: &[u8]) -> Result<Self> {
        let items: Vec<WireToolItem<'_>> = serde_json::from_slice(json)?;
        Ok(items.into_iter().map(ToolItem::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_may_tell_more_than_is_known_and_a_request_may_not() {
        let answer = json!({ "model": { "name": "small", "speed": 1 }, "response": "hi", "later": [],
                             "finishReason": "of-tomorrow" });
        let answer: WireAgentResponse = serde_json::from_value(answer).unwrap();
        let small = RequestTarget::Model(Some(ModelName::from("small")));
        let answer = AgentResponse::try_from(answer).unwrap();
        assert_eq!((answer.target, answer.finish_reason), (small, Some(ModelFinish::Other)));
        let request = json!({ "model": { "nmae": "small" }, "input": "hi" });
        serde_json::from_value::<WireAgentRequest>(request).unwrap_err();
    }
}
