//! A model that plays prepared responses: it needs no key and no network, and always answers the same.

mod pattern;

use std::num::NonZeroU32;
use std::path::PathBuf;

use goondan_core::{BoxFuture, Error, ErrorCode, Part, ReasoningPart, Result, Role, ToolCallId, ToolRequest};
use goondan_lock::Lock;
use serde::Deserialize;
use serde_json::{Map, Value};

use self::pattern::InputPattern;
use super::recorded::RecordedModel;
use crate::ports::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};

/// A model that plays a list of prepared responses.
///
/// Each request is answered by the first unused item that matches: one without `when`, or one whose `when` matches the
/// newest text of a user or a tool. An item with `repeat` is never used up.
#[derive(Debug)]
pub struct ScriptedModel {
    script: Lock<Vec<Option<ScriptItem>>>,
}

/// One prepared response.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "ItemFields")]
pub struct ScriptItem {
    action: ScriptedAction,
    /// The reasoning before the response.
    reasoning: Option<String>,
    /// The number of pieces in which each text is streamed.
    pieces: Option<NonZeroU32>,
    when: Option<InputPattern>,
    repeat: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum ScriptedAction {
    Respond(ModelResponse),
    Calls(Vec<CallFields>),
    Fail(FailFields),
}

/// The fields of an item as they are written in a script.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemFields {
    say: Option<String>,
    call: Option<CallFields>,
    calls: Option<Vec<CallFields>>,
    fail: Option<FailFields>,
    content: Option<Vec<Part>>,
    raw: Option<ModelResponse>,
    reasoning: Option<String>,
    pieces: Option<NonZeroU32>,
    when: Option<String>,
    #[serde(default)]
    repeat: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct CallFields {
    tool: String,
    /// Any value, so that a script can play a model that violates the contract; defaults to no arguments.
    #[serde(default = "no_args")]
    args: Value,
}

fn no_args() -> Value {
    Value::Object(Map::new())
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct FailFields {
    message: String,
    #[serde(default)]
    retryable: bool,
}

impl TryFrom<ItemFields> for ScriptItem {
    type Error = String;

    fn try_from(fields: ItemFields) -> Result<Self, String> {
        let actions = [
            fields.say.map(|text| ScriptedAction::Respond(ModelResponse::text(text))),
            fields.call.map(|call| ScriptedAction::Calls(vec![call])),
            fields.calls.map(ScriptedAction::Calls),
            fields.fail.map(ScriptedAction::Fail),
            fields.content.map(|parts| ScriptedAction::Respond(ModelResponse::content(parts))),
            fields.raw.map(ScriptedAction::Respond),
        ];
        let mut actions = actions.into_iter().flatten();
        let (Some(action), None) = (actions.next(), actions.next()) else {
            return Err("an item has exactly one of `say`, `call`, `calls`, `fail`, `content` and `raw`".to_owned());
        };
        let when = fields.when.map(InputPattern::new).transpose();
        let when = when.map_err(|error| format!("`when` is not a regular expression: {error}"))?;
        Ok(Self { action, reasoning: fields.reasoning, pieces: fields.pieces, when, repeat: fields.repeat })
    }
}

impl ScriptItem {
    fn new(action: ScriptedAction) -> Self {
        Self { action, reasoning: None, pieces: None, when: None, repeat: false }
    }

    /// Returns an item that answers with a text.
    pub fn say(text: impl Into<String>) -> Self {
        Self::new(ScriptedAction::Respond(ModelResponse::text(text)))
    }

    /// Returns an item that calls one tool with `args`, a JSON object.
    pub fn call(tool: impl Into<String>, args: impl Into<Value>) -> Self {
        Self::calls([(tool, args)])
    }

    /// Returns an item that calls several tools.
    pub fn calls<T: Into<String>, A: Into<Value>>(calls: impl IntoIterator<Item = (T, A)>) -> Self {
        let calls = calls.into_iter().map(|(tool, args)| CallFields { tool: tool.into(), args: args.into() });
        Self::new(ScriptedAction::Calls(calls.collect()))
    }

    /// Returns an item that fails.
    pub fn fail(message: impl Into<String>, retryable: bool) -> Self {
        Self::new(ScriptedAction::Fail(FailFields { message: message.into(), retryable }))
    }

    /// Returns an item that answers with these parts.
    pub fn content(parts: impl IntoIterator<Item = Part>) -> Self {
        Self::raw(ModelResponse::content(parts))
    }

    /// Returns an item that answers with `response` unchanged, valid or not.
    pub fn raw(response: ModelResponse) -> Self {
        Self::new(ScriptedAction::Respond(response))
    }

    /// Restricts the item to requests whose newest text of a user or a tool matches `pattern`.
    ///
    /// # Errors
    /// `E_MODEL_SCRIPT` when `pattern` is not a regular expression.
    pub fn when(mut self, pattern: &str) -> Result<Self> {
        let when = InputPattern::new(pattern.to_owned()).map_err(|error| {
            Error::new(ErrorCode::MODEL_SCRIPT, format!("`{pattern}` is not a regular expression")).caused_by(error)
        })?;
        self.when = Some(when);
        Ok(self)
    }

    /// Adds reasoning before the response.
    #[must_use]
    pub fn reasoning(mut self, text: impl Into<String>) -> Self {
        self.reasoning = Some(text.into());
        self
    }

    /// Streams each text, reasoning and arguments of the response in `pieces` pieces, or as many as it has characters.
    #[must_use]
    pub fn pieces(mut self, pieces: NonZeroU32) -> Self {
        self.pieces = Some(pieces);
        self
    }

    /// Makes the item answer any number of requests.
    #[must_use]
    pub fn repeat(mut self) -> Self {
        self.repeat = true;
        self
    }
}

impl ScriptedModel {
    /// Returns a model that plays `script`.
    pub fn new(script: impl IntoIterator<Item = ScriptItem>) -> Self {
        Self { script: Lock::new(script.into_iter().map(Some).collect()) }
    }

    /// Appends every request to the file at `path`: see [`RecordedModel`].
    pub fn record(self, path: impl Into<PathBuf>) -> RecordedModel<Self> {
        RecordedModel::new(self, path)
    }

    fn answer(&self, request: &ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<ModelResponse> {
        let input = newest_input(request);
        let Some(ScriptItem { action, reasoning, pieces, .. }) = self.pick(&input)? else {
            let message = format!("no unused item of the script answers {input:?}");
            return Err(Error::new(ErrorCode::MODEL_SCRIPT, message)
                .suggest("add an item, or set `repeat: true` on the last one"));
        };
        let mut response = match action {
            ScriptedAction::Respond(response) => response,
            ScriptedAction::Calls(calls) => ModelResponse::tool_calls(
                calls.into_iter().map(|call| ToolRequest::new(ToolCallId::random(), call.tool, call.args)),
            ),
            ScriptedAction::Fail(failure) => {
                return Err(Error::new(ErrorCode::MODEL, failure.message).retryable(failure.retryable));
            }
        };
        if let Some(text) = reasoning {
            response.content.insert(0, ReasoningPart::new(text, None).into());
        }
        if let Some(pieces) = pieces.filter(|_| deltas.wanted()) {
            stream(&response, pieces, deltas);
        }
        Ok(response)
    }

    fn pick(&self, input: &str) -> Result<Option<ScriptItem>> {
        let mut script = self.script.lock();
        for unused in script.iter_mut() {
            let Some(item) = unused else { continue };
            if item.when.as_ref().map_or(Ok(true), |when| when.matches(input))? {
                return Ok(if item.repeat { Some(item.clone()) } else { unused.take() });
            }
        }
        Ok(None)
    }
}

impl Model for ScriptedModel {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(std::future::ready(self.answer(&request, deltas)))
    }
}

/// Sends each text of `response` in `pieces` pieces.
fn stream(response: &ModelResponse, pieces: NonZeroU32, deltas: DeltaSink<'_>) {
    for (part, content) in (0..).zip(&response.content) {
        match content {
            Part::Text(text) => cut(&text.text, pieces).for_each(|text| deltas.send(ModelDelta::Text { part, text })),
            Part::Reasoning(reasoning) => {
                cut(reasoning.text(), pieces).for_each(|text| deltas.send(ModelDelta::Reasoning { part, text }));
            }
            Part::ToolCall(call) => {
                deltas.send(ModelDelta::ToolCall { part, id: call.tool_call_id.as_str(), name: &call.tool_name });
                let json = call.input.to_string();
                cut(&json, pieces).for_each(|json| deltas.send(ModelDelta::Arguments { part, json }));
            }
            _ => {}
        }
    }
}

/// Cuts `text` into `pieces` pieces of about the same length, of at least one character each.
fn cut(text: &str, pieces: NonZeroU32) -> impl Iterator<Item = &str> {
    let pieces = pieces.get() as usize;
    let mut start = 0;
    (1..=pieces).filter_map(move |piece| {
        let end = text.ceil_char_boundary(text.len() * piece / pieces);
        let cut = &text[start..end.max(start)];
        start = end.max(start);
        (!cut.is_empty()).then_some(cut)
    })
}

fn newest_input(request: &ModelRequest<'_>) -> String {
    let inputs = request.messages().filter(|message| matches!(message.role, Role::User | Role::Tool));
    inputs.last().map(|message| message.content.text().into_owned()).unwrap_or_default()
}
