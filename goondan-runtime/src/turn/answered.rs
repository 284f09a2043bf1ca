//! Finds the message that answers, in the conversation as middlewares have left it.

use std::sync::Arc;

use goondan_core::host::{ConversationExt, TurnResultExt};
use goondan_core::{Conversation, Message, Role, TurnResult};

/// The message of the conversation that the result of a turn has as its answer.
pub(super) struct TurnAnswer {
    /// Where the conversation ended when the turn began.
    start: usize,
    /// The message, and its position.
    found: Option<(usize, Arc<Message>)>,
    /// The number of message events when it was found.
    found_after: usize,
}

impl TurnAnswer {
    /// The answer of a turn that begins with this conversation.
    pub(super) fn new(conversation: &Conversation) -> Self {
        Self { start: conversation.base_end(), found: None, found_after: 0 }
    }

    pub(super) fn message(&self) -> Option<&Arc<Message>> {
        self.found.as_ref().map(|(_, message)| message)
    }

    /// Finds the message that answers.
    pub(super) fn find(&mut self, conversation: &Conversation) {
        self.found_after = conversation.events().len();
        let place = self.found.as_ref().map(|(place, _)| *place);
        let answer = answer_of_turn(conversation, self.start, place);
        self.found = answer.map(|(place, message)| (place, Arc::clone(message)));
    }

    /// Updates the answer of a result, if its message was changed or removed.
    pub(super) fn follow(&mut self, conversation: &Conversation, result: &mut TurnResult) {
        let unchanged = conversation.events().len() == self.found_after;
        if !unchanged && result.has_response(self.message()) {
            self.find(conversation);
            result.set_response(self.message().map(Arc::clone));
        }
    }
}

/// Returns the message of the assistant that answers the step whose model call began when the conversation ended at
/// `start`: the message that the model's answer became, or the last one that was added since.
pub(super) fn answer_of_step(conversation: &Conversation, start: usize) -> Option<&Arc<Message>> {
    find(conversation, start, Some(start), is_of_assistant).map(|(_, message)| message)
}

/// Returns the message that answers the turn which began when the conversation ended at `start`, with its position: the
/// message at `place`, where the answer was found before, or the last one. It has text.
fn answer_of_turn(conversation: &Conversation, start: usize, place: Option<usize>) -> Option<(usize, &Arc<Message>)> {
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
