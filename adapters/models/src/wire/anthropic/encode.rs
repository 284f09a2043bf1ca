//! Requests of Anthropic.

use std::borrow::Cow;

use goondan_core::{MessageData, Part, Result, Role, ToolChoice, ToolItem};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::blocks::{Block, Kind};
use super::options::{self, Thinking};
use crate::wire::alternating::{ASSISTANT, Alternating, OMITTED, USER};
use crate::wire::legal::{is_word, replaced_id, substitute, word};
use crate::wire::tool::{Schema, Tool};
use crate::wire::{Encoding, Settings};

#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    settings: Settings,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a, Function<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: &'a Messages<'a>,
}

/// Writes the body of a request.
pub(super) fn encode(request: &Encoding<'_>) -> Result<Vec<u8>> {
    let mut thinking = options::thinking(request.model(), request.options());
    let (mut system, mut messages) = conversation(request, request.with_reasoning() && thinking != Thinking::Off);
    let is_forced = matches!(request.options().tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    let may_think =
        request.with_reasoning() && !is_forced && messages.0.turn_began(Block::is_result, Block::is_thinking);
    if matches!(thinking, Thinking::Budget(_)) && !may_think {
        // A forced call has no reasoning before it. In other cases, another model began the turn, or its reasoning is
        // gone: Anthropic refuses to begin in the middle of a turn, and to read reasoning in a turn without it.
        thinking = Thinking::Off;
        (system, messages) = conversation(request, false);
    }
    let container = request.note("container").filter(|_| request.with_container()).and_then(|note| note.get("id"));
    let (settings, provider_tools) = options::settings(request, thinking, container)?;
    let mut tools: Vec<_> = provider_tools.iter().map(Tool::Provider).collect();
    tools.extend(request.tools().map(|item| Tool::Step(Function::new(request, item))));
    let mark = options::cache_mark(request.options());
    if let Some(mark) = &mark {
        // Three of the four places that a request may have. The tools are in front of the instructions.
        match (system.last_mut(), tools.last_mut()) {
            (Some(block), _) => block.cache = Some(mark),
            (None, Some(Tool::Step(function))) => function.cache_control = Some(mark),
            (None, _) => {}
        }
        for end in messages.0.ends() {
            if let Some(block) = messages.0.blocks.get_mut(end).filter(|block| !block.is_thinking()) {
                block.cache = Some(mark);
            }
        }
    }
    Ok(serde_json::to_vec(&Body { settings, tools, system, messages: &messages })?)
}

/// Returns the instructions and the messages, whose roles alternate.
fn conversation<'a>(request: &'a Encoding<'_>, with_reasoning: bool) -> (Vec<Block<'a>>, Messages<'a>) {
    let mut system: Vec<_> = request.system().map(Block::text).into_iter().collect();
    let mut messages = Alternating::default();
    // Most messages have one block, or a text and a call.
    messages.blocks.reserve(request.messages().len() * 3 / 2);
    for message in request.messages() {
        let start = messages.blocks.len();
        match message.role {
            Role::System if start == 0 => add(request, message, with_reasoning, &mut system),
            role => {
                add(request, message, with_reasoning, &mut messages.blocks);
                if role == Role::System {
                    messages.blocks[start..].iter_mut().for_each(mark_as_system);
                }
                messages.added(if role == Role::Assistant { ASSISTANT } else { USER }, start, || Block::text(OMITTED));
            }
        }
    }
    messages.put_results_first(Block::is_result);
    (system, Messages(messages))
}

struct Messages<'a>(Alternating<Block<'a>>);

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: &'a [Block<'a>],
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(role, content)| Message { role, content }))
    }
}

/// Adds the blocks of a message.
fn add<'a>(request: &'a Encoding<'_>, message: &'a MessageData, with_reasoning: bool, blocks: &mut Vec<Block<'a>>) {
    let parts = message.content.parts().iter();
    let sent = parts.filter(|part| with_reasoning || !matches!(part, Part::Reasoning(_)));
    blocks.extend(sent.filter_map(|part| block(request, message.role, part)));
}

/// Marks a text as instructions: not all models know that role in the middle of a conversation.
fn mark_as_system(block: &mut Block<'_>) {
    if let Kind::Text(text) = &mut block.kind {
        *text = format!("<system>\n{text}\n</system>").into();
    }
}

/// Returns the block of a part, unless there is nothing to send.
fn block<'a>(request: &'a Encoding<'_>, role: Role, part: &'a Part) -> Option<Block<'a>> {
    Some(match part {
        // Anthropic refuses blank texts.
        Part::Text(text) if is_blank(&text.text) => return None,
        Part::Text(text) => Block::new(Kind::Text((&*text.text).into()), request.rest(part)),
        Part::Reasoning(reasoning) => {
            let data = reasoning.provider().filter(|data| request.replays(data))?;
            let text = |name| data.rest().get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            match (text("type"), text("signature")) {
                (true, _) => Block::new(Kind::Whole, Some(data.rest())),
                (false, true) => Block::new(Kind::Thinking(reasoning.text()), Some(data.rest())),
                // Without its signature, it would be refused.
                (false, false) => return None,
            }
        }
        Part::File(file) if role == Role::Assistant => Block::text(substitute(file)),
        Part::File(file) => Block::file(file),
        Part::ToolCall(call) => {
            let name = request.provider_name(call, part).unwrap_or(&call.tool_name);
            let (id, name) = (legal_id(call.tool_call_id.as_str()), word(name, LONGEST));
            Block::new(Kind::ToolUse { id, name, input: &call.input }, request.rest(part))
        }
        Part::ToolResult(result) => {
            let id = legal_id(result.tool_call_id.as_str());
            Block::new(Kind::ToolResult { id, output: &result.output, is_error: result.is_error }, None)
        }
        Part::Provider(block) if request.replays(block.provider()) => {
            Block::new(Kind::Whole, Some(block.provider().rest()))
        }
        _ => return None,
    })
}

fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

/// The longest id or name.
const LONGEST: usize = 128;

/// Returns the id of a call as Anthropic takes it. Another provider may have made it.
fn legal_id(id: &str) -> Cow<'_, str> {
    if is_word(id, LONGEST) { id.into() } else { replaced_id(id).into() }
}

/// A tool of the step: a function, or a tool that Anthropic defines.
#[derive(Serialize)]
struct Function<'a> {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Schema<'a>>,
    #[serde(flatten)]
    members: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<&'a Value>,
}

impl<'a> Function<'a> {
    fn new(request: &Encoding<'a>, item: &'a ToolItem) -> Self {
        if let Some(tool) = request.provider_tool(item.name.as_str()) {
            let (kind, name, members) = (Some(&*tool.kind), &*tool.name, Some(&tool.members));
            return Self { kind, name, description: None, input_schema: None, members, cache_control: None };
        }
        let (name, description) = (item.name.as_str(), item.description.as_deref());
        let input_schema = Some(Schema::of(item));
        Self { kind: None, name, description, input_schema, members: None, cache_control: None }
    }
}
