//! Answers of Gemini.

use goondan_core::ModelFinish;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::{CANDIDATE, INLINE, LINKED, SIGNATURE, THOUGHT, calls, drop_empty, take_text, texts};
use crate::answer::{Answer, Key, merge};
use crate::http::{Failure, FailureKind};
use crate::wire::Text;
use crate::wire::few::Few;
use crate::wire::maybe::Maybe;

/// An event: the news of the answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(default, borrow)]
    candidates: Option<Few<Candidate<'a>>>,
    #[serde(default, borrow)]
    prompt_feedback: Maybe<PromptFeedback<'a>>,
    #[serde(default)]
    usage_metadata: Maybe<Usage>,
    #[serde(default, borrow)]
    model_version: Maybe<Text<'a>>,
    #[serde(default, borrow)]
    response_id: Maybe<Text<'a>>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default, borrow)]
    content: Option<Content<'a>>,
    #[serde(default, borrow)]
    finish_reason: Option<Text<'a>>,
    // Every event repeats these, and nothing reads them.
    #[serde(default, rename = "safetyRatings")]
    _safety_ratings: IgnoredAny,
    #[serde(default, rename = "tokenCount")]
    _token_count: IgnoredAny,
    #[serde(default, rename = "avgLogprobs")]
    _avg_logprobs: IgnoredAny,
    /// Data of the provider about the answer.
    #[serde(flatten)]
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(default, borrow)]
    parts: Option<Few<Part<'a>>>,
}

/// A part, mostly a text.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(default, borrow)]
    text: Option<Text<'a>>,
    #[serde(default)]
    thought: Option<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(default, borrow)]
    block_reason: Maybe<Text<'a>>,
    #[serde(default, borrow)]
    block_reason_message: Maybe<Text<'a>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    /// With the tokens of the cache.
    #[serde(default)]
    prompt_token_count: Maybe<u64>,
    #[serde(default)]
    cached_content_token_count: Maybe<u64>,
    /// The tokens that tools of the provider added to the prompt.
    #[serde(default)]
    tool_use_prompt_token_count: Maybe<u64>,
    /// Without the tokens of reasoning.
    #[serde(default)]
    candidates_token_count: Maybe<u64>,
    #[serde(default)]
    thoughts_token_count: Maybe<u64>,
    #[serde(default)]
    total_token_count: Maybe<u64>,
    #[serde(default, rename = "promptTokensDetails", deserialize_with = "ignored")]
    _prompt_tokens_details: IgnoredAny,
}

/// Ignores a list of objects that every event repeats. `IgnoredAny` by itself allocates for nested values.
fn ignored<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IgnoredAny, D::Error> {
    deserializer.deserialize_any(IgnoredAny)
}

/// The kinds of parts, which are the second number of their keys.
const TEXT: u64 = 0;
const REASONING: u64 = 1;
const OTHER: u64 = 2;

/// Returns the key of the newest part, if it is of this kind; else a key that no part has.
fn newest(kind: u64, answer: &Answer<'_>) -> Key {
    (answer.count().wrapping_sub(1), kind).into()
}

/// Reads one event.
pub(super) fn event(data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
    let event: Event<'_> = serde_json::from_str(data).map_err(Failure::unreadable)?;
    let id = event.response_id.0.as_deref();
    let with_id = |failure: Failure| failure.with_request_id(id.map(str::to_owned));
    if let Some(report) = &event.error {
        return Err(with_id(Failure::from_event(report)));
    }
    if let Some(id) = id {
        answer.request_id(id);
    }
    if let Some(model) = event.model_version.0 {
        answer.model(&model);
    }
    if let Some(counts) = event.usage_metadata.0 {
        count(counts, answer);
    }
    let mut candidates = event.candidates.into_iter().flat_map(Few::into_iter).peekable();
    if candidates.peek().is_none()
        && let Some(failure) = event.prompt_feedback.0.and_then(blocked)
    {
        return Err(with_id(failure));
    }
    // Others are further answers to the same request, but a conversation has one.
    for candidate in candidates.filter(|candidate| candidate.index.unwrap_or_default() == 0) {
        let parts = candidate.content.and_then(|content| content.parts);
        for Part { text, thought, mut rest } in parts.into_iter().flat_map(Few::into_iter) {
            match text {
                Some(text) => say(&text, thought, rest, answer),
                None => {
                    rest.extend(thought.map(|thought| (THOUGHT.to_owned(), thought)));
                    open(rest, answer)?;
                }
            }
        }
        note(candidate.metadata, answer);
        if let Some(reason) = candidate.finish_reason {
            let call = newest(OTHER, answer);
            if &*reason == "STOP" {
                calls::end(call, answer)
            } else {
                calls::cut_off(call, answer)
            }
            answer.finish(finish(&reason, answer.has_calls())?);
            answer.complete();
        }
    }
    Ok(())
}

/// Returns the failure for a prompt that the provider did not give to the model.
fn blocked(feedback: PromptFeedback<'_>) -> Option<Failure> {
    let reason = feedback.block_reason.0?;
    let more = feedback.block_reason_message.0.map(|message| format!(" ({})", &*message)).unwrap_or_default();
    Some(Failure::new(FailureKind::Refused, format!("the provider blocked the prompt: {}{more}", &*reason)))
}

/// Adds a text to the one before it, or opens a new one.
fn say(text: &str, thought: Option<Value>, mut rest: Map<String, Value>, answer: &mut Answer<'_>) {
    let kind = if thought == Some(Value::Bool(true)) { REASONING } else { TEXT };
    let last = newest(kind, answer);
    let known = answer.rest(last).map(|known| texts::is_plain(known));
    match (known, rest.is_empty()) {
        (Some(true), true) => return answer.grow(last, text),
        (_, true) if text.is_empty() => return,
        _ => {}
    }
    rest.extend(thought.map(|thought| (THOUGHT.to_owned(), thought)));
    if known.is_some() {
        texts::begin_next(last, rest, answer);
        return answer.grow(last, text);
    }
    calls::end(newest(OTHER, answer), answer);
    let key = (answer.count(), kind);
    match kind {
        REASONING => answer.open_reasoning(key, rest),
        _ => answer.open_text(key, rest),
    }
    answer.grow(key, text);
}

fn is_thought(rest: &Map<String, Value>) -> bool {
    rest.get(THOUGHT) == Some(&Value::Bool(true))
}

/// Opens a part without text, or adds it to the newest one.
fn open(mut rest: Map<String, Value>, answer: &mut Answer<'_>) -> Result<(), Failure> {
    if rest.keys().all(|name| name == THOUGHT || name == SIGNATURE) {
        // A signature alone belongs to an empty text.
        say("", rest.shift_remove(THOUGHT), rest, answer);
        return Ok(());
    }
    let key = (answer.count(), OTHER);
    if calls::read(&mut rest, newest(OTHER, answer), key.into(), answer)? {
        return Ok(());
    }
    calls::end(newest(OTHER, answer), answer);
    for (member, content) in [(INLINE, "data"), (LINKED, "fileUri")] {
        // Images in the middle of reasoning are not part of the answer.
        let file = if is_thought(&rest) { None } else { rest.get_mut(member).and_then(Value::as_object_mut) };
        let Some(file) = file else { continue };
        if file.get("mimeType").is_some_and(Value::is_string) && file.get(content).is_some_and(Value::is_string) {
            let (media_type, mut url) = (take_text(file, "mimeType"), take_text(file, content));
            drop_empty(&mut rest, member);
            if member == INLINE {
                url.insert_str(0, &format!("data:{media_type};base64,"));
            }
            answer.open_file(key, media_type, url, rest);
            return Ok(());
        }
    }
    answer.open_block(key, rest);
    Ok(())
}

/// Keeps the notes of the provider about the answer with the newest part.
fn note(mut metadata: Map<String, Value>, answer: &mut Answer<'_>) {
    metadata.retain(|_, value| !value.is_null());
    if metadata.is_empty() {
        return;
    }
    let key = [TEXT, REASONING, OTHER].into_iter().map(|kind| newest(kind, answer)).find(|key| answer.has(*key));
    if let Some(rest) = key.and_then(|key| answer.rest(key)) {
        merge(rest.entry(CANDIDATE).or_insert(Value::Null), Value::Object(metadata));
    }
}

fn finish(reason: &str, has_calls: bool) -> Result<ModelFinish, Failure> {
    Ok(match reason {
        "STOP" if has_calls => ModelFinish::ToolCalls,
        "STOP" => ModelFinish::Stop,
        "MAX_TOKENS" => ModelFinish::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "MODEL_ARMOR"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => ModelFinish::ContentFilter,
        // The model wanted to call a tool, and the provider could not read the call. It is not in the answer, which the
        // runtime therefore has mended.
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => ModelFinish::ToolCalls,
        "MISSING_THOUGHT_SIGNATURE" => {
            let message = "the request has a call without its thought signature";
            return Err(Failure::from_event(&json!({ "code": 400, "status": reason, "message": message })));
        }
        _ => ModelFinish::Other,
    })
}

/// Takes over counts. Later ones are totals, and may lack members.
fn count(counts: Usage, answer: &mut Answer<'_>) {
    let all = [counts.prompt_token_count.0, counts.candidates_token_count.0, counts.thoughts_token_count.0];
    if all == [None; 3] && counts.total_token_count.0.is_none() {
        // The kind of traffic alone, for example.
        return;
    }
    let usage = answer.usage();
    let [prompt, said, thought] = all;
    let said = said.unwrap_or(usage.completion_tokens.saturating_sub(usage.reasoning_tokens));
    if let Some(prompt) = prompt {
        usage.prompt_tokens = prompt.saturating_add(counts.tool_use_prompt_token_count.0.unwrap_or_default());
    }
    usage.cached_prompt_tokens = counts.cached_content_token_count.0.unwrap_or(usage.cached_prompt_tokens);
    usage.reasoning_tokens = thought.unwrap_or(usage.reasoning_tokens);
    usage.completion_tokens = said.saturating_add(usage.reasoning_tokens);
    usage.total_tokens = counts.total_token_count.0.unwrap_or(usage.total_tokens);
}
