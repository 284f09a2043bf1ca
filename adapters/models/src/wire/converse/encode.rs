//! Requests of Converse.

use std::borrow::Cow;

use goondan_core::{
    FilePart, MessageData, Part, Result, Role, ToolCallPart, ToolChoice, ToolItem, ToolOutput, ToolResultPart,
};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Maker;
use super::blocks::{Block, Kind};
use super::files::{File, Names};
use super::options;
use crate::wire::alternating::{ASSISTANT, Alternating, OMITTED, USER};
use crate::wire::anthropic::options::{Thinking, thinking};
use crate::wire::legal::{is_word, replaced_id, substitute, word};
use crate::wire::tool::{Schema, Tool};
use crate::wire::{Encoding, Settings};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(flatten)]
    settings: Settings,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    #[serde(skip_serializing_if = "Content::is_empty")]
    system: Content<'a>,
    messages: Messages<'a>,
}

/// The longest id or name.
const LONGEST: usize = 64;

/// Writes the body of a request.
pub(super) fn encode(request: &Encoding<'_>) -> Result<Vec<u8>> {
    let (model, options) = (request.model(), request.options());
    let is_anthropic = Maker::of(model) == Maker::Anthropic;
    let mut thinking = if is_anthropic { thinking(model, options) } else { Thinking::Unsaid };
    let of_provider = options.provider.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
    let with_tools = options.tool_choice != Some(ToolChoice::None) && (of_provider || request.tools().next().is_some());
    let writer = |with_reasoning| Writer { request, with_tools, with_reasoning, names: Names::default() };
    let (mut system, mut messages) = writer(request.with_reasoning() && thinking != Thinking::Off).conversation();
    let is_forced = matches!(options.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
    let began_with_thinking = messages.turn_began(Block::is_result, Block::is_thinking);
    if matches!(thinking, Thinking::Budget(_)) && (is_forced || !request.with_reasoning() || !began_with_thinking) {
        // As over the interface of Anthropic: a turn reasons from its beginning, or not at all.
        thinking = Thinking::Off;
        (system, messages) = writer(false).conversation();
    }
    let (settings, of_provider) = options::settings(request, thinking)?;
    let mark = options::cache_mark(model, options);
    if mark.is_some() {
        if let Some(block) = system.last_mut() {
            block.is_marked = true;
        }
        for end in messages.ends() {
            // A mark after reasoning is refused.
            if let Some(block) = messages.blocks.get_mut(end).filter(|block| !block.is_thinking()) {
                block.is_marked = true;
            }
        }
    }
    let mark = mark.as_ref();
    let tool_config = with_tools.then(|| -> Result<_> {
        let mut tools: Vec<_> = of_provider.iter().map(Tool::Provider).collect();
        tools.extend(request.tools().map(|tool| Tool::Step(Item::ToolSpec(Function::new(tool)))));
        // The tools are in front of the instructions, and kept with them.
        tools.extend(mark.filter(|_| system.is_empty() && is_anthropic).map(|mark| Tool::Step(Item::CachePoint(mark))));
        Ok(ToolConfig { tools, tool_choice: options::tool_choice(request, with_tools)? })
    });
    let tool_config = tool_config.transpose()?;
    if tool_config.is_none() {
        options::tool_choice(request, false)?;
    }
    let system = Content { blocks: &system, mark };
    let messages = Messages { messages: &messages, mark };
    Ok(serde_json::to_vec(&Body { settings, tool_config, system, messages })?)
}

/// Turns messages into blocks.
struct Writer<'a> {
    request: &'a Encoding<'a>,
    /// Whether the request has tools. Without any, Converse refuses calls and results, which then are texts.
    with_tools: bool,
    with_reasoning: bool,
    names: Names,
}

impl<'a> Writer<'a> {
    /// Returns the instructions and the messages, whose roles alternate.
    fn conversation(mut self) -> (Vec<Block<'a>>, Alternating<Block<'a>>) {
        let mut system: Vec<_> = self.request.system().map(Block::text).into_iter().collect();
        let mut messages = Alternating::default();
        messages.blocks.reserve(self.request.messages().len() * 3 / 2);
        for message in self.request.messages() {
            let start = messages.blocks.len();
            match message.role {
                Role::System if start == 0 => self.add(message, &mut system),
                role => {
                    self.add(message, &mut messages.blocks);
                    if role == Role::System {
                        messages.blocks[start..].iter_mut().for_each(mark_as_system);
                    }
                    messages
                        .added(if role == Role::Assistant { ASSISTANT } else { USER }, start, || Block::text(OMITTED));
                }
            }
        }
        messages.put_results_first(Block::is_result);
        (system, messages)
    }

    /// Adds the blocks of a message.
    fn add(&mut self, message: &'a MessageData, blocks: &mut Vec<Block<'a>>) {
        let start = blocks.len();
        for part in message.content.parts() {
            self.add_part(message.role, part, blocks);
        }
        let of_message = &blocks[start..];
        let document = of_message.iter().find_map(|block| match &block.kind {
            Kind::File(file) => file.document(),
            _ => None,
        });
        let has_text = of_message.iter().any(|block| matches!(block.kind, Kind::Text(_)));
        if let Some(name) = document.filter(|_| !has_text) {
            // Converse refuses a document without a text beside it.
            let text = format!("[The document `{name}`.]");
            blocks.push(Block::text(text));
        }
    }

    fn add_part(&mut self, role: Role, part: &'a Part, blocks: &mut Vec<Block<'a>>) {
        let kind = match part {
            // Blank texts are refused.
            Part::Text(text) if is_blank(&text.text) => return,
            Part::Text(text) => match self.request.rest(part).and_then(|rest| rest.get("citations")) {
                Some(citations) => Kind::Cited(&text.text, citations),
                None => Kind::Text((&*text.text).into()),
            },
            Part::Reasoning(reasoning) => {
                let data = reasoning.provider().filter(|data| self.with_reasoning && self.request.replays(data));
                let Some(rest) = data.map(|data| data.rest()) else { return };
                match (rest.get("redactedContent"), rest.get("signature")) {
                    (Some(redacted), _) => Kind::Redacted(redacted),
                    (None, Some(signature)) => Kind::Thinking(reasoning.text(), signature),
                    // Without its signature, it would be refused.
                    (None, None) => return,
                }
            }
            Part::File(file) if role == Role::Assistant => Kind::Text(substitute(file).into()),
            Part::File(file) => self.file(file),
            Part::ToolCall(call) if self.with_tools => {
                let (id, name) = (legal_id(call.tool_call_id.as_str()), word(&call.tool_name, LONGEST));
                Kind::ToolUse { id, name, input: &call.input }
            }
            Part::ToolCall(call) => Kind::Text(text_of_call(call).into()),
            Part::ToolResult(result) if self.with_tools => {
                let id = legal_id(result.tool_call_id.as_str());
                let has_status = matches!(Maker::of(self.request.model()), Maker::Anthropic | Maker::Amazon);
                let is_error = Some(true).filter(|_| has_status && result.is_error);
                Kind::ToolResult { id, content: self.output(&result.output), is_error }
            }
            Part::ToolResult(result) => {
                blocks.push(Block::text(text_before_result(result)));
                blocks.extend(self.output(&result.output).into_iter().map(Block::new));
                return;
            }
            Part::Provider(block) if self.request.replays(block.provider()) => Kind::Whole(block.provider().rest()),
            _ => return,
        };
        blocks.push(Block::new(kind));
    }

    /// Returns a file, or a text that names it if Converse cannot read such files.
    fn file(&mut self, file: &'a FilePart) -> Kind<'a> {
        match File::new(file, &mut self.names) {
            Some(readable) => Kind::File(readable),
            None => Kind::Text(substitute(file).into()),
        }
    }

    /// Returns the content of a result, which has something in it.
    fn output(&mut self, output: &'a ToolOutput) -> Vec<Kind<'a>> {
        let mut content: Vec<_> = match output {
            ToolOutput::Text(text) => vec![Kind::Text(text.into())],
            ToolOutput::Json(value) => vec![Kind::Text(value.to_string().into())],
            ToolOutput::Content(parts) => {
                let kinds = parts.iter().filter_map(|part| match part {
                    Part::Text(part) => Some(Kind::Text((&*part.text).into())),
                    Part::File(file) => Some(self.file(file)),
                    _ => None,
                });
                kinds.collect()
            }
            other => vec![Kind::Text(other.to_text().into_owned().into())],
        };
        content.retain(|kind| !matches!(kind, Kind::Text(text) if is_blank(text)));
        if content.is_empty() {
            content.push(Kind::Text("[The result is empty.]".into()));
        }
        content
    }
}

/// Marks a text as instructions: not all models know that role in the middle of a conversation.
fn mark_as_system(block: &mut Block<'_>) {
    if let Kind::Text(text) = &mut block.kind {
        *text = format!("<system>\n{text}\n</system>").into();
    }
}

fn text_of_call(call: &ToolCallPart) -> String {
    format!("[Call of the tool `{}` with {}]", call.tool_name, call.input)
}

fn text_before_result(result: &ToolResultPart) -> String {
    let what = if result.is_error { "Error" } else { "Result" };
    format!("[{what} of the tool `{}`:]", result.tool_name)
}

fn is_blank(text: &str) -> bool {
    text.chars().all(char::is_whitespace)
}

/// Returns the id of a call as Converse takes it. Another provider may have made it.
fn legal_id(id: &str) -> Cow<'_, str> {
    if is_word(id, LONGEST) { id.into() } else { replaced_id(id).into() }
}

/// Blocks, with marks of the cache between them.
struct Content<'a> {
    blocks: &'a [Block<'a>],
    mark: Option<&'a Value>,
}

impl Content<'_> {
    fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut blocks = serializer.serialize_seq(None)?;
        for block in self.blocks {
            blocks.serialize_element(&block.kind)?;
            if let Some(mark) = self.mark.filter(|_| block.is_marked) {
                blocks.serialize_element(&Item::CachePoint(mark))?;
            }
        }
        blocks.end()
    }
}

struct Messages<'a> {
    messages: &'a Alternating<Block<'a>>,
    mark: Option<&'a Value>,
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Message<'a> {
            role: &'static str,
            content: Content<'a>,
        }

        let message = |(role, blocks)| Message { role, content: Content { blocks, mark: self.mark } };
        serializer.collect_seq(self.messages.iter().map(message))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    tools: Vec<Tool<'a, Item<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
}

/// An item of a list: a tool of the step, or a mark of the cache.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Item<'a> {
    ToolSpec(Function<'a>),
    CachePoint(&'a Value),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: InputSchema<'a>,
}

#[derive(Serialize)]
struct InputSchema<'a> {
    json: Schema<'a>,
}

impl<'a> Function<'a> {
    fn new(item: &'a ToolItem) -> Self {
        Self {
            name: item.name.as_str(),
            // An empty one is refused.
            description: item.description.as_deref().filter(|description| !description.is_empty()),
            input_schema: InputSchema { json: Schema::of(item).with_properties() },
        }
    }
}
