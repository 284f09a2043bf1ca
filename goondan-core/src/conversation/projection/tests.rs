//! A projection equals the conversation that its events would make.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::conversation::{Content, ConversationExt, Role, Source, TextPart, ToolCallPart, ToolOutput, ToolResultPart};

/// An event whose target is a message, by number.
#[derive(Clone, Debug)]
enum Edit {
    Append(Vec<Half>),
    Replace(usize, Vec<Half>),
    Remove(usize),
    Truncate,
}

#[derive(Clone, Copy, Debug)]
enum Half {
    Call(u8),
    Result(u8),
    Text,
}

fn edits(length: usize) -> impl Strategy<Value = Vec<Edit>> {
    let half =
        prop_oneof![4 => (0..4_u8).prop_map(Half::Call), 4 => (0..4_u8).prop_map(Half::Result), 1 => Just(Half::Text)];
    let halves = vec(half, 1..4);
    let edit = prop_oneof![
        6 => halves.clone().prop_map(Edit::Append),
        2 => (0..32_usize, halves).prop_map(|(target, halves)| Edit::Replace(target, halves)),
        4 => (0..32_usize).prop_map(Edit::Remove),
        1 => Just(Edit::Truncate),
    ];
    vec(edit, 0..length)
}

fn message(number: usize, halves: &[Half]) -> Message {
    let part = |half: &Half| match half {
        Half::Call(id) => ToolCallPart::new(id.to_string().into(), "a__b", json!({})).into(),
        Half::Result(id) => {
            let output = ToolOutput::Text("done".to_owned());
            ToolResultPart::new(id.to_string().into(), "a__b", output).into()
        }
        Half::Text => TextPart::new("text").into(),
    };
    let content = Content::from(halves.iter().map(part).collect::<Vec<_>>());
    Message::new(Role::Assistant, content, Source::System).with_id(format!("m{number}"))
}

/// Returns the event, whose target is one of the messages that there are or were.
fn event(number: usize, edit: &Edit) -> MessageEvent {
    let target = |target: &usize| format!("m{}", target % (number + 1));
    match edit {
        Edit::Append(halves) => MessageEvent::append(message(number, halves)),
        // Every other replacement keeps the id.
        Edit::Replace(index, halves) if index % 2 == 0 => {
            MessageEvent::replace(target(index), message(index % (number + 1), halves))
        }
        Edit::Replace(index, halves) => MessageEvent::replace(target(index), message(number, halves)),
        Edit::Remove(index) => MessageEvent::remove(target(index)),
        Edit::Truncate => MessageEvent::truncate(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_input_is_that_of_the_conversation_to_which_the_events_were_applied(
        base in edits(16), turn in edits(8), projected in edits(10),
    ) {
        let mut conversation = Conversation::default();
        let mut number = 0;
        for (edits, fold) in [(&base, true), (&turn, false)] {
            for edit in edits {
                conversation.apply(event(number, edit)).ok();
                number += 1;
            }
            if fold {
                conversation.fold();
            }
        }
        let before = format!("{conversation:?}");
        let (mut projection, mut events) = (Projection::default(), Vec::new());
        for (edit, number) in projected.iter().zip(number..) {
            let event = event(number, edit);
            let applied = projection.apply(&conversation, &event);
            events.push((event, applied.map_err(|error| error.code().clone())));
        }
        let sent: Vec<_> = conversation.projected_input(Some(&projection)).map(|data| data.into_owned()).collect();
        let kept: usize = conversation.len() - projection.left_out(&conversation).count() + projection.added().count();
        prop_assert_eq!(&before, &format!("{conversation:?}"));
        for (event, applied) in events {
            let expected = conversation.apply(event).map_err(|error| error.code().clone());
            prop_assert_eq!(applied, expected);
        }
        let expected: Vec<_> = conversation.model_input().map(|data| data.into_owned()).collect();
        prop_assert_eq!(sent, expected);
        prop_assert_eq!(kept, conversation.len());
    }
}
