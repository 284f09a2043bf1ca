//! A member of an event that an answer does not need never changes or fails it: each one in the recordings is replaced
//! by every kind of JSON, removed and doubled.

use goondan_core::ModelFinish;
use goondan_covers::covers;
use goondan_libraries::runs;
use goondan_models::Answer;
use goondan_models::wire::{Anthropic, Chat, Converse, Dialect, Gemini, Responses, Wire};
use goondan_runtime::DeltaSink;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::{Value, json};

use crate::support::Recording;

/// How many variants of each interface are tried, unless `GOONDAN_RUNS` says how many.
const SAMPLE: u32 = 1_000;

/// The place of a value in an event: names of members, and indexes of elements.
type Place = Vec<String>;

/// Whether an answer needs the value at a place: text, a call, a signature, why the answer ended, a failure, or which
/// piece it belongs to.
type Needed = fn(&[String]) -> bool;

fn is_one_of(place: &[String], names: &[&str]) -> bool {
    place.iter().rfind(|step| step.parse::<usize>().is_err()).is_some_and(|name| names.contains(&&**name))
}

fn begins_with(place: &[String], names: &[&str]) -> bool {
    place.iter().zip(names).all(|(step, name)| step == name) && place.len() >= names.len()
}

fn anthropic(place: &[String]) -> bool {
    const NAMES: [&str; 16] = [
        "type",
        "index",
        "delta",
        "content_block",
        "content",
        "text",
        "thinking",
        "partial_json",
        "signature",
        "data",
        "id",
        "name",
        "input",
        "tool_use_id",
        "stop_reason",
        "error",
    ];
    let is_input = place.iter().any(|step| step == "input");
    is_input || (!begins_with(place, &["message"]) && is_one_of(place, &NAMES))
}

fn chat(place: &[String]) -> bool {
    const NAMES: [&str; 18] = [
        "type",
        "choices",
        "delta",
        "index",
        "content",
        "text",
        "thinking",
        "refusal",
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "summary",
        "data",
        "signature",
        "tool_calls",
        "function",
        "name",
        "arguments",
    ];
    let is_within = |name: &str| place.iter().any(|step| step == name);
    let is_call = is_within("arguments") || (is_one_of(place, &["id"]) && is_within("tool_calls"));
    is_call || is_one_of(place, &NAMES) || is_one_of(place, &["finish_reason", "error"])
}

fn converse(place: &[String]) -> bool {
    const NAMES: [&str; 15] = [
        "contentBlockStart",
        "contentBlockDelta",
        "contentBlockStop",
        "contentBlockIndex",
        "messageStop",
        "start",
        "delta",
        "text",
        "toolUse",
        "input",
        "name",
        "toolUseId",
        "reasoningContent",
        "signature",
        "stopReason",
    ];
    // A block without a name here, and the data of one that only the model can read.
    let is_block = place.iter().any(|step| ["toolResult", "partOfTomorrow", "redactedContent"].contains(&&**step));
    is_block || is_one_of(place, &NAMES) || (is_one_of(place, &["type"]) && begins_with(place, &["contentBlockStart"]))
}

fn gemini(place: &[String]) -> bool {
    const NAMES: [&str; 19] = [
        "candidates",
        "partOfTomorrow",
        "index",
        "content",
        "parts",
        "text",
        "thought",
        "thoughtSignature",
        "functionCall",
        "id",
        "name",
        "args",
        "willContinue",
        "inlineData",
        "fileData",
        "mimeType",
        "data",
        "fileUri",
        "finishReason",
    ];
    let is_piece = place.iter().any(|step| step == "partialArgs" || step == "args");
    is_piece || is_one_of(place, &NAMES) || is_one_of(place, &["error", "blockReason"])
}

fn responses(place: &[String]) -> bool {
    const NAMES: [&str; 21] = [
        "type",
        "item",
        "item_id",
        "id",
        "call_id",
        "output_index",
        "content_index",
        "summary_index",
        "delta",
        "part",
        "arguments",
        "name",
        "text",
        "refusal",
        "content",
        "summary",
        "encrypted_content",
        "result",
        "output_format",
        "error",
        "reason",
    ];
    let about = begins_with(place, &["response"]) && place.get(1).is_none_or(|name| name != "output");
    if about { is_one_of(place, &["error", "reason"]) } else { is_one_of(place, &NAMES) }
}

/// What happens to a value.
#[derive(Clone, Debug)]
enum Change {
    Replaced(Value),
    Removed,
    Doubled,
}

fn changes() -> Vec<Change> {
    let values = [json!(null), json!(true), json!(7), json!(-0.5), json!("x"), json!([1, ["x"]]), json!({ "x": [{}] })];
    values.into_iter().map(Change::Replaced).chain([Change::Removed, Change::Doubled]).collect()
}

/// Adds the places in `value` that are not needed, and returns whether something in it is.
fn unneeded(value: &Value, place: &mut Place, needed: Needed, places: &mut Vec<Place>) -> bool {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let mut any = false;
    for (step, child) in children {
        place.push(step);
        let is_needed = unneeded(child, place, needed, places) | needed(place);
        if !is_needed {
            places.push(place.clone());
        }
        any |= is_needed;
        place.pop();
    }
    any
}

/// Returns the text of an event with a change in one place.
fn changed(event: &Value, place: &Place, change: &Change) -> String {
    const DOUBLE: &str = "the same member again";
    let mut event = event.clone();
    let (last, path) = place.split_last().unwrap();
    let parent = event.pointer_mut(&path.iter().map(|step| format!("/{step}")).collect::<String>()).unwrap();
    match parent {
        Value::Object(members) => match change {
            Change::Replaced(value) => members[last] = value.clone(),
            Change::Removed => drop(members.shift_remove(last)),
            Change::Doubled => drop(members.insert(DOUBLE.to_owned(), members[last].clone())),
        },
        Value::Array(items) => {
            let index: usize = last.parse().unwrap();
            match change {
                Change::Replaced(value) => items[index] = value.clone(),
                Change::Removed => drop(items.remove(index)),
                Change::Doubled => items.insert(index, items[index].clone()),
            }
        }
        _ => unreachable!("only objects and lists have places"),
    }
    event.to_string().replace(DOUBLE, last)
}

/// What an answer is: its parts without what else their provider said of them, and why it ended.
type Said = (Vec<Value>, Option<ModelFinish>);

/// Decodes a stream of events.
fn said(wire: &impl Wire, events: &[(String, String)], needed: Needed) -> Result<Said, String> {
    fn answer<W: Wire>(_: &W, answer: Answer<'_>) -> Result<goondan_runtime::ModelResponse, String> {
        answer.into_response(W::API, "m").map_err(|failure| format!("{failure:?}"))
    }
    let mut growing = Answer::detached(DeltaSink::none()).repeatable(true);
    for (name, data) in events {
        if growing.is_ended() {
            break;
        }
        wire.event(name, data, &mut growing).map_err(|failure| format!("{failure:?}"))?;
    }
    if !growing.is_complete() {
        wire.closed(&mut growing);
    }
    let answer = answer(wire, growing)?;
    let mut parts: Vec<Value> = answer.content.iter().map(|part| json!(part)).collect();
    // An empty text says nothing. Members of a message that has no text are kept with one.
    parts.retain(|part| part["type"] != "text" || part["text"] != "");
    for part in &mut parts {
        let mut kept = Vec::new();
        if let Some(rest) = part.pointer_mut("/provider/rest").and_then(Value::as_object_mut) {
            rest.retain(|name, _| name != "aboutAnswer" && name != "candidate");
            needed_in(&rest.clone().into(), &mut Vec::new(), needed, &mut kept);
        }
        part["provider"] = kept.into();
    }
    Ok((parts, answer.finish_reason))
}

/// Adds the needed scalars of a value.
fn needed_in(value: &Value, place: &mut Place, needed: Needed, kept: &mut Vec<Value>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, value)| (index.to_string(), value)).collect(),
        Value::Null => return,
        scalar => {
            if needed(place) {
                kept.push(json!([place.last(), scalar]));
            }
            return;
        }
    };
    for (step, child) in children {
        place.push(step);
        needed_in(child, place, needed, kept);
        place.pop();
    }
}

fn no_member_matters(folder: &str, wire: &impl Wire, needed: Needed) {
    let recordings = Recording::all(folder);
    let mut variants = Vec::new();
    for (recording, number) in recordings.iter().zip(0..) {
        for (line, (_, event)) in recording.events().iter().enumerate() {
            let Ok(event) = serde_json::from_str::<Value>(event) else { continue };
            let mut places = Vec::new();
            unneeded(&event, &mut Vec::new(), needed, &mut places);
            // Without a reason to stop, it is the counts that tell a whole answer from one that was cut off.
            places.retain(|place| recording.name != "no-reason" || *place != ["usage"]);
            for place in places {
                variants.extend(changes().into_iter().map(|change| (number, line, place.clone(), change)));
            }
        }
    }
    let all = variants.len();
    let tried = usize::try_from(runs(SAMPLE)).unwrap().min(all);
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let events: Vec<_> = recordings.iter().map(Recording::events).collect();
    let expected: Vec<_> = events.iter().map(|events| said(wire, events, needed).unwrap()).collect();
    let mut wrong = Vec::new();
    for nth in 0..tried {
        let rest = u64::try_from(all - nth).unwrap();
        let (number, line, place, change) = variants.swap_remove(usize::try_from(random.next_u64() % rest).unwrap());
        let mut events = events[number].clone();
        let event = serde_json::from_str(&events[line].1).unwrap();
        events[line].1 = changed(&event, &place, &change);
        let said = said(wire, &events, needed);
        if said.as_ref() != Ok(&expected[number]) {
            let problem = said.err().unwrap_or_else(|| "another answer".to_owned());
            wrong.push(format!(
                "{} {}: {change:?} in line {line}: {problem}",
                recordings[number].name,
                place.join("/")
            ));
        }
    }
    println!("{folder}: {tried} of {all} variants of {} recordings", recordings.len());
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
#[covers("WIRE-01")]
fn no_member_of_anthropic_matters() {
    no_member_matters("anthropic", &Anthropic, anthropic);
}

#[test]
#[covers("WIRE-01")]
fn no_member_of_chat_matters() {
    no_member_matters("chat", &Chat::new(Dialect::OPENROUTER), chat);
}

#[test]
#[covers("WIRE-01")]
fn no_member_of_converse_matters() {
    no_member_matters("converse", &Converse, converse);
}

#[test]
#[covers("WIRE-01")]
fn no_member_of_gemini_matters() {
    no_member_matters("gemini", &Gemini, gemini);
}

#[test]
#[covers("WIRE-01")]
fn no_member_of_responses_matters() {
    no_member_matters("responses", &Responses, responses);
}
