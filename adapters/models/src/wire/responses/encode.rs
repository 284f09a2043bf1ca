//! Requests of OpenAI.

use std::borrow::Cow;

use goondan_core::{FilePart, MessageData, Part, Result, Role, ToolItem};
use serde::Serialize;
use serde_json::{Map, Value};

use super::items::{Entry, Input, Item, Kind};
use super::provided::{self, Provided};
use super::{IMAGE, Listed, MESSAGE, REASONING, options};
use crate::wire::legal::{replaced_id, substitute, word};
use crate::wire::tool::{Schema, Tool};
use crate::wire::{Encoding, Settings};

#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    settings: Settings,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a, Offered<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: Vec<Item<'a>>,
}

/// Writes the body of a request.
pub(super) fn encode(request: &Encoding<'_>) -> Result<Vec<u8>> {
    let (settings, provider_tools) = options::settings(request)?;
    let mut tools: Vec<_> = provider_tools.iter().map(Tool::Provider).collect();
    tools.extend(request.all_tools().map(|item| Tool::Step(Offered::new(request, item))));
    let calls = provided_calls(request);
    let input = request.messages().iter().flat_map(|message| items(request, message, &calls)).collect();
    Ok(serde_json::to_vec(&Body { settings, tools, instructions: request.system(), input })?)
}

/// A call of a tool that OpenAI defines.
struct ProvidedCall<'a> {
    id: &'a str,
    provided: &'static Provided,
    input: &'a Value,
}

/// Returns the calls of tools that OpenAI defines: their outputs have other forms.
fn provided_calls<'a>(request: &'a Encoding<'_>) -> Vec<ProvidedCall<'a>> {
    let parts = request.messages().iter().flat_map(|message| message.content.parts());
    let call = |part: &'a Part| match part {
        Part::ToolCall(call) => {
            let provided = Provided::of_rest(request.rest(part))?;
            Some(ProvidedCall { id: call.tool_call_id.as_str(), provided, input: &call.input })
        }
        _ => None,
    };
    parts.filter_map(call).collect()
}

/// Returns the items of a message.
fn items<'a>(request: &'a Encoding<'_>, message: &'a MessageData, calls: &[ProvidedCall<'a>]) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    let parts = message.content.parts();
    if message.role == Role::Assistant {
        parts.iter().for_each(|part| push_answer(&mut items, request, part));
        settle(&mut items);
        return items;
    }
    for part in parts {
        match part {
            Part::Text(part) => push_input(&mut items, message.role, Input::text(&*part.text)),
            Part::File(file) => push_input(&mut items, message.role, Input::file(file)),
            Part::ToolResult(result) => {
                let id = legal_id(result.tool_call_id.as_str());
                let output = &result.output;
                let kind = match calls.iter().find(|call| call.id == result.tool_call_id.as_str()) {
                    Some(ProvidedCall { provided, input, .. }) => {
                        let output = provided::Output { provided, output, is_error: result.is_error, input };
                        Kind::ProvidedOutput { id, output }
                    }
                    None => Kind::Output { id, output },
                };
                items.push(Item::new(kind, None));
            }
            _ => {}
        }
    }
    items
}

/// Adds to a message to the model.
fn push_input<'a>(items: &mut Vec<Item<'a>>, role: Role, input: Input<'a>) {
    if matches!(&input, Input::Text { text } if text.trim().is_empty()) {
        return;
    }
    if let Some(Item { kind: Kind::Input { content, .. }, .. }) = items.last_mut() {
        content.push(input);
    } else {
        let role = if role == Role::System { "developer" } else { "user" };
        items.push(Item::new(Kind::Input { role, content: vec![input] }, None));
    }
}

/// Adds a part of an answer.
fn push_answer<'a>(items: &mut Vec<Item<'a>>, request: &'a Encoding<'_>, part: &'a Part) {
    let replays = part.provider().is_some_and(|data| request.replays(data));
    let rest = request.rest(part);
    match part {
        Part::Text(part) => {
            let Some(entry) = Entry::of(&MESSAGE, &part.text, rest) else { return push_text(items, &*part.text) };
            push(items, &MESSAGE, Some(entry), rest);
        }
        Part::File(file) => match image(file, rest).filter(|_| replays && request.with_reasoning()) {
            Some(result) => items.push(Item::new(Kind::Image { result }, rest)),
            None => return push_text(items, substitute(file)),
        },
        Part::ToolCall(call) => {
            let (id, name) = (legal_id(call.tool_call_id.as_str()), word(&call.tool_name, LONGEST));
            let input = &call.input;
            let kind = match Provided::of_rest(rest) {
                Some(provided) => Kind::ProvidedCall { id, provided, input },
                None => Kind::Call { id, name, input },
            };
            items.push(Item::new(kind, rest));
        }
        Part::Reasoning(part) if replays && request.with_reasoning() => {
            push(items, &REASONING, Entry::of(&REASONING, part.text(), rest), rest);
        }
        // An entry, or an item, of a type that is not known here.
        Part::Provider(_) if replays && request.with_reasoning() => {
            let kind = rest.and_then(|rest| rest.get("type")).and_then(Value::as_str);
            let listed = [&MESSAGE, &REASONING].into_iter().find(|listed| Some(listed.kind) == kind);
            match listed.and_then(|listed| Some((listed, Entry::of(listed, "", rest)?))) {
                Some((listed, entry)) => push(items, listed, Some(entry), rest),
                None => items.push(Item::new(Kind::Whole, rest)),
            }
        }
        _ => return,
    }
    if let Some(item) = items.last_mut() {
        // Texts and calls are bound to the reasoning before them by their ids.
        item.with_id &= replays && request.with_reasoning();
    }
}

/// Returns the content of an image that OpenAI made.
fn image<'a>(file: &'a FilePart, rest: Option<&Map<String, Value>>) -> Option<&'a str> {
    rest?.get("type").filter(|kind| *kind == IMAGE)?;
    file.url.split_once(";base64,").map(|(_, content)| content)
}

/// Adds a text that OpenAI did not make.
fn push_text<'a>(items: &mut Vec<Item<'a>>, text: impl Into<Cow<'a, str>>) {
    let text = text.into();
    if !text.trim().is_empty() {
        push(items, &MESSAGE, Some(Entry::text(text)), None);
    }
}

/// Adds an entry to the item with the id of the rest, or a new item.
fn push<'a>(
    items: &mut Vec<Item<'a>>,
    listed: &'static Listed,
    entry: Option<Entry<'a>>,
    rest: Option<&'a Map<String, Value>>,
) {
    let id = rest.and_then(|rest| rest.get("id"));
    if let Some(Item { kind: Kind::Listed { listed: last, entries }, rest: Some(of_last), .. }) = items.last_mut()
        && id.is_some()
        && last.kind == listed.kind
        && of_last.get("id") == id
    {
        entries.extend(entry);
    } else {
        items.push(Item::new(Kind::Listed { listed, entries: entry.into_iter().collect() }, rest));
    }
}

/// Removes the items that OpenAI refuses in an answer: calls of its own tools, such as the shell, that have no
/// output; reasoning that was not stored there; and reasoning that nothing follows.
fn settle(items: &mut Vec<Item<'_>>) {
    let ends = |item: &Item<'_>, end| {
        matches!(item.kind, Kind::Whole) && item.text("type").is_some_and(|kind| kind.ends_with(end))
    };
    let outputs = items.iter().filter(|item| ends(item, "_output")).filter_map(|item| item.text("call_id"));
    let answered: Vec<_> = outputs.collect();
    items.retain(|item| match item.text("call_id") {
        Some(id) if ends(item, "_call") => id.is_empty() || answered.contains(&id),
        _ => true,
    });
    let count = items.len();
    items.retain(|item| !item.is_reasoning() || item.is_self_contained());
    if items.len() < count {
        items.iter_mut().for_each(|item| item.with_id &= matches!(item.kind, Kind::Whole));
    }
    while items.last().is_some_and(Item::is_reasoning) {
        items.pop();
    }
}

/// The longest id or name.
const LONGEST: usize = 64;

/// Returns the id of a call as OpenAI takes it. Another provider may have made it.
fn legal_id(id: &str) -> Cow<'_, str> {
    if !id.is_empty() && id.len() <= LONGEST { id.into() } else { replaced_id(id).into() }
}

/// A tool of the step: a tool that OpenAI defines, or a function.
#[derive(Serialize)]
#[serde(untagged)]
enum Offered<'a> {
    Provided {
        #[serde(rename = "type")]
        kind: &'a str,
        #[serde(flatten)]
        members: &'a Map<String, Value>,
    },
    Function(Function<'a>),
}

impl<'a> Offered<'a> {
    fn new(request: &Encoding<'a>, item: &'a ToolItem) -> Self {
        match request.provider_tool(item.name.as_str()) {
            Some(tool) => Self::Provided { kind: &tool.kind, members: &tool.members },
            None => Self::Function(Function::new(item)),
        }
    }
}

#[derive(Serialize)]
struct Function<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: Schema<'a>,
    /// If it is missing, OpenAI would change the schema to one that it can enforce.
    strict: bool,
}

impl<'a> Function<'a> {
    fn new(item: &'a ToolItem) -> Self {
        Self {
            kind: "function",
            name: item.name.as_str(),
            description: item.description.as_deref(),
            parameters: Schema::of(item).with_properties(),
            strict: item.parameters.as_ref().and_then(Value::as_object).is_some_and(can_be_enforced),
        }
    }
}

/// Whether OpenAI can enforce the schema of a tool: all members of all objects are known and required, and no keyword
/// goes beyond that.
fn can_be_enforced(schema: &Map<String, Value>) -> bool {
    schema.get("type").is_some_and(|kind| kind == "object") && !schema.contains_key("anyOf") && is_closed(schema)
}

fn is_closed(schema: &Map<String, Value>) -> bool {
    let closed = |schema: &Value| schema.as_object().is_some_and(is_closed);
    let all = |schemas: &Value| schemas.as_object().is_some_and(|schemas| schemas.values().all(closed));
    let keywords = schema.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" | "title" | "description" | "required" | "additionalProperties" | "enum" | "const" | "$ref" => true,
        "properties" | "$defs" => all(value),
        "items" => closed(value),
        "anyOf" => value.as_array().is_some_and(|schemas| schemas.iter().all(closed)),
        _ => false,
    });
    let is_said = ["type", "enum", "const", "anyOf", "$ref"].iter().any(|keyword| schema.contains_key(*keyword));
    let is_object = schema.contains_key("properties")
        || schema.get("type").is_some_and(|kind| {
            kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
        });
    let names = schema.get("properties").and_then(Value::as_object).map(Map::keys).into_iter().flatten();
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    keywords
        && is_said
        && (!is_object || schema.get("additionalProperties") == Some(&Value::Bool(false)))
        && names.into_iter().all(|name| required.iter().any(|known| known.as_str() == Some(name)))
}
