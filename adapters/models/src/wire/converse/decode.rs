//! Answers of Converse.

use goondan_core::ModelFinish;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Key, merge};
use crate::http::Failure;
use crate::wire::Text;
use crate::wire::maybe::Maybe;

/// An event, with the members of all kinds. Each event has one of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(default, borrow)]
    content_block_delta: Option<Piece<'a>>,
    #[serde(default)]
    content_block_start: Option<Start>,
    #[serde(default)]
    content_block_stop: Option<Stop>,
    #[serde(default, borrow)]
    message_stop: Option<MessageStop<'a>>,
    #[serde(default)]
    metadata: Maybe<Metadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Piece<'a> {
    #[serde(default)]
    content_block_index: u64,
    #[serde(default, borrow)]
    delta: Option<Delta<'a>>,
}

/// A piece of a block, of one kind.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(default, borrow)]
    text: Option<Text<'a>>,
    #[serde(default, borrow)]
    tool_use: Option<Arguments<'a>>,
    #[serde(default, borrow)]
    reasoning_content: Option<Reasoning<'a>>,
    #[serde(default)]
    citation: Option<Value>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(default, borrow)]
    input: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning<'a> {
    #[serde(default, borrow)]
    text: Option<Text<'a>>,
    #[serde(default, borrow)]
    signature: Option<Text<'a>>,
    #[serde(default)]
    redacted_content: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    #[serde(default)]
    content_block_index: u64,
    #[serde(default)]
    start: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stop {
    #[serde(default)]
    content_block_index: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageStop<'a> {
    #[serde(default, borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(default)]
    additional_model_response_fields: Option<Value>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    usage: Maybe<Usage>,
    /// The findings of guardrails.
    #[serde(default)]
    trace: Option<Value>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    /// Without the tokens of the cache.
    #[serde(default)]
    input_tokens: Maybe<u64>,
    #[serde(default)]
    output_tokens: Maybe<u64>,
    #[serde(default)]
    cache_read_input_tokens: Maybe<u64>,
    #[serde(default)]
    cache_write_input_tokens: Maybe<u64>,
}

/// The kinds of parts, which are the second number of their keys: some models think and speak in one block.
const TEXT: u64 = 0;
const REASONING: u64 = 1;
const CALL: u64 = 2;
const BLOCK: u64 = 3;
/// Pieces of reasoning that cannot be read.
const REDACTED: u64 = 4;

/// Reads one event.
pub(super) fn event(data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
    let event: Event<'_> = serde_json::from_str(data).map_err(Failure::unreadable)?;
    match event {
        Event { content_block_delta: Some(Piece { content_block_index, delta: Some(delta) }), .. } => {
            piece(content_block_index, delta, data, answer);
        }
        Event { content_block_start: Some(Start { content_block_index, start: Some(start) }), .. } => {
            begin(content_block_index, start, answer);
        }
        Event { content_block_stop: Some(Stop { content_block_index }), .. } => stop(content_block_index, answer),
        Event { message_stop: Some(stop), .. } => {
            if let Some(fields) = stop.additional_model_response_fields {
                answer.note("additionalModelResponseFields".to_owned(), fields);
            }
            if let Some(reason) = stop.stop_reason {
                answer.finish(finish(&reason, answer.has_calls()));
                // The counts follow.
                answer.complete();
            }
        }
        Event { metadata: Maybe(Some(metadata)), .. } => {
            if let Some(trace) = metadata.trace {
                answer.note("trace".to_owned(), trace);
            }
            count(metadata.usage.0, answer);
            if answer.is_complete() {
                answer.end();
            }
        }
        _ => return unknown(data),
    }
    Ok(())
}

/// Reads an event without a name here: a failure, or a kind that does not exist yet.
#[cold]
fn unknown(data: &str) -> Result<(), Failure> {
    let Ok(Value::Object(event)) = serde_json::from_str(data) else { return Ok(()) };
    let Some((name, report)) = event.iter().find(|(name, _)| name.ends_with("Exception") || *name == "error") else {
        return Ok(());
    };
    let status = match &**name {
        "throttlingException" => Some(429),
        "serviceUnavailableException" => Some(503),
        "validationException" => Some(400),
        "internalServerException" => Some(500),
        _ => None,
    };
    let message = ["message", "Message", "originalMessage"].into_iter().find_map(|name| report.get(name)?.as_str());
    let kind = report.get("code").and_then(Value::as_str).unwrap_or(name);
    Err(Failure::from_event(&json!({ "code": status, "type": kind, "message": message })))
}

/// Opens a block whose start is sent: texts and reasoning have none.
fn begin(index: u64, mut start: Map<String, Value>, answer: &mut Answer<'_>) {
    let is_call = |call: &&mut Value| call.get("type").is_none_or(|kind| kind == "tool_use");
    let Some(Value::Object(call)) = start.get_mut("toolUse").filter(is_call) else {
        if !start.is_empty() {
            // A tool that runs at the provider, or its output.
            if let Some(Value::Object(result)) = start.get_mut("toolResult") {
                result.entry("content").or_insert_with(|| json!([]));
            }
            answer.open_block((index, BLOCK), start);
        }
        return;
    };
    let mut take = |name: &str| match call.shift_remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    let (id, name) = (take("toolUseId"), take("name"));
    answer.open_call((index, CALL), &id, name, Map::new());
}

/// Adds a piece to a block.
fn piece(index: u64, delta: Delta<'_>, data: &str, answer: &mut Answer<'_>) {
    match delta {
        Delta { text: Some(text), .. } => {
            open(index, TEXT, answer);
            answer.grow((index, TEXT), &text);
        }
        Delta { tool_use: Some(Arguments { input: Some(piece) }), .. } if !answer.has((index, BLOCK)) => {
            answer.grow((index, CALL), &piece);
        }
        Delta { reasoning_content: Some(Reasoning { redacted_content: Some(data), .. }), .. } => {
            let rest = Map::from_iter([("redactedContent".to_owned(), data)]);
            answer.open_reasoning((index, REDACTED + answer.count()), rest);
        }
        Delta { reasoning_content: Some(Reasoning { text, signature, .. }), .. } => {
            open(index, REASONING, answer);
            answer.grow((index, REASONING), text.as_deref().unwrap_or_default());
            answer.grow_member((index, REASONING), "signature", signature.as_deref().unwrap_or_default());
        }
        Delta { citation: Some(citation), .. } => {
            open(index, TEXT, answer);
            let citations = answer.rest((index, TEXT)).map(|rest| rest.entry("citations").or_insert_with(|| json!([])));
            if let Some(Value::Array(citations)) = citations {
                citations.push(citation);
            }
        }
        _ => unknown_piece(index, data, answer),
    }
}

/// Opens a text or reasoning with its first piece.
fn open(index: u64, kind: u64, answer: &mut Answer<'_>) {
    let key: Key = (index, kind).into();
    match kind {
        _ if answer.has(key) => {}
        TEXT => answer.open_text(key, Map::new()),
        _ => answer.open_reasoning(key, Map::new()),
    }
}

/// Adds a piece to a block without a name here: arguments grow, other members are merged.
#[cold]
fn unknown_piece(index: u64, data: &str, answer: &mut Answer<'_>) {
    let Ok(mut event) = serde_json::from_str::<Value>(data) else { return };
    let Some(Value::Object(mut delta)) = event.pointer_mut("/contentBlockDelta/delta").map(Value::take) else { return };
    delta.retain(|_, value| !value.is_null());
    if delta.is_empty() {
        return;
    }
    let Some(block) = answer.rest((index, BLOCK)) else { return answer.open_block((index, BLOCK), delta) };
    for (name, new) in delta {
        let known = block.entry(name.clone()).or_insert(Value::Null);
        match (&*name, new) {
            ("toolUse", Value::Object(new)) if known.is_object() => {
                if let Some(Value::String(piece)) = new.get("input") {
                    let earlier = known["input"].as_str().unwrap_or_default();
                    known["input"] = format!("{earlier}{piece}").into();
                }
            }
            ("toolResult", new @ Value::Array(_)) if known.is_object() => merge(&mut known["content"], new),
            (_, new) => merge(known, new),
        }
    }
}

/// Reads the arguments of a tool that runs at the provider, which arrived as text.
fn stop(index: u64, answer: &mut Answer<'_>) {
    if !answer.is_block((index, BLOCK)) {
        return;
    }
    let input = answer.rest((index, BLOCK)).and_then(|rest| rest.get_mut("toolUse")?.get_mut("input"));
    if let Some(input) = input
        && let Some(json) = input.as_str().and_then(|text| serde_json::from_str(text).ok())
    {
        *input = json;
    }
}

fn finish(reason: &str, has_calls: bool) -> ModelFinish {
    match reason {
        "tool_use" => ModelFinish::ToolCalls,
        // Some models say that their turn is over, and call a tool.
        "end_turn" | "stop_sequence" if has_calls => ModelFinish::ToolCalls,
        "end_turn" | "stop_sequence" => ModelFinish::Stop,
        // A call that could not be read is mended by asking again.
        "malformed_tool_use" | "malformed_model_output" => ModelFinish::ToolCalls,
        "max_tokens" => ModelFinish::Length,
        "model_context_window_exceeded" => ModelFinish::ContextFull,
        "content_filtered" | "guardrail_intervened" => ModelFinish::ContentFilter,
        _ => ModelFinish::Other,
    }
}

fn count(counts: Option<Usage>, answer: &mut Answer<'_>) {
    let Some(counts) = counts else { return };
    if [counts.input_tokens.0, counts.output_tokens.0] == [None; 2] {
        return;
    }
    let usage = answer.usage();
    usage.cached_prompt_tokens = counts.cache_read_input_tokens.0.unwrap_or_default();
    usage.cache_write_tokens = counts.cache_write_input_tokens.0.unwrap_or_default();
    let fresh = counts.input_tokens.0.unwrap_or_default();
    usage.prompt_tokens = fresh.saturating_add(usage.cached_prompt_tokens).saturating_add(usage.cache_write_tokens);
    usage.completion_tokens = counts.output_tokens.0.unwrap_or_default();
}
