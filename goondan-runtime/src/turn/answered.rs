//! Finds the message that answers, in what middlewares have made of the conversation.

use std::sync::Arc;

use goondan_core::host::ConversationExt;
use goondan_core::{Conversation, Message, Role};

/// Returns the message of the assistant that answers the step whose model call began when the conversation ended at
/// `start`: the message that the model's answer became, or the last one that was added since.
pub(super) fn answer_of_step(conversation: &Conversation, start: usize) -> Option<&Arc<Message>> {
    find(conversation, start, Some(start), is_of_assistant).map(|(_, message)| message)
}

/// Returns the message that answers the turn which began when the conversation ended at `start`, with its position: the
/// message at `place`, where the answer was found before, or the last one. It has text.
pub(super) fn answer_of_turn(
    conversation: &Conversation,
    start: usize,
    place: Option<usize>,
) -> Option<(usize, &Arc<Message>)> {
    find(conversation, start, place, |message| {
        is_of_assistant(message) && message.text().chars().any(|character| !character.is_whitespace())
    })
}

fn is_of_assistant(message: &Message) -> bool {
    message.role() == Role::Assistant
}

fn find(
    conversation: &Conversation,
    start: usize,
    place: Option<usize>,
    answers: impl Fn(&Message) -> bool,
) -> Option<(usize, &Arc<Message>)> {
    let in_place =
        place.and_then(|place| conversation.messages_from(place).next().filter(|(found, _)| *found == place));
    in_place
        .filter(|(_, message)| answers(message))
        .or_else(|| conversation.messages_from(start).rfind(|(_, message)| answers(message)))
}
