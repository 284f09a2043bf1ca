//! Answers of OpenAI.

use goondan_core::ModelFinish;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::provided::Provided;
use super::{IMAGE, Listed, MESSAGE, REASONING, text_member};
use crate::answer::{Answer, Key};
use crate::http::Failure;
use crate::wire::Text;
use crate::wire::legal::is_word;
use crate::wire::maybe::Maybe;

/// The type of an event.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(default, borrow, rename = "type")]
    kind: Option<Text<'a>>,
    /// Some gateways report failures so, without a type.
    #[serde(default)]
    error: Option<Value>,
}

/// A piece of an item, or the beginning of an entry of it.
#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(default, borrow)]
    item_id: Option<Text<'a>>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default)]
    content_index: u64,
    #[serde(default)]
    summary_index: u64,
    #[serde(default, borrow)]
    delta: Option<Text<'a>>,
    #[serde(default, borrow)]
    arguments: Option<Text<'a>>,
    #[serde(default, borrow)]
    part: Option<Entry<'a>>,
}

impl Piece<'_> {
    /// Returns the index of the item. Some servers send none: then the id of the item counts.
    fn index(&self, answer: &Answer<'_>) -> u64 {
        let known = match &self.item_id {
            Some(id) => answer.find(id),
            None => answer.newest(),
        };
        self.output_index.unwrap_or_else(|| known.map_or_else(|| next_index(answer), Key::index))
    }
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    output_index: Option<u64>,
    item: Map<String, Value>,
}

impl Item {
    /// Returns the index of the item. Without one, it is the item with the same id, or a new one.
    fn index(&self, answer: &Answer<'_>) -> u64 {
        let with = |member| self.item.get(member).and_then(Value::as_str).and_then(|id| answer.find(id));
        let known = || with("id").or_else(|| with("call_id"));
        self.output_index.unwrap_or_else(|| known().map_or_else(|| next_index(answer), Key::index))
    }
}

fn next_index(answer: &Answer<'_>) -> u64 {
    answer.newest().map_or(0, |newest| newest.index() + 1)
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(default, borrow)]
    response: Maybe<Response<'a>>,
}

#[derive(Default, Deserialize)]
struct Response<'a> {
    #[serde(default, borrow)]
    model: Maybe<Text<'a>>,
    #[serde(default)]
    output: Option<Value>,
    #[serde(default)]
    usage: Maybe<Usage>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default, borrow)]
    incomplete_details: Maybe<Incomplete<'a>>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(default, borrow)]
    reason: Maybe<Text<'a>>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: Maybe<u64>,
    #[serde(default)]
    input_tokens_details: Maybe<InputDetails>,
    #[serde(default)]
    output_tokens: Maybe<u64>,
    #[serde(default)]
    output_tokens_details: Maybe<OutputDetails>,
    #[serde(default)]
    total_tokens: Maybe<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Maybe<u64>,
    #[serde(default)]
    cache_write_tokens: Maybe<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Maybe<u64>,
}

/// Reads one event. Pieces are a preview: each item comes again as a whole when it is done, and with the response.
pub(super) fn event(name: &str, data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
    if name == "error" || name.starts_with("response.") {
        return named(name, data, answer);
    }
    if data == "[DONE]" {
        // Servers that speak chat completions as well end all streams so.
        return Ok(());
    }
    let event: Kind<'_> = read(data)?;
    match (event.kind, event.error) {
        (Some(kind), _) => named(&kind, data, answer),
        (None, Some(report)) => Err(Failure::from_event(&report)),
        (None, None) => Ok(()),
    }
}

fn named(kind: &str, data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
    match kind {
        "response.output_text.delta" => text("output_text", &read(data)?, answer),
        "response.refusal.delta" => text("refusal", &read(data)?, answer),
        "response.content_part.added" => entry(&read(data)?, answer),
        "response.reasoning_summary_part.added" | "response.reasoning_summary_text.delta" => {
            let piece: Piece<'_> = read(data)?;
            reasoning("summary", piece.summary_index, &piece, answer);
        }
        "response.reasoning_text.delta" => {
            let piece: Piece<'_> = read(data)?;
            reasoning("content", piece.content_index, &piece, answer);
        }
        "response.function_call_arguments.delta" => {
            let piece: Piece<'_> = read(data)?;
            answer.grow(piece.index(answer), piece.delta.as_deref().unwrap_or_default());
        }
        "response.function_call_arguments.done" => {
            let piece: Piece<'_> = read(data)?;
            answer.set(piece.index(answer), piece.arguments.as_deref().unwrap_or_default());
        }
        "response.output_item.added" | "response.output_item.done" => {
            let item: Item = read(data)?;
            whole(item.index(answer), item.item, answer);
        }
        "response.created" => {
            answer.restart("the provider began its answer again");
            // Until an item says otherwise.
            answer.finish(ModelFinish::Stop);
            if let Some(model) = response(data)?.model.0 {
                answer.model(&model);
            }
        }
        "response.completed" => end(response(data)?, answer),
        "response.incomplete" => incomplete(response(data)?, answer),
        "response.failed" => {
            let report = response(data)?.error;
            return Err(Failure::from_event(&report.unwrap_or_default()));
        }
        "error" => {
            let mut event: Map<String, Value> = read(data)?;
            // The event has the type.
            event.remove("type");
            let report = event.remove("error").filter(Value::is_object).unwrap_or(Value::Object(event));
            return Err(Failure::from_event(&report));
        }
        // Entries and texts that are done, annotations, the progress of work at the provider: the item has it all.
        // Kinds that do not exist yet.
        _ => {}
    }
    Ok(())
}

fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, Failure> {
    serde_json::from_str(data).map_err(Failure::unreadable)
}

/// Returns the response in an event.
fn response(data: &str) -> Result<Response<'_>, Failure> {
    Ok(read::<Event<'_>>(data)?.response.0.unwrap_or_default())
}

/// Opens an entry of an item.
fn entry(piece: &Piece<'_>, answer: &mut Answer<'_>) {
    match piece.part.as_ref().map(|part| &*part.kind) {
        Some("reasoning_text") => reasoning("content", piece.content_index, piece, answer),
        Some(kind @ ("output_text" | "refusal")) => text(kind, piece, answer),
        Some(kind) => {
            let key = (piece.index(answer), piece.content_index);
            if !answer.has(key) {
                // It comes with the item. This is its place.
                answer.open_block(key, begun("content", kind, piece));
            }
        }
        None => {}
    }
}

/// Adds a piece to an entry of a message, which is opened with its first piece.
fn text(kind: &str, piece: &Piece<'_>, answer: &mut Answer<'_>) {
    let key = (piece.index(answer), piece.content_index);
    if !answer.has(key) {
        answer.open_text(key, begun("content", kind, piece));
    }
    answer.grow(key, piece.delta.as_deref().unwrap_or_default());
}

/// Adds a piece to an entry of reasoning. The first entry is opened with the item.
fn reasoning(list: &str, index: u64, piece: &Piece<'_>, answer: &mut Answer<'_>) {
    let key = (piece.index(answer), index);
    if !answer.has(key) {
        let kind = if list == "summary" { "summary_text" } else { "reasoning_text" };
        answer.open_reasoning(key, begun(list, kind, piece));
    }
    answer.grow(key, piece.delta.as_deref().unwrap_or_default());
}

/// Returns the rest of an entry whose beginning is known.
fn begun(list: &str, kind: &str, piece: &Piece<'_>) -> Map<String, Value> {
    let id = piece.item_id.as_deref().map(|id| ("id".to_owned(), id.into()));
    let entry = Map::from_iter([("type".to_owned(), kind.into())]);
    id.into_iter().chain([(list.to_owned(), entry.into())]).collect()
}

/// Takes over an item as a whole, be it new or known.
fn whole(index: u64, mut item: Map<String, Value>, answer: &mut Answer<'_>) {
    match item.get("type").and_then(Value::as_str) {
        Some("message") => {
            if item.get("role").is_some_and(|role| role == "assistant") {
                item.shift_remove("role");
            }
            entries(index, item, &MESSAGE, answer);
        }
        Some("reasoning") => entries(index, item, &REASONING, answer),
        Some("function_call") => call(index, item, answer),
        Some(IMAGE) => image(index, item, answer),
        Some(kind) if let Some(provided) = offered(kind, &item, answer) => provided_call(index, provided, item, answer),
        _ => part(index, "", item, answer, Answer::open_block),
    }
}

/// Takes over an item whose entries are parts.
fn entries<'a>(index: u64, mut item: Map<String, Value>, listed: &Listed, answer: &mut Answer<'a>) {
    item.shift_remove("type");
    let mut entries = Vec::new();
    for list in listed.lists {
        // An empty list stays with the item.
        let is_filled = item.get(*list).and_then(Value::as_array).is_some_and(|values| !values.is_empty());
        if is_filled && let Some(Value::Array(values)) = item.shift_remove(*list) {
            entries.extend(values.into_iter().filter(Value::is_object).map(|value| (*list, value)));
        }
    }
    if entries.is_empty() && listed.kind == REASONING.kind {
        // Its text is withheld, or is yet to come. A message without content says nothing.
        return part(index, "", item, answer, Answer::open_reasoning);
    }
    let id = item.get("id").cloned();
    let mut rest = item;
    for (nth, (list, mut entry)) in (0..).zip(entries) {
        let kind = entry.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind == "refusal" && !answer.has_calls() {
            answer.finish(ModelFinish::Refusal);
        }
        let member = text_member(kind).filter(|member| entry[*member].is_string());
        let text = member.and_then(|member| entry.as_object_mut()?.shift_remove(member));
        let open: fn(&mut Answer<'a>, Key, Map<String, Value>) = match &text {
            None => Answer::open_block,
            Some(_) if listed.kind == REASONING.kind => Answer::open_reasoning,
            Some(_) => Answer::open_text,
        };
        if text.is_none() {
            rest.shift_insert(0, "type".to_owned(), listed.kind.into());
        }
        rest.insert(list.to_owned(), entry);
        part((index, nth), text.as_ref().and_then(Value::as_str).unwrap_or_default(), rest, answer, open);
        rest = id.iter().map(|id| ("id".to_owned(), id.clone())).collect();
    }
}

/// Takes over a call.
fn call(index: u64, mut item: Map<String, Value>, answer: &mut Answer<'_>) {
    let mut take = |member: &str| match item.shift_remove(member) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    };
    take("type");
    let (id, name, arguments) = (take("call_id"), take("name"), take("arguments"));
    if serde_json::from_str(&arguments).is_ok_and(|json: Value| format!("{json}") != arguments) {
        // They are stored as JSON, and go back as they came.
        item.insert("arguments".to_owned(), arguments.clone().into());
    }
    answer.finish(ModelFinish::ToolCalls);
    part(index, &arguments, item, answer, |answer, key, rest| answer.open_call(key, &id, name, rest));
}

/// Returns the tool of OpenAI that an item calls, if a tool of the step is that tool. Others are blocks, and so
/// are calls that run in a container of OpenAI.
fn offered(kind: &str, item: &Map<String, Value>, answer: &Answer<'_>) -> Option<&'static Provided> {
    let provided = Provided::of_call(kind)?;
    item.get("environment").and_then(|place| place.get("type")).is_none_or(|place| place == "local").then_some(())?;
    answer.tool_of_step(|tool| tool.kind == provided.tool).map(|_| provided)
}

/// Takes over a call of a tool of OpenAI that the program runs. Its arguments arrive whole.
fn provided_call(index: u64, provided: &'static Provided, mut item: Map<String, Value>, answer: &mut Answer<'_>) {
    let arguments = item.shift_remove(provided.arguments).unwrap_or_default().to_string();
    let id = match item.shift_remove("call_id") {
        Some(Value::String(id)) => id,
        _ => String::new(),
    };
    let is_done = item.get("status").is_none_or(|status| status != "in_progress");
    answer.finish(ModelFinish::ToolCalls);
    let arguments = if is_done { &*arguments } else { "" };
    part(index, arguments, item, answer, |answer, key, rest| answer.open_call(key, &id, provided.tool, rest));
}

/// Takes over an image, which is a block until it is made.
fn image(index: u64, mut item: Map<String, Value>, answer: &mut Answer<'_>) {
    let image = item.get("result").and_then(Value::as_str).filter(|image| !image.is_empty()).map(|image| {
        let format = item.get("output_format").and_then(Value::as_str).filter(|format| is_word(format, 16));
        let media_type = format!("image/{}", format.unwrap_or("png"));
        let url = format!("data:{media_type};base64,{image}");
        (media_type, url)
    });
    if image.is_some() {
        item.shift_remove("result");
    }
    part(index, "", item, answer, Answer::open_block);
    if let Some((media_type, url)) = image {
        answer.become_file(index, media_type, url);
    }
}

/// Opens a part with a text, or replaces the text so far.
fn part<'a>(
    key: impl Into<Key>,
    text: &str,
    rest: Map<String, Value>,
    answer: &mut Answer<'a>,
    open: impl FnOnce(&mut Answer<'a>, Key, Map<String, Value>),
) {
    let key = key.into();
    if answer.has(key) {
        answer.set(key, text);
    } else {
        open(answer, key, Map::new());
        answer.grow(key, text);
    }
    if let Some(known) = answer.rest(key) {
        *known = rest;
    }
}

/// Reads a response that ended early.
fn incomplete(response: Response<'_>, answer: &mut Answer<'_>) {
    let finish = match response.incomplete_details.0.as_ref().and_then(|details| details.reason.0.as_deref()) {
        Some("max_output_tokens") => ModelFinish::Length,
        Some("content_filter") => ModelFinish::ContentFilter,
        _ => ModelFinish::Other,
    };
    end(response, answer);
    answer.finish(finish);
}

/// Reads the end of a response, which has the items once more.
fn end(response: Response<'_>, answer: &mut Answer<'_>) {
    if let Some(model) = response.model.0 {
        answer.model(&model);
    }
    let items = match response.output {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    // OpenAI leaves out items that had an index in the stream, and some gateways rename or leave out items here. Each
    // item was read when it was done, so the list is read only if nothing else was, or if its items are the known ones.
    let is_known = answer.is_empty()
        || (0..).zip(&items).all(|(index, item)| {
            let id = answer.rest(index).and_then(|rest| rest.get("id"));
            id.is_some() && id == item.get("id")
        });
    for (index, item) in (0..).zip(items).filter(|_| is_known) {
        if let Value::Object(item) = item {
            whole(index, item, answer);
        }
    }
    if let Some(counts) = response.usage.0 {
        count(&counts, answer);
    }
    answer.end();
}

/// Takes over counts, unless none can be read.
fn count(counts: &Usage, answer: &mut Answer<'_>) {
    let known = [counts.input_tokens.0, counts.output_tokens.0, counts.total_tokens.0];
    let [input, output, total] = known.map(Option::unwrap_or_default);
    if known == [None; 3] {
        return;
    }
    let usage = answer.usage();
    (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) = (input, output, total);
    let details = counts.input_tokens_details.0.unwrap_or_default();
    usage.cached_prompt_tokens = details.cached_tokens.0.unwrap_or_default();
    usage.cache_write_tokens = details.cache_write_tokens.0.unwrap_or_default();
    let details = counts.output_tokens_details.0.unwrap_or_default();
    usage.reasoning_tokens = details.reasoning_tokens.0.unwrap_or_default();
}
