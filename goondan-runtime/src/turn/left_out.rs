//! Files that are left out of a conversation, so that no provider refuses its requests because of them.
// REFUSED-01

use std::sync::Arc;

use goondan_core::host::{ConversationExt, MessageExt, Projection};
use goondan_core::{
    Conversation, Error, ErrorCode, FilePart, Message, MessageEvent, MessageId, Part, Source, TextPart,
};
use serde_json::Value;

use super::partial::PARTIAL;
use super::prepared::PREPARED_BY;

/// The metadata key of an answer's files that cannot be sent back to a model.
pub(super) const UNUSABLE_FILES: &str = "unusableFiles";

/// The metadata key of a message with files that a provider has refused. They are left out of requests, and replaced
/// once a provider has accepted a request without them.
const REFUSED_FILES: &str = "refusedFiles";

/// Gives the files of a model's answer the type of their content, and replaces those that have no such type by texts.
/// Returns the latter: nothing that a model made is lost.
#[inline]
pub(super) fn take_unusable(content: &mut [Part]) -> Vec<Value> {
    if !content.iter().any(|part| matches!(part, Part::File(_))) {
        return Vec::new();
    }
    let replaced = content.iter_mut().filter_map(|part| {
        let Part::File(file) = part else { return None };
        let problem = file.correct_type().err()?;
        let text = file.left_out(&problem);
        let mut kept = FilePart::new(&*file.media_type, std::mem::take(&mut file.url));
        kept.name = file.name.take();
        *part = Part::Text(text);
        serde_json::to_value(Part::from(kept)).ok()
    });
    replaced.collect()
}

/// The messages whose files a request leaves out.
pub(super) struct LeftOut {
    messages: Vec<MessageId>,
    /// Whether the provider has refused some of them in this step.
    is_new: bool,
}

impl LeftOut {
    /// Returns the messages with files that a provider has refused before, if there are some.
    pub(super) fn known(conversation: &Conversation) -> Option<Box<Self>> {
        let refused = unaccepted(conversation).filter(|message| message.metadata().contains_key(REFUSED_FILES));
        let messages: Vec<_> = refused.map(|message| message.id().clone()).collect();
        (!messages.is_empty()).then(|| Box::new(Self { messages, is_new: false }))
    }

    /// Returns the messages with files that no accepted request had, and those that the request left out, if the
    /// provider may have refused it because of the files in it.
    pub(super) fn refused(
        left_out: Option<&Self>,
        error: &Error,
        conversation: &Conversation,
        projection: Option<&Projection>,
    ) -> Option<Self> {
        let before = left_out.map(|left_out| &left_out.messages[..]).unwrap_or_default();
        if !is_about_content(error) || left_out.is_some_and(|left_out| left_out.is_new) {
            return None;
        }
        let new: Vec<_> = unaccepted(conversation).map(|message| message.id()).collect();
        // An addition of a projection is in one request alone.
        let is_new = |id: &MessageId| new.contains(&id) || conversation.find(id).is_none();
        let with_files = conversation.projected_messages(projection).filter(|message| message.content().has_files());
        let refused = with_files.map(|message| message.id()).filter(|id| is_new(id) && !before.contains(id));
        let refused: Vec<_> = refused.cloned().collect();
        (!refused.is_empty()).then(|| Self { messages: [before, &refused].concat(), is_new: true })
    }

    /// Returns the edits that make a request without the files, instead of `projection`.
    pub(super) fn applied(&self, conversation: &Conversation, projection: Option<Box<Projection>>) -> Box<Projection> {
        let messages = conversation.projected_messages(projection.as_deref());
        let without: Vec<_> = messages.filter_map(|message| self.without_files(message)).collect();
        let mut projection = projection.unwrap_or_default();
        without.into_iter().for_each(|message| projection.replace(conversation, message));
        projection
    }

    /// Returns the events that keep the outcome of the request: if it was accepted, the files are replaced for good;
    /// otherwise the next request leaves them out again.
    pub(super) fn events(&self, conversation: &Conversation, was_accepted: bool) -> Vec<MessageEvent> {
        let changed = unaccepted(conversation).filter_map(|message| match was_accepted {
            true => self.without_files(message),
            false if message.metadata().contains_key(REFUSED_FILES) => None,
            false => self.has(message).then(|| Message::clone(message).with_metadata(REFUSED_FILES, true)),
        });
        changed.map(|message| MessageEvent::replace(message.id().clone(), message)).collect()
    }

    fn has(&self, message: &Message) -> bool {
        self.messages.contains(message.id())
    }

    fn without_files(&self, message: &Message) -> Option<Message> {
        let content = self.has(message).then(|| message.content().replace_files(text))??;
        let mut message = message.clone().with_content(content);
        message.remove_metadata(REFUSED_FILES);
        Some(message)
    }
}

/// Returns the text that stands for a file which a provider has refused.
fn text(file: &FilePart) -> Option<TextPart> {
    Some(file.left_out("the model's provider refused a request that had it"))
}

/// Returns the messages that no accepted request had, newest first: the newest answer, and all that came after it. So
/// it is known after a restart, too.
fn unaccepted(conversation: &Conversation) -> impl Iterator<Item = &Arc<Message>> {
    let mut is_accepted = false;
    conversation.newest_first().take_while(move |message| !std::mem::replace(&mut is_accepted, is_answer(message)))
}

/// Whether a message is the answer of a model to a request, all of it.
fn is_answer(message: &Message) -> bool {
    matches!(message.source(), Source::Assistant { .. })
        && ![PARTIAL, PREPARED_BY].iter().any(|key| message.metadata().contains_key(*key))
}

/// Whether an error says that the provider refused the content of a request, and not its key, its model or its length
/// in tokens.
fn is_about_content(error: &Error) -> bool {
    let status = error.details().get("status").and_then(Value::as_u64);
    let refused = [ErrorCode::MODEL_REQUEST, ErrorCode::MODEL_REFUSED];
    match status {
        // The request is too large, as files make it.
        Some(413) => true,
        Some(400 | 415 | 422) => refused.contains(error.code()),
        Some(_) => false,
        None => *error.code() == ErrorCode::MODEL_REQUEST,
    }
}
