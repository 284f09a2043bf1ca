//! Answers of chat completions.

use goondan_core::{Cost, ModelFinish, TokenUsage};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::dialect::Dialect;
use crate::answer::{Answer, Key};
use crate::http::{Failure, FailureKind};
use crate::wire::Text;
use crate::wire::few::Few;
use crate::wire::maybe::Maybe;

/// An event: pieces of answers, counts of tokens, or a failure.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(default, borrow)]
    model: Maybe<Text<'a>>,
    #[serde(default, borrow)]
    object: Maybe<Text<'a>>,
    #[serde(default, borrow)]
    choices: Option<Few<Choice<'a>>>,
    #[serde(default)]
    usage: Maybe<Usage>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    x_groq: Maybe<Groq>,
    // Every event repeats these, and nothing reads them.
    #[serde(default, rename = "id")]
    _id: IgnoredAny,
    #[serde(default, rename = "created")]
    _created: IgnoredAny,
    #[serde(default, rename = "system_fingerprint")]
    _system_fingerprint: IgnoredAny,
    #[serde(default, rename = "service_tier")]
    _service_tier: IgnoredAny,
    #[serde(default, rename = "provider")]
    _provider: IgnoredAny,
    #[serde(default, rename = "obfuscation")]
    _obfuscation: IgnoredAny,
    #[serde(default, rename = "prompt_filter_results")]
    _prompt_filter_results: IgnoredAny,
    #[serde(default, rename = "timings")]
    _timings: IgnoredAny,
    /// Data of the provider about the answer, such as its sources.
    #[serde(flatten)]
    beside: Map<String, Value>,
}

/// Members that Groq alone sends.
#[derive(Deserialize)]
struct Groq {
    /// It has the counts here too, and in some streams only here.
    #[serde(default)]
    usage: Maybe<Usage>,
    /// Why it ended the answer early.
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
    /// `Some` if the member is there, be it null.
    #[serde(default, borrow, deserialize_with = "present")]
    finish_reason: Option<Option<Text<'a>>>,
    /// Moonshot sends it here.
    #[serde(default)]
    usage: Maybe<Usage>,
    #[serde(default)]
    error: Option<Value>,
}

/// Reads a member that is there.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default, rename = "role")]
    _role: IgnoredAny,
    /// Some gateways repeat the index of the choice.
    #[serde(default, rename = "index")]
    _index: IgnoredAny,
    // Snowflake has the content once more.
    #[serde(default, rename = "type")]
    _type: IgnoredAny,
    #[serde(default, rename = "text")]
    _text: IgnoredAny,
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
    prompt_tokens: Maybe<u64>,
    #[serde(default)]
    completion_tokens: Maybe<u64>,
    #[serde(default)]
    total_tokens: Maybe<u64>,
    #[serde(default)]
    prompt_tokens_details: Maybe<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Maybe<CompletionDetails>,
    /// DeepSeek's name of `cached_tokens`.
    #[serde(default)]
    prompt_cache_hit_tokens: Maybe<u64>,
    #[serde(default)]
    cached_tokens: Maybe<u64>,
    #[serde(default)]
    cost: Maybe<f64>,
    /// The cost at xAI. A dollar has 10,000,000,000 ticks.
    #[serde(default)]
    cost_in_usd_ticks: Maybe<f64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Maybe<u64>,
    #[serde(default)]
    cache_write_tokens: Maybe<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Maybe<u64>,
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
/// The number of a call without one.
const UNNUMBERED: u64 = u64::MAX;

/// Reads one event.
pub(super) fn event(dialect: &Dialect, data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
    match data.trim() {
        "[DONE]" => {
            // Some gateways send this after an answer that was cut off.
            if answer.is_complete() {
                answer.end();
            } else {
                answer.end_without_reason(true);
            }
            return Ok(());
        }
        "" => return Ok(()),
        _ => {}
    }
    let chunk: Chunk<'_> = serde_json::from_str(data).map_err(Failure::unreadable)?;
    let groq = chunk.x_groq.0;
    let (groq_usage, groq_error) = groq.map_or_else(Default::default, |groq| (groq.usage.0, groq.error));
    if let Some(error) = chunk.error.or(groq_error).filter(|error| !error.is_null()) {
        return Err(Failure::from_event(&error));
    }
    if chunk.object.0.is_some_and(|object| &*object == "error") {
        return Err(Failure::from_event(&serde_json::from_str(data).unwrap_or_default()));
    }
    let mut choices = chunk.choices.into_iter().flat_map(Few::into_iter);
    let choice = choices.find(|choice| choice.index.unwrap_or_default() == 0);
    let mut usage = chunk.usage.0.or(groq_usage);
    if let Some(choice) = choice {
        if let Some(error) = choice.error.filter(|error| !error.is_null()) {
            return Err(Failure::from_event(&error));
        }
        if let Some(delta) = choice.delta {
            pieces(delta, answer);
        }
        if choice.finish_reason.is_some() {
            answer.expect_reason();
        }
        if let Some(reason) = choice.finish_reason.flatten().filter(|reason| !reason.is_empty()) {
            let reason = finish(&reason, answer)?;
            answer.finish(reason);
            answer.complete();
            if let Some(model) = chunk.model.0 {
                answer.model(&model);
            }
        }
        usage = usage.or(choice.usage.0);
    }
    if let Some(usage) = usage.and_then(|counts| count(dialect, &counts)) {
        *answer.usage() = usage;
    }
    for (name, value) in chunk.beside {
        // A value that is no list and no object only names or counts.
        if value.is_array() || value.is_object() {
            answer.note(name, value);
        }
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
            add_reasoning(one(REASONING, answer), name, Map::new(), piece, answer);
        }
    }
    match delta.content {
        Some(Said::Blocks(blocks)) => blocks.into_iter().for_each(|block| add_block(block, answer)),
        Some(said) => add_text(one(TEXT, answer), said.text().unwrap_or_default(), answer),
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

/// Returns the key of the newest part of a kind, or `first`. The member of a message that is a text is one part.
fn one(first: (u64, u64), answer: &Answer<'_>) -> Key {
    answer.newest_of(first.0).unwrap_or(first.into())
}

/// Returns the key of the newest part of a kind, or of a new one if a block of the kind `other` is behind it:
/// blocks keep their order.
fn one_after(first: (u64, u64), other: (u64, u64), answer: &Answer<'_>) -> Key {
    let known = one(first, answer);
    let is_behind = answer.has(known) && answer.newest().is_some_and(|newest| newest.index() == other.0);
    if is_behind { (first.0, answer.count()).into() } else { known }
}

fn add_text(key: Key, piece: &str, answer: &mut Answer<'_>) {
    if !piece.is_empty() && !answer.has(key) {
        answer.open_text(key, Map::new());
    }
    answer.grow(key, piece);
}

/// Adds reasoning that is a text. Its rest has the type: the member, or the block, in which it came.
fn add_reasoning(key: Key, kind: &str, rest: Map<String, Value>, piece: &str, answer: &mut Answer<'_>) {
    if !answer.has(key) {
        answer.open_reasoning(key, typed(kind, Map::new()));
    }
    for (name, value) in rest {
        let known = answer.rest(key).map(|known| known.entry(name).or_insert(Value::Null));
        match (known, value) {
            (Some(Value::Array(known)), Value::Array(more)) => known.extend(more),
            (Some(known), value) => *known = value,
            (None, _) => {}
        }
    }
    answer.grow(key, piece);
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
        Some("text") => add_text(one_after(TEXT, REASONING, answer), &take(&mut block, "text"), answer),
        Some("thinking") => {
            block.shift_remove("type");
            let (text, others) = thinking(block.shift_remove("thinking").unwrap_or_default());
            if !others.is_empty() {
                block.insert("thinking".to_owned(), others.into());
            }
            add_reasoning(one_after(REASONING, TEXT, answer), "thinking", block, &text, answer);
        }
        _ => answer.open_block(BLOCK, block),
    }
}

/// Returns the text of a block of reasoning, and its elements that are none, such as references.
fn thinking(said: Value) -> (String, Vec<Value>) {
    let elements = match said {
        Value::String(text) => return (text, Vec::new()),
        Value::Array(elements) => elements,
        _ => Vec::new(),
    };
    let is_text = |element: &Value| element.get("text").is_some_and(Value::is_string);
    let (texts, others): (Vec<_>, Vec<_>) = elements.into_iter().partition(is_text);
    (texts.iter().filter_map(|text| text.get("text")?.as_str()).collect(), others)
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
    let rest = answer.rest_of_text(TEXT);
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

/// Returns the counts, unless none can be read.
fn count(dialect: &Dialect, counts: &Usage) -> Option<TokenUsage> {
    let known = [counts.prompt_tokens.0, counts.completion_tokens.0, counts.total_tokens.0];
    if known == [None; 3] {
        return None;
    }
    let [prompt, completion, total] = known.map(Option::unwrap_or_default);
    let mut usage = TokenUsage::new(prompt, completion);
    let sum = usage.total_tokens;
    usage.total_tokens = sum.max(total);
    let mut cached = [counts.prompt_cache_hit_tokens.0, counts.cached_tokens.0, None];
    if let Some(details) = &counts.prompt_tokens_details.0 {
        cached[2] = details.cached_tokens.0;
        usage.cache_write_tokens = details.cache_write_tokens.0.unwrap_or_default();
    }
    usage.cached_prompt_tokens = cached.into_iter().flatten().max().unwrap_or_default();
    let details = counts.completion_tokens_details.0.as_ref();
    usage.reasoning_tokens = details.and_then(|details| details.reasoning_tokens.0).unwrap_or_default();
    if usage.reasoning_tokens > 0 && sum.saturating_add(usage.reasoning_tokens) == usage.total_tokens {
        // xAI counts reasoning beside the completion, and not in it.
        usage.completion_tokens = usage.completion_tokens.saturating_add(usage.reasoning_tokens);
    }
    let ticks = counts.cost_in_usd_ticks.0.map(|ticks| ticks / 1e10);
    usage.cost = counts.cost.0.filter(|_| dialect.cost).or(ticks).map(Cost::usd);
    Some(usage)
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
