//! Owns the JSON forms of what crosses whole, for types that have no other JSON form.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::agents::{AgentRequest, AgentResponse};
use crate::context::host::TurnInfo;
use crate::error::{Error, Parts};
use crate::event::AgentEvent;
use crate::name::{AgentName, ExtensionName, InstanceKey, ToolName, TraceId, TurnId};
use crate::pipeline::{FailedTurn, ToolCallSummary};
use crate::secret::{mask_text, masked};
use crate::tool::{Effect, ToolItem, ToolSource};

/// An error on its way: everything but the types of its causes.
#[derive(Debug)]
pub struct WireError(pub Error);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ErrorForm<'a> {
    code: Cow<'a, str>,
    /// None when the error is exactly its first cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    suggestion: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extension: Option<ExtensionName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hook: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    turn: Option<TurnForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<Duration>,
    #[serde(default)]
    retryable: bool,
    /// The cause, its cause, and so on.
    #[serde(default)]
    causes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TurnForm {
    id: TurnId,
    steps: u32,
    tool_calls: Vec<ToolCallSummary>,
}

impl Serialize for WireError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = self.0.parts();
        let mut causes = Vec::new();
        let mut cause = parts.source.as_deref().map(|source| source as &dyn StdError);
        while let Some(error) = cause {
            causes.push(error.to_string());
            cause = error.source();
        }
        let turn = parts.turn.clone();
        let form = ErrorForm {
            code: self.0.code().as_str().into(),
            message: parts.message.as_deref().map(Cow::Borrowed),
            suggestion: self.0.suggestion().map(Cow::Borrowed),
            extension: self.0.extension().cloned(),
            hook: self.0.hook().map(Cow::Borrowed),
            turn: turn.map(|FailedTurn { id, steps, tool_calls }| TurnForm { id, steps, tool_calls }),
            retry_after: self.0.retry_delay(),
            retryable: self.0.is_retryable(),
            causes,
        };
        form.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for WireError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = ErrorForm::deserialize(deserializer)?;
        // The other side does not know what is secret here.
        let owned = |text: Cow<'_, str>| masked(Cow::Owned(text.into_owned()));
        let source = form.causes.into_iter().rev().fold(None, |source, mut text| {
            mask_text(&mut text);
            Some(Box::new(Cause { text, source }))
        });
        Ok(Self(Error::from_parts(Parts {
            code: form.code.into_owned().into(),
            message: form.message.map(owned),
            suggestion: form.suggestion.map(owned),
            extension: form.extension,
            hook: form.hook.map(owned),
            turn: form.turn.map(|TurnForm { id, steps, tool_calls }| FailedTurn { id, steps, tool_calls }),
            retry_after: form.retry_after,
            retryable: form.retryable,
            source: source.map(|cause| cause as Box<dyn StdError + Send + Sync>),
        })))
    }
}

/// A cause that came as text.
#[derive(Debug)]
struct Cause {
    text: String,
    source: Option<Box<Self>>,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for Cause {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|cause| cause as &(dyn StdError + 'static))
    }
}

/// What stays the same during a turn.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireScope<'a> {
    agent_name: Cow<'a, AgentName>,
    instance_key: Cow<'a, InstanceKey>,
    turn_id: Cow<'a, TurnId>,
    trace_id: Cow<'a, TraceId>,
    input_event: Cow<'a, AgentEvent>,
}

impl<'a> From<&'a TurnInfo> for WireScope<'a> {
    fn from(scope: &'a TurnInfo) -> Self {
        Self {
            agent_name: Cow::Borrowed(&scope.agent),
            instance_key: Cow::Borrowed(&scope.instance),
            turn_id: Cow::Borrowed(&scope.turn),
            trace_id: Cow::Borrowed(&scope.trace),
            input_event: Cow::Borrowed(&scope.input),
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
        }
    }
}

/// A tool with what a model is not told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireToolItem<'a> {
    name: Cow<'a, ToolName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parameters: Option<Cow<'a, Value>>,
    #[serde(default)]
    effect: Effect,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<Cow<'a, ToolSource>>,
}

impl<'a> From<&'a ToolItem> for WireToolItem<'a> {
    fn from(item: &'a ToolItem) -> Self {
        Self {
            name: Cow::Borrowed(&item.name),
            description: item.description.as_deref().map(Cow::Borrowed),
            parameters: item.parameters.as_ref().map(Cow::Borrowed),
            effect: item.effect,
            timeout: item.timeout,
            source: item.source.as_ref().map(Cow::Borrowed),
        }
    }
}

impl From<WireToolItem<'_>> for ToolItem {
    fn from(item: WireToolItem<'_>) -> Self {
        Self {
            name: item.name.into_owned(),
            description: item.description.map(Cow::into_owned),
            parameters: item.parameters.map(Cow::into_owned),
            effect: item.effect,
            timeout: item.timeout,
            source: item.source.map(Cow::into_owned),
        }
    }
}

/// A question to another agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireAgentRequest {
    target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instance_key: Option<InstanceKey>,
    timeout: Duration,
    #[serde(default)]
    metadata: Map<String, Value>,
}

impl From<AgentRequest> for WireAgentRequest {
    fn from(request: AgentRequest) -> Self {
        let AgentRequest { target, input, instance_key, timeout, metadata } = request;
        Self { target, input, instance_key, timeout, metadata }
    }
}

impl From<WireAgentRequest> for AgentRequest {
    fn from(request: WireAgentRequest) -> Self {
        let WireAgentRequest { target, input, instance_key, timeout, metadata } = request;
        Self { target, input, instance_key, timeout, metadata }
    }
}

/// The answer of another agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireAgentResponse {
    target: AgentName,
    response: String,
}

impl From<AgentResponse> for WireAgentResponse {
    fn from(AgentResponse { target, response }: AgentResponse) -> Self {
        Self { target, response }
    }
}

impl From<WireAgentResponse> for AgentResponse {
    fn from(WireAgentResponse { target, response }: WireAgentResponse) -> Self {
        Self { target, response }
    }
}
