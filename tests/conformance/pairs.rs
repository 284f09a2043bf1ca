//! PAIR-01: whatever is appended, replaced and removed, and however often a model uses one id, requests contain a
//! tool call only with its result, and a result only with its call.

use std::collections::HashMap;

use goondan::conversation::{
    Content, Conversation, Message, MessageEvent, Part, Role, Source, TextPart, ToolCallPart, ToolOutput,
    ToolResultPart,
};
use goondan::json;
use goondan_covers::covers;
use goondan_libraries::runs;
use proptest::collection::vec;
use proptest::prelude::*;

/// One event. A number selects one of the messages that exist.
#[derive(Clone, Debug)]
enum Edit {
    Append(Vec<Half>),
    Replace(usize, Vec<Half>),
    Remove(usize),
    Truncate,
    /// Ends the turn.
    Fold,
}

/// A part of a message: half of a pair, or text.
#[derive(Clone, Copy, Debug)]
enum Half {
    Call(u8),
    Result(u8),
    Text,
}

/// Generates edits with few ids, so that one id occurs often, and mostly with whole pairs.
fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let half = || prop_oneof![4 => (0..4_u8).prop_map(Half::Call), 4 => (0..4_u8).prop_map(Half::Result), 1 => Just(Half::Text)];
    let halves = move || vec(half(), 1..4);
    let pair = (0..4_u8).prop_map(|id| vec![Edit::Append(vec![Half::Call(id)]), Edit::Append(vec![Half::Result(id)])]);
    let one = prop_oneof![
        3 => halves().prop_map(Edit::Append),
        2 => (0..32_usize, halves()).prop_map(|(target, halves)| Edit::Replace(target, halves)),
        6 => (0..32_usize).prop_map(Edit::Remove),
        1 => Just(Edit::Truncate),
        2 => Just(Edit::Fold),
    ];
    let some = prop_oneof![2 => pair, 1 => one.prop_map(|edit| vec![edit])];
    vec(some, 0..24).prop_map(|edits| edits.into_iter().flatten().collect())
}

fn message(number: usize, halves: &[Half]) -> Message {
    let name = "a__b";
    let part = |half: &Half| match half {
        Half::Call(id) => ToolCallPart::new(id.to_string().into(), name, json!({})).into(),
        Half::Result(id) => {
            ToolResultPart::new(id.to_string().into(), name, ToolOutput::Text("done".to_owned())).into()
        }
        Half::Text => TextPart::new("text").into(),
    };
    let content: Vec<_> = halves.iter().map(part).collect();
    Message::new(Role::Assistant, content, Source::System).with_id(format!("m{number}"))
}

fn apply(conversation: &mut Conversation, number: usize, edit: &Edit) {
    let ids: Vec<_> = conversation.messages().map(|message| message.id().clone()).collect();
    let target = |target: &usize| ids.get(target % ids.len().max(1)).cloned().unwrap_or_else(|| "nobody".into());
    let event = match edit {
        Edit::Append(halves) => MessageEvent::append(message(number, halves)),
        Edit::Replace(index, halves) => MessageEvent::replace(target(index), message(number, halves)),
        Edit::Remove(index) => MessageEvent::remove(target(index)),
        Edit::Truncate => MessageEvent::truncate(),
        Edit::Fold => return conversation.fold(),
    };
    conversation.apply(event).unwrap();
}

/// Returns the number of calls and results, and the largest possible number of pairs: each result with a call before
/// it.
fn count<'a>(contents: impl Iterator<Item = &'a Content>) -> (usize, usize) {
    let (mut halves, mut pairs) = (0, 0);
    let mut open: HashMap<String, usize> = HashMap::new();
    for content in contents {
        let mut asked = Vec::new();
        for part in content.parts() {
            match part {
                Part::ToolCall(call) => asked.push(call.tool_call_id.to_string()),
                Part::ToolResult(result) => {
                    if let Some(open) = open.get_mut(result.tool_call_id.as_str()).filter(|open| **open > 0) {
                        *open -= 1;
                        pairs += 1;
                    }
                }
                _ => continue,
            }
            halves += 1;
        }
        // A result does not belong to a call in its own message.
        asked.into_iter().for_each(|id| *open.entry(id).or_default() += 1);
    }
    (halves, pairs)
}

#[test]
#[covers("PAIR-01")]
fn requests_contain_whole_pairs_and_all_of_them() {
    proptest!(ProptestConfig { cases: runs(100), failure_persistence: None, ..ProptestConfig::default() }, |(edits in edits())| {
        let mut conversation = Conversation::default();
        for (number, edit) in edits.iter().enumerate() {
            apply(&mut conversation, number, edit);
            let sent: Vec<_> = conversation.model_input().map(|data| data.content.clone()).collect();
            let (halves, pairs) = count(sent.iter());
            prop_assert_eq!(halves, 2 * pairs, "{:?}", sent);
            let (_, possible) = count(conversation.messages().map(|message| message.content()));
            prop_assert_eq!(pairs, possible, "a pair is missing");
        }
        // Results for the unanswered calls close the turn.
        for (number, call) in conversation.unanswered_calls().iter().enumerate() {
            let id = call.tool_call_id.as_str().parse().unwrap();
            apply(&mut conversation, 1000 + number, &Edit::Append(vec![Half::Result(id)]));
        }
        prop_assert_eq!(conversation.unanswered_calls(), vec![]);
    });
}
