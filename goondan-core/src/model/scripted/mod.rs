//! Owns the scripted model: it plays prepared answers, without key or network, the same every time.

mod when;

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::when::When;
use super::{Model, ModelRequest, ModelResponse};
use crate::BoxFuture;
use crate::conversation::{MessageData, Role};
use crate::error::{Error, ErrorCode, Result};
use crate::name::ToolCallId;
use crate::pipeline::ToolRequest;
use crate::secret::mask;
use crate::tool::ToolItem;

/// Plays a list of prepared answers.
///
/// Each request is answered by the first unused item that fits: one without `when`, or one whose `when` matches the newest
/// text of a user or a tool. An item with `repeat` is never used up.
#[derive(Debug)]
pub struct ScriptedModel {
    script: Mutex<Vec<Option<ScriptItem>>>,
    record: Option<Record>,
}

/// One prepared answer.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(try_from = "ItemFields")]
pub struct ScriptItem {
    action: Action,
    when: Option<When>,
    repeat: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Respond(ModelResponse),
    Calls(Vec<ScriptedCall>),
    Fail(ScriptedFailure),
}

/// The fields of an item as they stand in a script.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemFields {
    say: Option<String>,
    call: Option<ScriptedCall>,
    calls: Option<Vec<ScriptedCall>>,
    fail: Option<ScriptedFailure>,
    raw: Option<ModelResponse>,
    when: Option<String>,
    #[serde(default)]
    repeat: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    tool: String,
    /// Anything, so that a script can play a model that does not keep to the contract; no arguments if it is left out.
    #[serde(default = "no_args")]
    args: Value,
}

fn no_args() -> Value {
    Value::Object(Map::new())
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct ScriptedFailure {
    message: String,
    #[serde(default)]
    retryable: bool,
}

impl TryFrom<ItemFields> for ScriptItem {
    type Error = String;

    fn try_from(fields: ItemFields) -> Result<Self, String> {
        let actions = [
            fields.say.map(|text| Action::Respond(ModelResponse::text(text))),
            fields.call.map(|call| Action::Calls(vec![call])),
            fields.calls.map(Action::Calls),
            fields.fail.map(Action::Fail),
            fields.raw.map(Action::Respond),
        ];
        let mut actions = actions.into_iter().flatten();
        let (Some(action), None) = (actions.next(), actions.next()) else {
            return Err("an item has exactly one of `say`, `call`, `calls`, `fail` and `raw`".to_owned());
        };
        let when = fields.when.map(When::new).transpose();
        let when = when.map_err(|error| format!("`when` is not a regular expression: {error}"))?;
        Ok(Self { action, when, repeat: fields.repeat })
    }
}

impl ScriptItem {
    fn new(action: Action) -> Self {
        Self { action, when: None, repeat: false }
    }

    /// Answers in text.
    pub fn say(text: impl Into<String>) -> Self {
        Self::new(Action::Respond(ModelResponse::text(text)))
    }

    /// Calls one tool with `args`, a JSON object.
    pub fn call(tool: impl Into<String>, args: impl Into<Value>) -> Self {
        Self::calls([(tool, args)])
    }

    /// Calls several tools.
    pub fn calls<T: Into<String>, A: Into<Value>>(calls: impl IntoIterator<Item = (T, A)>) -> Self {
        let calls = calls.into_iter().map(|(tool, args)| ScriptedCall { tool: tool.into(), args: args.into() });
        Self::new(Action::Calls(calls.collect()))
    }

    /// Fails.
    pub fn fail(message: impl Into<String>, retryable: bool) -> Self {
        Self::new(Action::Fail(ScriptedFailure { message: message.into(), retryable }))
    }

    /// Answers with `response` as it is, legal or not.
    pub fn raw(response: ModelResponse) -> Self {
        Self::new(Action::Respond(response))
    }

    /// The same item for requests whose newest user or tool text `pattern` matches.
    ///
    /// # Errors
    /// `E_MODEL_SCRIPT` when `pattern` is not a regular expression.
    pub fn when(mut self, pattern: &str) -> Result<Self> {
        let when = When::new(pattern.to_owned()).map_err(|error| {
            Error::new(ErrorCode::MODEL_SCRIPT, format!("`{pattern}` is not a regular expression")).caused_by(error)
        })?;
        self.when = Some(when);
        Ok(self)
    }

    /// The same item, never used up.
    #[must_use]
    pub fn repeat(mut self) -> Self {
        self.repeat = true;
        self
    }
}

impl ScriptedModel {
    /// A model that plays `script`.
    pub fn new(script: impl IntoIterator<Item = ScriptItem>) -> Self {
        Self { script: Mutex::new(script.into_iter().map(Some).collect()), record: None }
    }

    /// The same model, writing every request to `path`: one JSON object a line, added to what is there.
    #[must_use]
    pub fn record(mut self, path: impl Into<PathBuf>) -> Self {
        self.record = Some(Record { path: path.into(), file: Mutex::new(None) });
        self
    }

    fn answer(&self, request: &ModelRequest<'_>) -> Result<ModelResponse> {
        if let Some(record) = &self.record {
            record.write(request)?;
        }
        let heard = newest_input(request);
        match self.pick(&heard)? {
            Some(Action::Respond(response)) => Ok(response),
            Some(Action::Calls(calls)) => {
                let request =
                    |call: ScriptedCall| ToolRequest { id: ToolCallId::random(), name: call.tool, args: call.args };
                Ok(ModelResponse { tool_calls: calls.into_iter().map(request).collect(), ..ModelResponse::default() })
            }
            Some(Action::Fail(failure)) => {
                Err(Error::new(ErrorCode::MODEL, failure.message).retryable(failure.retryable))
            }
            None => Err(Error::new(ErrorCode::MODEL_SCRIPT, format!("no unused item of the script answers {heard:?}"))
                .suggest("add an item, or set `repeat: true` on the last one")),
        }
    }

    fn pick(&self, heard: &str) -> Result<Option<Action>> {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        for slot in script.iter_mut() {
            let Some(item) = slot else { continue };
            if item.when.as_ref().map_or(Ok(true), |when| when.fits(heard))? {
                let again = item.repeat.then(|| item.action.clone());
                return Ok(again.or_else(|| slot.take().map(|item| item.action)));
            }
        }
        Ok(None)
    }
}

impl Model for ScriptedModel {
    fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(std::future::ready(self.answer(&request)))
    }
}

fn newest_input(request: &ModelRequest<'_>) -> String {
    let spoken = request.messages().filter(|message| matches!(message.role, Role::User | Role::Tool));
    spoken.last().map(|message| message.content.text().into_owned()).unwrap_or_default()
}

/// The file that requests are written to; opened by the first one.
#[derive(Debug)]
struct Record {
    path: PathBuf,
    file: Mutex<Option<File>>,
}

/// A request as it is recorded: without secrets.
#[derive(Serialize)]
struct RecordedRequest<'a> {
    system: Option<Cow<'a, str>>,
    messages: Vec<Cow<'a, MessageData>>,
    tools: Vec<Cow<'a, ToolItem>>,
}

fn without_secrets(message: Cow<'_, MessageData>) -> Cow<'_, MessageData> {
    let masked = match message.content.masked() {
        Cow::Owned(content) => MessageData { role: message.role, content },
        Cow::Borrowed(_) => return message,
    };
    Cow::Owned(masked)
}

impl Record {
    fn write(&self, request: &ModelRequest<'_>) -> Result<()> {
        let recorded = RecordedRequest {
            system: request.system().map(mask),
            messages: request.messages().map(without_secrets).collect(),
            tools: request.tools().map(ToolItem::masked).collect(),
        };
        let mut line = serde_json::to_vec(&recorded)?;
        line.push(b'\n');
        self.append(&line).map_err(|error| {
            Error::new(ErrorCode::MODEL_SCRIPT, format!("cannot record requests in {}", self.path.display()))
                .suggest("check that the directory exists and can be written, or take `record` out of the model")
                .caused_by(error)
        })
    }

    fn append(&self, line: &[u8]) -> std::io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *file {
            Some(file) => file,
            closed => closed.insert(OpenOptions::new().create(true).append(true).open(&self.path)?),
        };
        file.write_all(line)
    }
}
