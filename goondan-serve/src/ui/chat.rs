//! The body of a request of AI SDK UI. Of the history that pages send, the newest message alone is read: goondan has
//! its own.

use std::collections::HashSet;

use goondan_core::{AgentEvent, FilePart, Part, TextPart, ToolCallId};
use goondan_wire::Deciding;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::problem::{Problem, Result};

/// A request of AI SDK UI, as its pages send it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Chat {
    /// The chat, which is a conversation.
    pub(super) id: String,
    messages: Vec<Message>,
    #[serde(default)]
    trigger: Trigger,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
enum Trigger {
    #[default]
    SubmitMessage,
    RegenerateMessage,
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
struct Message {
    id: String,
    role: String,
    #[serde(default)]
    parts: Vec<UiPart>,
}

/// A part of a message of a page. Those that goondan makes nothing of are skipped.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct UiPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    media_type: Option<String>,
    url: Option<String>,
    filename: Option<String>,
    state: Option<String>,
    #[schemars(with = "Option<String>")]
    tool_call_id: Option<ToolCallId>,
    approval: Option<Approval>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(inline)]
struct Approval {
    approved: Option<bool>,
    reason: Option<String>,
}

/// The work that a request asks for.
pub(super) enum Asked<'b> {
    /// A turn, for the message of this id; another one if `again`.
    Input { event: Box<AgentEvent>, message: &'b str, again: bool },
    /// To go on with the turn that waits, in a message that has these calls.
    Decisions { decisions: Vec<Deciding>, calls: HashSet<ToolCallId> },
}

impl Chat {
    pub(super) fn asked(&self) -> Result<Asked<'_>> {
        let again = self.trigger == Trigger::RegenerateMessage;
        // Pages leave out the answer that is to be made again; later messages are of no account.
        let is_asked = |message: &&Message| !again || message.role == "user";
        let newest = self.messages.iter().rev().find(is_asked);
        let newest = newest.ok_or_else(|| Problem::request("there are no messages"))?;
        match newest.role.as_str() {
            "user" => Ok(Asked::Input { event: Box::new(newest.event()?), message: &newest.id, again }),
            "assistant" => {
                let decisions: Vec<_> = newest.parts.iter().filter_map(UiPart::decision).collect();
                match decisions.is_empty() {
                    true => Err(Problem::request("the newest message is an answer without approvals")),
                    false => {
                        let calls = newest.parts.iter().filter_map(|part| part.tool_call_id.clone()).collect();
                        Ok(Asked::Decisions { decisions, calls })
                    }
                }
            }
            role => Err(Problem::request(format!("the newest message has the role `{role}`"))),
        }
    }
}

impl Message {
    fn event(&self) -> Result<AgentEvent> {
        let parts: Vec<Part> = self.parts.iter().filter_map(UiPart::content).collect();
        match &parts[..] {
            [] => Err(Problem::request("the newest message has no text and no file")),
            [Part::Text(text)] => Ok(AgentEvent::input(text.text.clone())),
            _ => Ok(AgentEvent::content(parts)),
        }
    }
}

impl UiPart {
    fn content(&self) -> Option<Part> {
        match self.kind.as_str() {
            "text" => self.text.as_ref().map(|text| TextPart::new(text.clone()).into()),
            "file" => {
                let file = FilePart::new(self.media_type.clone()?, self.url.clone()?);
                Some(match &self.filename {
                    Some(name) => file.named(name).into(),
                    None => file.into(),
                })
            }
            _ => None,
        }
    }

    fn decision(&self) -> Option<Deciding> {
        let is_tool = self.kind == "dynamic-tool" || self.kind.starts_with("tool-");
        let approval =
            self.approval.as_ref().filter(|_| self.state.as_deref() == Some("approval-responded") && is_tool)?;
        let reason = approval.reason.clone().unwrap_or_else(|| "the person said no".to_owned());
        let reject = (!approval.approved?).then_some(reason);
        let decision = json!({ "call": self.tool_call_id.as_ref()?, "reject": reject });
        serde_json::from_value(decision).ok()
    }
}
