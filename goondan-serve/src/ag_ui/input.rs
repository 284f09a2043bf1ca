//! The body of a request of AG-UI. Of the history that front ends send, the newest message alone is read: goondan has
//! its own.

use std::collections::HashSet;

use axum::http::StatusCode;
use goondan_core::{AgentEvent, FilePart, Part, TextPart, ToolCallId};
use goondan_wire::Deciding;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::problem::{Problem, Result};

/// A run of AG-UI, as its clients send it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunInput {
    /// The thread, which is a conversation.
    pub(super) thread_id: String,
    pub(super) run_id: String,
    #[serde(default)]
    messages: Vec<Value>,
    #[serde(default)]
    tools: Vec<Value>,
    #[serde(default)]
    resume: Vec<Resume>,
}

#[derive(Debug, Deserialize)]
struct Message {
    role: String,
    #[serde(default)]
    content: Value,
}

/// The answer to an interrupt, which is a call that waits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Resume {
    #[schemars(with = "String")]
    interrupt_id: ToolCallId,
    status: Status,
    #[serde(default)]
    payload: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Status {
    Resolved,
    Cancelled,
}

/// The work that a request asks for.
pub(super) enum Asked {
    Input(Box<AgentEvent>),
    /// To go on with the turn that waits; the front end has been told of these calls.
    Decisions {
        decisions: Vec<Deciding>,
        calls: HashSet<ToolCallId>,
    },
}

impl RunInput {
    /// Returns the messages of the thread, as the front end has sent them.
    pub(super) fn into_history(self) -> Vec<Value> {
        self.messages
    }

    pub(super) fn asked(&self) -> Result<Asked> {
        if !self.tools.is_empty() {
            let message = "tools of the front end are not called: leave `tools` empty";
            return Err(Problem::body(StatusCode::UNPROCESSABLE_ENTITY, message));
        }
        if !self.resume.is_empty() {
            let decisions = self.resume.iter().map(Resume::decision).collect::<Result<_>>()?;
            let calls = self.messages.iter().filter_map(|message| message["toolCalls"].as_array()).flatten();
            let calls = calls.filter_map(|call| Some(call["id"].as_str()?.into()));
            return Ok(Asked::Decisions { decisions, calls: calls.collect() });
        }
        let newest = self.messages.last().ok_or_else(|| Problem::request("there are no messages"))?;
        let newest = Message::deserialize(newest)
            .map_err(|error| Problem::request(format!("the newest message cannot be read: {error}")))?;
        match newest.role.as_str() {
            "user" => Ok(Asked::Input(Box::new(newest.event()?))),
            role => Err(Problem::request(format!("the newest message has the role `{role}`"))),
        }
    }
}

impl Message {
    fn event(&self) -> Result<AgentEvent> {
        if let Some(text) = self.content.as_str() {
            return Ok(AgentEvent::input(text));
        }
        let parts: Option<Vec<Part>> = self.content.as_array().map(|parts| parts.iter().filter_map(part).collect());
        match parts {
            Some(parts) if !parts.is_empty() => Ok(AgentEvent::content(parts)),
            _ => Err(Problem::request("the newest message has no text and no file")),
        }
    }
}

/// Returns a part of a message; `None` for one that goondan makes nothing of.
fn part(part: &Value) -> Option<Part> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if part["type"] == "text" {
        return Some(TextPart::new(text(&part["text"])?).into());
    }
    let source = &part["source"];
    let (media_type, value) = (text(&source["mimeType"])?, text(&source["value"])?);
    let url = match source["type"].as_str()? {
        "data" => format!("data:{media_type};base64,{value}"),
        "url" => value,
        _ => return None,
    };
    Some(FilePart::new(media_type, url).into())
}

impl Resume {
    /// `false`, and what has `approved: false`, say no; `true`, nothing, and `approved: true` say yes. Another payload
    /// is the value that the question expects.
    fn decision(&self) -> Result<Deciding> {
        let Self { interrupt_id, status, payload } = self;
        let approved = payload.get("approved").unwrap_or(payload);
        let reason = payload.get("reason").and_then(Value::as_str).unwrap_or("the person said no");
        let decision = match approved {
            _ if *status == Status::Cancelled => json!({ "call": interrupt_id, "reject": reason }),
            Value::Bool(false) => json!({ "call": interrupt_id, "reject": reason }),
            Value::Bool(true) | Value::Null => json!({ "call": interrupt_id }),
            _ => json!({ "call": interrupt_id, "value": payload }),
        };
        serde_json::from_value(decision).map_err(|error| Problem::request(format!("an entry of `resume`: {error}")))
    }
}
