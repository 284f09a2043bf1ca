//! Answers of chat completions.

use goondan_core::{Cost, ModelFinish, TokenUsage};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::dialect::Dialect;
use crate::answer::Answer;
use crate::http::{Failure, FailureKind};
use crate::wire::Text;
use crate::wire::few::Few;

/// An event: pieces of answers, counts of tokens, or a failure.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default, borrow)]
    model: Option<Text<'a>>,
    #[serde(default, borrow)]
    object: Option<Text<'a>>,
    #[serde(default, borrow)]
    choices: Option<Few<Choice<'a>>>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<Value>,
}

/// A piece of one of the answers. Only the first answer is read; nothing asks for more.
#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default, borrow)]
    delta: Option<Delta<'a>>,
    #[serde(default, borrow)]
    finish_reason: Option<Text<'a>>,
    /// Moonshot sends it here.
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default, rename = "role")]
    _role: IgnoredAny,
    /// Some gateways repeat that of the choice.
    #[serde(default, rename = "index")]
    _index: IgnoredAny,
    #[serde(default, borrow)]
    content: Option<Said<'a>>,
    #[serde(default, borrow)]
    refusal: Option<Said<'a>>,
    #[serde(default, borrow)]
    reasoning_content: Option<Said<'a>>,
    #[serde(default, borrow)]
    reasoning: Option<Said<'a>>,
    #[serde(default)]
    reasoning_details: Option<Vec<Map<String, Value>>>,
    #[serde(default, borrow)]
    tool_calls: Option<Few<CallPiece<'a>>>,
    /// Members of the message that have no name here.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A piece of text, or typed pieces.
#[derive(Deserialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(#[serde(borrow)] Text<'a>),
    Blocks(Vec<Map<String, Value>>),
    Other(IgnoredAny),
}

impl Said<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct CallPiece<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default, borrow)]
    id: Option<Text<'a>>,
    #[serde(default, rename = "type")]
    _type: IgnoredAny,
    #[serde(default, borrow)]
    function: Option<Function<'a>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(default, borrow)]
    name: Option<Text<'a>>,
    #[serde(default, borrow)]
    arguments: Option<Arguments<'a>>,
}

/// A piece of the arguments. Some servers send them whole, as an object.
#[derive(Deserialize)]
#[serde(untagged)]
enum Arguments<'a> {
    Piece(#[serde(borrow)] Text<'a>),
    Whole(Map<String, Value>),
    Other(IgnoredAny),
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default)]
    total_tokens: Count,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name of `cached_tokens`.
    #[serde(default)]
    prompt_cache_hit_tokens: Count,
    #[serde(default)]
    cached_tokens: Count,
    #[serde(default)]
    cost: Option<f64>,
    /// The cost at xAI. A dollar has 10,000,000,000 ticks.
    #[serde(default)]
    cost_in_usd_ticks: Option<f64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Count,
    #[serde(default)]
    cache_write_tokens: Count,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

/// A number, or what some servers write instead.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Count {
    Tokens(u64),
    Other(IgnoredAny),
}

impl Default for Count {
    fn default() -> Self {
        Self::Tokens(0)
    }
}

impl Count {
    fn get(self) -> u64 {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Other(_) => 0,
        }
    }
}

/// The kinds of keys. Calls, and details of reasoning, are numbered; of other parts, an answer has one.
const TEXT: (u64, u64) = (0, 0);
const REFUSAL: (u64, u64) = (1, 0);
const REASONING: (u64, u64) = (2, 0);
const BLOCK: (u64, u64) = (3, 0);
const CALL: u64 = 4;
const REASONING_TEXT: u64 = 5;
const REASONING_SUMMARY: u64 = 6;
const REASONING_OTHER: u64 = 7;
/// The number of what has none.
const UNNUMBERED: u64 = u64::MAX;

/// Reads one event.
pub(super) fn event(dialect: &Dialect, data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
    match data.trim() {
        "[DONE]" => {
            // Some gateways send this after an answer that was cut off.
            if answer.is_complete() {
                answer.end();
            }
            return Ok(());
        }
        "" => return Ok(()),
        _ => {}
    }
    let chunk: Chunk<'_> = serde_json::from_str(data).map_err(Failure::unreadable)?;
    if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
        return Err(Failure::from_event(&error));
    }
    if chunk.object.is_some_and(|object| &*object == "error") {
        return Err(Failure::from_event(&serde_json::from_str(data).unwrap_or_default()));
    }
    let mut choices = chunk.choices.into_iter().flat_map(Few::into_iter);
    let choice = choices.find(|choice| choice.index.unwrap_or_default() == 0);
    let mut usage = chunk.usage;
    if let Some(choice) = choice {
        if let Some(error) = choice.error.filter(|error| !error.is_null()) {
            return Err(Failure::from_event(&error));
        }
        if let Some(delta) = choice.delta {
            pieces(delta, answer);
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            let reason = finish(&reason, answer)?;
            answer.finish(reason);
            answer.complete();
            if let Some(model) = chunk.model {
                answer.model(&model);
            }
        }
        usage = usage.or(choice.usage);
    }
    if let Some(usage) = usage {
        *answer.usage() = count(dialect, &usage);
    }
    Ok(())
}

/// Adds the pieces of the message.
fn pieces(delta: Delta<'_>, answer: &mut Answer<'_>) {
    let mut detailed = false;
    for detail in delta.reasoning_details.into_iter().flatten() {
        detailed |= add_detail(detail, answer);
    }
    // Beside details, it is the same text again, as it is in the other one of the two members.
    if !detailed {
        let members = [("reasoning_content", &delta.reasoning_content), ("reasoning", &delta.reasoning)];
        let reasoning = members.into_iter().find_map(|(name, said)| Some((name, said.as_ref()?.text()?)));
        if let Some((name, piece)) = reasoning {
            add_reasoning(name, Map::new(), piece, answer);
        }
    }
    match delta.content {
        Some(Said::Blocks(blocks)) => blocks.into_iter().for_each(|block| add_block(block, answer)),
        Some(said) => add_text(said.text().unwrap_or_default(), answer),
        None => {}
    }
    if let Some(piece) = delta.refusal.as_ref().and_then(Said::text) {
        if !answer.has(REFUSAL) {
            answer.open_text(REFUSAL, typed("refusal", Map::new()));
        }
        answer.grow(REFUSAL, piece);
    }
    delta.tool_calls.into_iter().flat_map(Few::into_iter).for_each(|call| add_call(call, answer));
    delta.rest.into_iter().for_each(|(name, value)| add_member(name, value, answer));
}

fn add_text(piece: &str, answer: &mut Answer<'_>) {
    if !piece.is_empty() && !answer.has(TEXT) {
        answer.open_text(TEXT, Map::new());
    }
    answer.grow(TEXT, piece);
}

/// Adds reasoning that is a text. Its rest has the type: the member, or the block, in which it came.
fn add_reasoning(kind: &str, rest: Map<String, Value>, piece: &str, answer: &mut Answer<'_>) {
    if !answer.has(REASONING) {
        answer.open_reasoning(REASONING, typed(kind, Map::new()));
    }
    if let Some(known) = answer.rest(REASONING) {
        known.extend(rest);
    }
    answer.grow(REASONING, piece);
}

/// Adds an element of `reasoning_details`, and returns whether it has text. Pieces of one text have one index.
fn add_detail(mut detail: Map<String, Value>, answer: &mut Answer<'_>) -> bool {
    let kind = take(&mut detail, "type");
    let (group, member) = match &*kind {
        "reasoning.text" => (REASONING_TEXT, "text"),
        "reasoning.summary" => (REASONING_SUMMARY, "summary"),
        _ => (REASONING_OTHER, ""),
    };
    let piece = take(&mut detail, member);
    let key = (group, detail.get("index").and_then(Value::as_u64).unwrap_or(UNNUMBERED));
    match answer.rest(key).filter(|_| group != REASONING_OTHER) {
        Some(known) => known.extend(detail.into_iter().filter(|(_, value)| !value.is_null())),
        None => answer.open_reasoning(key, typed(&kind, detail)),
    }
    answer.grow(key, &piece);
    !piece.is_empty()
}

/// Adds an element of content that is a list.
fn add_block(mut block: Map<String, Value>, answer: &mut Answer<'_>) {
    match block.get("type").and_then(Value::as_str) {
        Some("text") => add_text(&take(&mut block, "text"), answer),
        Some("thinking") => {
            block.shift_remove("type");
            let texts = block.shift_remove("thinking");
            let texts = texts.as_ref().and_then(Value::as_array).into_iter().flatten();
            let texts: String = texts.filter_map(|text| text.get("text")?.as_str()).collect();
            add_reasoning("thinking", block, &texts, answer);
        }
        _ => answer.open_block(BLOCK, block),
    }
}

/// Adds a piece of a call. A piece without an index belongs to the newest call, unless it has an id or a name of its
/// own: such servers send calls whole. Others give all calls the same index.
fn add_call(piece: CallPiece<'_>, answer: &mut Answer<'_>) {
    let key = (CALL, piece.index.unwrap_or(UNNUMBERED));
    let id = piece.id.as_deref().unwrap_or_default();
    let function = piece.function.unwrap_or_default();
    let name = function.name.as_deref().unwrap_or_default();
    let begins = answer.call_id(key).is_none_or(|known| {
        let (other_id, has_name) = (!id.is_empty() && id != known, !name.is_empty());
        if piece.index.is_some() { other_id && has_name } else { other_id || has_name }
    });
    if begins {
        answer.open_call(key, id, name, piece.rest);
    } else {
        answer.name_call(key, name);
        if let Some(rest) = answer.rest(key) {
            rest.extend(piece.rest);
        }
    }
    match function.arguments {
        Some(Arguments::Piece(piece)) => answer.grow(key, &piece),
        Some(Arguments::Whole(arguments)) => answer.grow(key, &Value::Object(arguments).to_string()),
        Some(Arguments::Other(_)) | None => {}
    }
}

/// Adds a member of the message that has no name here, such as `annotations`. It is kept with the text.
#[cold]
fn add_member(name: String, value: Value, answer: &mut Answer<'_>) {
    let is_empty = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    if is_empty {
        return;
    }
    if !answer.has(TEXT) {
        answer.open_text(TEXT, Map::new());
    }
    let Some(rest) = answer.rest(TEXT) else { return };
    match (rest.get_mut(&name), value) {
        (Some(Value::String(text)), Value::String(piece)) => text.push_str(&piece),
        (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
        (_, value) => {
            rest.insert(name, value);
        }
    }
}

/// Returns why the model stopped.
fn finish(reason: &str, answer: &Answer<'_>) -> Result<ModelFinish, Failure> {
    Ok(match reason {
        // Some servers do not tell calls from other ends.
        "stop" if answer.has_calls() => ModelFinish::ToolCalls,
        "stop" if answer.has(REFUSAL) => ModelFinish::Refusal,
        "stop" => ModelFinish::Stop,
        "tool_calls" | "function_call" => ModelFinish::ToolCalls,
        "length" => ModelFinish::Length,
        "model_length" => ModelFinish::ContextFull,
        "content_filter" => ModelFinish::ContentFilter,
        "error" | "abort" | "insufficient_system_resource" => {
            let message = format!("the provider ended the answer early: `{reason}`");
            return Err(Failure::new(FailureKind::Overloaded, message));
        }
        _ => ModelFinish::Other,
    })
}

fn count(dialect: &Dialect, counts: &Usage) -> TokenUsage {
    let mut usage = TokenUsage::new(counts.prompt_tokens.get(), counts.completion_tokens.get());
    let sum = usage.total_tokens;
    usage.total_tokens = sum.max(counts.total_tokens.get());
    if let Some(details) = &counts.prompt_tokens_details {
        usage.cached_prompt_tokens = details.cached_tokens.get();
        usage.cache_write_tokens = details.cache_write_tokens.get();
    }
    let elsewhere = counts.prompt_cache_hit_tokens.get().max(counts.cached_tokens.get());
    usage.cached_prompt_tokens = usage.cached_prompt_tokens.max(elsewhere);
    usage.reasoning_tokens =
        counts.completion_tokens_details.as_ref().map_or(0, |details| details.reasoning_tokens.get());
    if usage.reasoning_tokens > 0 && sum.saturating_add(usage.reasoning_tokens) == usage.total_tokens {
        // xAI counts reasoning beside the completion, and not in it.
        usage.completion_tokens = usage.completion_tokens.saturating_add(usage.reasoning_tokens);
    }
    let ticks = counts.cost_in_usd_ticks.map(|ticks| ticks / 1e10);
    usage.cost = counts.cost.filter(|_| dialect.cost).or(ticks).map(Cost::usd);
    usage
}

/// Returns a block of this type.
fn typed(kind: &str, mut members: Map<String, Value>) -> Map<String, Value> {
    members.shift_insert(0, "type".to_owned(), kind.into());
    members
}

/// Removes and returns a member that is a text.
fn take(members: &mut Map<String, Value>, name: &str) -> String {
    match members.shift_remove(name) {
        Some(Value::String(text)) => text,
        Some(other) => {
            members.insert(name.to_owned(), other);
            String::new()
        }
        None => String::new(),
    }
}
