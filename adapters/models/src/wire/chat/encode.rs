//! Requests of chat completions.

use std::borrow::Cow;
use std::collections::HashMap;

use goondan_core::{MessageData, Part, Result, Role, ToolCallPart, ToolOutput, ToolResultPart};
use serde::Serialize;
use serde_json::{Map, Value};

use super::dialect::{Dialect, Replay};
use super::message::{Block, Call, Message, Reasoning, Tool};
use super::options;
use crate::wire::legal::{digits, replaced_id, substitute, word};
use crate::wire::{Encoding, Settings};

#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    settings: Settings,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

const USER: &str = "user";
const ASSISTANT: &str = "assistant";
const SYSTEM: &str = "system";
const TOOL: &str = "tool";

/// Writes the body of a request.
pub(super) fn encode(dialect: &Dialect, request: &Encoding<'_>) -> Result<Vec<u8>> {
    let (settings, provider_tools) = options::settings(dialect, request)?;
    let mut tools: Vec<_> = provider_tools.iter().map(Tool::Provider).collect();
    tools.extend(request.all_tools().map(Tool::Step));
    let mut conversation =
        Conversation { dialect, request, messages: Vec::new(), files: Vec::new(), ids: HashMap::new() };
    if let Some(system) = request.system() {
        conversation.add(Message { content: vec![Block::Text(system.into())], ..Message::new(SYSTEM) });
    }
    let turn_start = request.turn_start();
    for (index, message) in request.messages().iter().enumerate() {
        conversation.add_message(message, index >= turn_start);
    }
    conversation.finish();
    Ok(serde_json::to_vec(&Body { settings, messages: conversation.messages, tools })?)
}

/// The messages of a request as they are built.
struct Conversation<'a, 'r> {
    dialect: &'a Dialect,
    request: &'a Encoding<'r>,
    messages: Vec<Message<'a>>,
    /// The files of the newest results. Results are texts, so files follow in a message of the user.
    files: Vec<Block<'a>>,
    /// The ids of calls that the provider knows by another one.
    ids: HashMap<&'a str, &'a str>,
}

impl<'a> Conversation<'a, '_> {
    /// Adds a message of the conversation.
    fn add_message(&mut self, message: &'a MessageData, in_turn: bool) {
        let mut said = Message::new(match message.role {
            Role::System => SYSTEM,
            Role::Assistant => ASSISTANT,
            _ => USER,
        });
        message.content.parts().iter().for_each(|part| self.add_part(&mut said, part, in_turn));
        said.needs_content = self.dialect.needs_content;
        said.needs_reasoning = self.dialect.replay == Replay::Required && self.request.with_reasoning();
        if !said.is_empty() {
            self.add_files();
            self.add(said);
        }
        for part in message.content.parts() {
            if let Part::ToolResult(result) = part {
                self.add_result(result);
            }
        }
    }

    fn add_part(&mut self, said: &mut Message<'a>, part: &'a Part, in_turn: bool) {
        let rest = self.rest(part);
        match part {
            Part::Text(text) if rest.and_then(|rest| rest.get("type")).is_some_and(|kind| kind == "refusal") => {
                said.refusal = Some(&text.text);
            }
            Part::Text(text) => {
                add_text(said, &text.text);
                said.rest = rest.filter(|_| self.dialect.unknown_members).or(said.rest);
            }
            Part::Reasoning(reasoning) if self.request.with_reasoning() && rest.is_some() => {
                let Some(reasoning) = Reasoning::new(reasoning) else { return };
                let replayed = match self.dialect.replay {
                    Replay::Always | Replay::Required => true,
                    Replay::Turn => in_turn,
                    Replay::Never => false,
                };
                match reasoning.kind {
                    _ if reasoning.is_detail() => said.reasoning.push(reasoning),
                    _ if !replayed => {}
                    "thinking" => said.content.push(Block::Thinking(reasoning)),
                    _ => said.reasoning.push(reasoning),
                }
            }
            Part::File(file) if said.role == USER => said.content.push(Block::File(file)),
            Part::File(file) => said.content.push(Block::Text(substitute(file).into())),
            Part::ToolCall(call) => {
                let call = self.call(call, rest, said);
                push(&mut said.calls, call);
            }
            Part::Provider(_) => said.content.extend(rest.map(Block::Whole)),
            _ => {}
        }
    }

    /// Returns the members of a part that go back beside its own. Many providers share the interface, so it must have
    /// been made by the same model.
    fn rest(&self, part: &'a Part) -> Option<&'a Map<String, Value>> {
        part.provider().filter(|data| self.request.replays(data)).map(|data| data.rest())
    }

    fn call(&mut self, call: &'a ToolCallPart, rest: Option<&'a Map<String, Value>>, said: &Message<'a>) -> Call<'a> {
        let own = call.tool_call_id.as_str();
        let known = rest.and_then(|rest| rest.get("id")).and_then(Value::as_str);
        // Two calls of one answer must differ.
        let id = match known.filter(|id| said.calls.iter().all(|other| other.id != *id)) {
            Some(known) => {
                self.ids.insert(own, known);
                known
            }
            None => own,
        };
        let rest = rest.filter(|_| self.dialect.unknown_members);
        Call { id: self.legal_id(id), name: word(&call.tool_name, 64), input: &call.input, rest }
    }

    fn add_result(&mut self, result: &'a ToolResultPart) {
        let own = result.tool_call_id.as_str();
        let id = self.legal_id(self.ids.get(own).copied().unwrap_or(own));
        let content = vec![Block::Text(result.output.to_text())];
        // Results follow their calls, also where another message came in between.
        let calls = |message: &Message<'_>| message.calls.iter().any(|call| call.id == id);
        let Some(answer) = self.messages.iter().rposition(calls) else { return };
        let results = self.messages[answer + 1..].iter().take_while(|message| message.role == TOOL).count();
        self.messages.insert(answer + 1 + results, Message { call_id: Some(id), content, ..Message::new(TOOL) });
        let ToolOutput::Content(parts) = &result.output else { return };
        let files = parts.iter().filter_map(|part| match part {
            Part::File(file) => Some(Block::File(file)),
            _ => None,
        });
        let mut files = files.peekable();
        if files.peek().is_some() {
            self.files.push(Block::Text(format!("[Files that the tool `{}` returned:]", result.tool_name).into()));
            self.files.extend(files);
        }
    }

    /// Adds the files of results, after all results of an answer.
    fn add_files(&mut self) {
        if !self.files.is_empty() {
            let content = std::mem::take(&mut self.files);
            self.add(Message { content, ..Message::new(USER) });
        }
    }

    /// Adds a message. Many servers want roles to alternate, so neighbours of one role become one message.
    fn add(&mut self, message: Message<'a>) {
        match self.messages.last_mut() {
            Some(last) if last.role == message.role && last.calls.is_empty() => last.extend(message),
            _ => self.messages.push(message),
        }
    }

    /// Adds the missing ones.
    fn finish(&mut self) {
        self.add_files();
        let note = |role, text: &'static str| Message { content: vec![Block::Text(text.into())], ..Message::new(role) };
        let first = self.messages.iter().position(|message| message.role != SYSTEM);
        if let Some(first) = first.filter(|first| self.messages[*first].role == ASSISTANT) {
            // Many servers want a user to begin.
            self.messages.insert(first, note(USER, "[The beginning of the conversation is left out.]"));
        }
        if self.dialect.answers_follow_tools {
            for message in std::mem::take(&mut self.messages) {
                let unanswered = self.messages.last().is_some_and(|last| last.role == TOOL);
                if unanswered && [SYSTEM, USER].contains(&message.role) {
                    self.messages.push(note(ASSISTANT, "[The answer is missing.]"));
                }
                self.messages.push(message);
            }
        }
    }

    /// Returns an id as the provider takes it. Another one may have made it.
    fn legal_id<'i>(&self, id: &'i str) -> Cow<'i, str> {
        let short = self.dialect.short_ids;
        let legal = if short { id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()) } else { id.len() <= 40 };
        if legal {
            return id.into();
        }
        if short { digits(id)[..9].to_owned().into() } else { replaced_id(id).into() }
    }
}

/// Adds a text, unless it is blank: some servers refuse that.
fn add_text<'a>(said: &mut Message<'a>, text: &'a str) {
    if !text.trim().is_empty() {
        push(&mut said.content, Block::Text(text.into()));
    }
}

/// Pushes an element. Most messages have one block and one call, and conversations are long, so the first element takes
/// no more memory than it needs.
fn push<T>(list: &mut Vec<T>, element: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(element);
}
