//! Answers of Anthropic.

use goondan_core::ModelFinish;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::http::{Failure, FailureKind};
use crate::wire::Text;
use crate::wire::maybe::Maybe;

/// An event, with the members of all kinds.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(default)]
    index: u64,
    #[serde(default, borrow)]
    delta: Option<Delta<'a>>,
    #[serde(default)]
    content_block: Option<Map<String, Value>>,
    #[serde(default, borrow)]
    message: Maybe<Message<'a>>,
    #[serde(default)]
    usage: Maybe<Usage>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default, borrow)]
    request_id: Maybe<Text<'a>>,
}

/// A piece of a block, or the new members of the message.
#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(default, borrow)]
    text: Option<Text<'a>>,
    #[serde(default, borrow)]
    thinking: Option<Text<'a>>,
    #[serde(default, borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(default, borrow)]
    signature: Option<Text<'a>>,
    #[serde(default)]
    citation: Option<Value>,
    #[serde(default, borrow)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default, borrow)]
    model: Maybe<Text<'a>>,
    #[serde(default)]
    usage: Maybe<Usage>,
}

#[derive(Clone, Copy, Deserialize)]
struct Usage {
    /// Without the tokens of the cache.
    #[serde(default)]
    input_tokens: Maybe<u64>,
    #[serde(default)]
    cache_read_input_tokens: Maybe<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Maybe<u64>,
    #[serde(default)]
    output_tokens: Maybe<u64>,
    #[serde(default)]
    output_tokens_details: Maybe<OutputDetails>,
}

#[derive(Clone, Copy, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: Maybe<u64>,
}

/// Reads one event, which has its type, or only a name.
pub(super) fn event(name: &str, data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
    let event: Event<'_> = serde_json::from_str(data).map_err(Failure::unreadable)?;
    // Some gateways name the event only.
    match if event.kind.is_empty() { name } else { &*event.kind } {
        "content_block_delta" => piece(event.index, event.delta, data, answer),
        "content_block_start" => start(event.index, event.content_block.unwrap_or_default(), answer),
        "content_block_stop" => stop(event.index, answer),
        "message_start" => {
            answer.restart("the provider began its answer again");
            let Some(message) = event.message.0 else { return Ok(()) };
            if let Some(model) = message.model.0 {
                answer.model(&model);
            }
            count(message.usage.0, answer);
            note(data, "message", answer);
        }
        "message_delta" => {
            if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                answer.finish(finish(&reason));
            }
            count(event.usage.0, answer);
            note(data, "delta", answer);
        }
        "message_stop" => answer.end(),
        kind if kind == "error" || event.error.is_some() => {
            let id = event.request_id.0.map(|id| id.to_string());
            return Err(Failure::from_event(&event.error.unwrap_or_default()).with_request_id(id));
        }
        "" => return Err(Failure::new(FailureKind::Answer, "the provider sent an event without a type")),
        // `ping`, and kinds that do not exist yet.
        _ => {}
    }
    Ok(())
}

/// The members of a message that are read, or that every message has.
const KNOWN: [&str; 8] = ["type", "usage", "id", "role", "model", "content", "stop_reason", "stop_sequence"];

/// Notes the other members of an event about the message: in itself, and in the object `within`.
#[cold]
fn note(data: &str, within: &str, answer: &mut Answer<'_>) {
    let Ok(Value::Object(mut event)) = serde_json::from_str(data) else { return };
    if let Some(Value::Object(message)) = event.shift_remove(within) {
        event.extend(message);
    }
    for (name, value) in event {
        if !KNOWN.contains(&&*name) && !value.is_null() {
            answer.note(name, value);
        }
    }
}

/// Opens a block.
fn start(index: u64, mut block: Map<String, Value>, answer: &mut Answer<'_>) {
    let mut take = |name: &str| match block.shift_remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    match &*take("type") {
        "text" => {
            let text = take("text");
            answer.open_text(index, block);
            answer.grow(index, &text);
        }
        "thinking" => {
            let text = take("thinking");
            block.retain(|name, value| name != "signature" || value != "");
            answer.open_reasoning(index, block);
            answer.grow(index, &text);
        }
        "tool_use" => {
            let (id, name) = (take("id"), take("name"));
            let input = block.shift_remove("input");
            answer.open_call(index, &id, name, block);
            if let Some(Value::Object(input)) = input.filter(|input| input.as_object().is_some_and(|o| !o.is_empty())) {
                answer.grow(index, &Value::Object(input).to_string());
            }
        }
        kind => {
            block.shift_insert(0, "type".to_owned(), kind.into());
            if kind == "redacted_thinking" {
                answer.open_reasoning(index, block);
            } else {
                answer.open_block(index, block);
            }
        }
    }
}

/// Adds a piece to a block.
fn piece(index: u64, delta: Option<Delta<'_>>, data: &str, answer: &mut Answer<'_>) {
    let Some(delta) = delta else { return };
    let growing = delta.text.or(delta.thinking);
    match (growing, delta.partial_json, delta.signature, delta.citation) {
        (_, Some(json), ..) if answer.is_block(index) => answer.grow_member(index, "input", &json),
        (Some(piece), ..) | (_, Some(piece), ..) if !answer.is_block(index) => answer.grow(index, &piece),
        (_, _, Some(signature), _) => answer.grow_member(index, "signature", &signature),
        (.., Some(citation)) => {
            let citations = answer.rest(index).map(|rest| rest.entry("citations").or_insert(Value::Null));
            match citations {
                Some(Value::Array(citations)) => citations.push(citation),
                Some(other) => *other = Value::Array(vec![citation]),
                None => {}
            }
        }
        _ => unknown_piece(index, delta.kind.is_some(), data, answer),
    }
}

/// Adds a piece of a kind that does not exist yet, or of a block without a name here: texts grow, other members are
/// replaced.
#[cold]
fn unknown_piece(index: u64, is_piece: bool, data: &str, answer: &mut Answer<'_>) {
    let Ok(Value::Object(mut event)) = serde_json::from_str(data) else { return };
    let Some(Value::Object(members)) = event.remove("delta").filter(|_| is_piece) else { return };
    for (name, value) in members.into_iter().filter(|(name, _)| name != "type") {
        match value {
            Value::String(piece) => answer.grow_member(index, &name, &piece),
            value => {
                if let Some(rest) = answer.rest(index) {
                    rest.insert(name, value);
                }
            }
        }
    }
}

/// Reads the arguments of a tool that runs at the provider, which arrived as text.
fn stop(index: u64, answer: &mut Answer<'_>) {
    if !answer.is_block(index) {
        return;
    }
    let Some(input) = answer.rest(index).and_then(|rest| rest.get_mut("input")) else { return };
    if let Some(json) = input.as_str().and_then(|text| serde_json::from_str(text).ok()) {
        *input = json;
    }
}

fn finish(reason: &str) -> ModelFinish {
    match reason {
        "end_turn" | "stop_sequence" => ModelFinish::Stop,
        "tool_use" => ModelFinish::ToolCalls,
        // The provider ran tools, or summarized the conversation, and wants to be asked to go on.
        "pause_turn" | "compaction" => ModelFinish::Pause,
        "max_tokens" => ModelFinish::Length,
        "model_context_window_exceeded" => ModelFinish::ContextFull,
        "refusal" => ModelFinish::Refusal,
        _ => ModelFinish::Other,
    }
}

/// Takes over counts. Later ones are totals, and may lack members.
fn count(counts: Option<Usage>, answer: &mut Answer<'_>) {
    let Some(counts) = counts else { return };
    if [counts.input_tokens.0, counts.output_tokens.0] == [None; 2] {
        return;
    }
    let usage = answer.usage();
    let known = usage.prompt_tokens.saturating_sub(usage.cached_prompt_tokens).saturating_sub(usage.cache_write_tokens);
    usage.cached_prompt_tokens = counts.cache_read_input_tokens.0.unwrap_or(usage.cached_prompt_tokens);
    usage.cache_write_tokens = counts.cache_creation_input_tokens.0.unwrap_or(usage.cache_write_tokens);
    let fresh = counts.input_tokens.0.unwrap_or(known);
    usage.prompt_tokens = fresh.saturating_add(usage.cached_prompt_tokens).saturating_add(usage.cache_write_tokens);
    usage.completion_tokens = counts.output_tokens.0.unwrap_or(usage.completion_tokens);
    let thinking = counts.output_tokens_details.0.and_then(|details| details.thinking_tokens.0);
    usage.reasoning_tokens = thinking.unwrap_or(usage.reasoning_tokens);
}
