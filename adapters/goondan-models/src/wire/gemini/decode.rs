//! Answers of Gemini.

use goondan_core::ModelFinish;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{CANDIDATE, INLINE, LINKED, SIGNATURE, calls, drop_empty, take_text};
use crate::answer::{Answer, Key};
use crate::http::{Failure, FailureKind};
use crate::wire::Text;

/// An event: what is new of the answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(default, borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(default, borrow)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(default)]
    usage_metadata: Option<Usage>,
    #[serde(default, borrow)]
    model_version: Option<Text<'a>>,
    #[serde(default, borrow)]
    response_id: Option<Text<'a>>,
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
    /// What the provider says about the answer.
    #[serde(flatten)]
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(default, borrow)]
    parts: Option<Vec<Part<'a>>>,
}

/// A part, of which most are texts.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(default, borrow)]
    text: Option<Text<'a>>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(default, borrow)]
    block_reason: Option<Text<'a>>,
    #[serde(default, borrow)]
    block_reason_message: Option<Text<'a>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    /// With the tokens of the cache.
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    cached_content_token_count: Option<u64>,
    /// What the tools that run at the provider added to the prompt.
    #[serde(default)]
    tool_use_prompt_token_count: Option<u64>,
    /// Without the tokens of reasoning.
    #[serde(default)]
    candidates_token_count: Option<u64>,
    #[serde(default)]
    thoughts_token_count: Option<u64>,
    #[serde(default)]
    total_token_count: Option<u64>,
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
    let id = event.response_id.map(|id| id.to_string());
    if let Some(report) = &event.error {
        return Err(Failure::from_event(report).with_request_id(id));
    }
    if let Some(id) = &id {
        answer.request_id(&**id);
    }
    if let Some(model) = event.model_version {
        answer.model(&*model);
    }
    if let Some(counts) = event.usage_metadata {
        count(counts, answer);
    }
    let candidates = event.candidates.unwrap_or_default();
    if candidates.is_empty()
        && let Some(failure) = event.prompt_feedback.and_then(blocked)
    {
        return Err(failure.with_request_id(id));
    }
    // Others are further answers to the same request, of which a conversation has one.
    for candidate in candidates.into_iter().filter(|candidate| candidate.index.unwrap_or_default() == 0) {
        for part in candidate.content.and_then(|content| content.parts).unwrap_or_default() {
            match part.text {
                Some(text) => say(&text, part.rest, answer),
                None => open(part.rest, answer)?,
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
    let reason = feedback.block_reason?;
    let more = feedback.block_reason_message.map(|message| format!(" ({})", &*message)).unwrap_or_default();
    Some(Failure::new(FailureKind::Refused, format!("the provider blocked the prompt: {}{more}", &*reason)))
}

/// Adds a text to the one before it, or opens a new one.
fn say(text: &str, rest: Map<String, Value>, answer: &mut Answer<'_>) {
    let kind = if is_thought(&rest) { REASONING } else { TEXT };
    if is_plain(&rest) {
        let last = newest(kind, answer);
        if answer.rest(last).is_some_and(|known| is_plain(known)) {
            return answer.grow(last, text);
        }
        if text.is_empty() {
            return;
        }
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
    rest.get("thought") == Some(&Value::Bool(true))
}

/// Whether a text has no members of its own, so that it is one with its neighbour.
fn is_plain(rest: &Map<String, Value>) -> bool {
    rest.keys().all(|name| name == "thought" || name == CANDIDATE)
}

/// Opens a part without text, or adds it to the newest one.
fn open(mut rest: Map<String, Value>, answer: &mut Answer<'_>) -> Result<(), Failure> {
    if rest.keys().all(|name| name == "thought" || name == SIGNATURE) {
        // A signature alone belongs to an empty text.
        say("", rest, answer);
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

/// Keeps what the provider says about the answer with the newest part.
fn note(mut metadata: Map<String, Value>, answer: &mut Answer<'_>) {
    // Every event repeats these, and nothing reads them.
    let repeated = ["safetyRatings", "tokenCount", "avgLogprobs"];
    metadata.retain(|name, value| !value.is_null() && !repeated.contains(&name.as_str()));
    if metadata.is_empty() {
        return;
    }
    let key = [TEXT, REASONING, OTHER].into_iter().map(|kind| newest(kind, answer)).find(|key| answer.has(*key));
    if let Some(rest) = key.and_then(|key| answer.rest(key)) {
        add(rest.entry(CANDIDATE).or_insert(Value::Null), Value::Object(metadata));
    }
}

/// Merges new metadata into what is known: some events have the new items of a list, and some the whole list.
fn add(known: &mut Value, new: Value) {
    match (known, new) {
        (Value::Object(known), Value::Object(new)) => {
            for (name, value) in new {
                add(known.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(known), Value::Array(new)) => {
            for item in new {
                if !known.contains(&item) {
                    known.push(item);
                }
            }
        }
        (known, new) => *known = new,
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
    let usage = answer.usage();
    let said = counts.candidates_token_count.unwrap_or(usage.completion_tokens.saturating_sub(usage.reasoning_tokens));
    if let Some(prompt) = counts.prompt_token_count {
        usage.prompt_tokens = prompt.saturating_add(counts.tool_use_prompt_token_count.unwrap_or_default());
    }
    usage.cached_prompt_tokens = counts.cached_content_token_count.unwrap_or(usage.cached_prompt_tokens);
    usage.reasoning_tokens = counts.thoughts_token_count.unwrap_or(usage.reasoning_tokens);
    usage.completion_tokens = said.saturating_add(usage.reasoning_tokens);
    usage.total_tokens = counts.total_token_count.unwrap_or(usage.total_tokens);
}
