//! Members of a conversation for the runtime, which extensions do not see.

use std::borrow::Cow;
use std::sync::Arc;

use super::Conversation;
use super::as_of::{AsOf, Mark};
use super::content::{Content, parts_within};
use super::event::MessageEvent;
use super::message::{Message, MessageData};
use super::part::Part;
use super::projection::Projection;
use crate::error::{Error, ErrorCode, Result};
use crate::name::{MessageId, ToolCallId};

/// The members of a [`Conversation`] for the runtime.
pub trait ConversationExt {
    /// Returns the present moment.
    fn mark(&self) -> Mark;
    /// Returns the conversation as it was at `mark`.
    fn as_of(&self, mark: Mark) -> AsOf<'_>;
    /// Checks an event that an extension emits.
    ///
    /// # Errors
    /// As [`check_brought`](Self::check_brought).
    fn check_emitted(&self, event: &MessageEvent) -> Result<()>;
    /// Checks content that an extension brings: a part that only models can make, or a file that cannot be used, must
    /// equal one that is in the conversation, or was in this turn.
    ///
    /// # Errors
    /// `E_MESSAGE_PART`, or `E_INPUT_FILE`.
    fn check_brought(&self, content: &Content) -> Result<()>;
    /// Returns the position that the next message will have. Positions are valid until the turn is folded.
    fn end(&self) -> usize;
    /// Returns the position after the last message of the base.
    fn base_end(&self) -> usize;
    /// Takes back all events of this turn but the first `keep`.
    ///
    /// # Errors
    /// When one of those cannot be applied again; the others are applied.
    fn keep_events(&mut self, keep: usize) -> Result<()>;
    /// Returns the conversation as it was after the first `count` events of this turn.
    fn at_event(&self, count: usize) -> Conversation;
    /// Returns the moment before the last `count` events, which only append.
    fn mark_before(&self, count: usize) -> Mark;
    /// Returns the current messages from `start` on, each with its position.
    fn messages_from(&self, start: usize) -> impl DoubleEndedIterator<Item = (usize, &Arc<Message>)>;
    /// Returns the position of the message with this id.
    fn position(&self, id: &MessageId) -> Option<usize>;
    /// Returns the message with this id.
    fn find(&self, id: &MessageId) -> Option<&Arc<Message>>;
    /// Returns the current messages, newest first.
    fn newest_first(&self) -> impl Iterator<Item = &Arc<Message>>;
    /// Returns the messages with the edits of a projection.
    fn projected_messages<'a>(&'a self, projection: Option<&'a Projection>) -> impl Iterator<Item = &'a Arc<Message>>;
    /// Returns the messages that are sent to a model with the edits of a projection.
    fn projected_input<'a>(&'a self, projection: Option<&'a Projection>) -> impl Iterator<Item = Cow<'a, MessageData>>;
    /// Returns the messages that are sent to a model with the edits of a projection, each with the part of it that is
    /// sent, unless that is all.
    fn projected_visible<'a>(
        &'a self,
        projection: Option<&'a Projection>,
    ) -> impl Iterator<Item = (&'a Arc<Message>, Option<MessageData>)>;
    /// Returns whether a message has a call with this id, or its result.
    fn has_tool_call(&self, id: &ToolCallId) -> bool;
    /// Returns the ids of the tool calls without a result and the results without a call.
    fn orphan_ids(&self) -> Cow<'_, [ToolCallId]>;
}

impl ConversationExt for Conversation {
    fn mark(&self) -> Mark {
        Mark { end: self.end(), count: self.len(), events: self.events().len() }
    }

    fn as_of(&self, mark: Mark) -> AsOf<'_> {
        AsOf { conversation: self, mark }
    }

    #[inline]
    fn check_emitted(&self, event: &MessageEvent) -> Result<()> {
        let (MessageEvent::Append { message } | MessageEvent::Replace { message, .. }) = event else { return Ok(()) };
        self.check_brought(message.content())
    }

    #[inline]
    fn check_brought(&self, content: &Content) -> Result<()> {
        // Anyone can write plain text.
        if content.as_plain().is_some() { Ok(()) } else { self.check_parts(content) }
    }

    #[inline]
    fn end(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    fn base_end(&self) -> usize {
        self.base_end
    }

    fn keep_events(&mut self, keep: usize) -> Result<()> {
        if keep >= self.events.len() {
            return Ok(());
        }
        let events = std::mem::take(&mut self.events);
        *self = self.of_base();
        events.into_iter().take(keep).try_for_each(|event| self.apply(event).map(drop))
    }

    fn at_event(&self, count: usize) -> Conversation {
        let mut conversation = self.of_base();
        for event in self.events.iter().take(count) {
            // Each was applied to the same conversation before.
            _ = conversation.apply(event.clone());
        }
        conversation
    }

    fn mark_before(&self, count: usize) -> Mark {
        let Mark { end, count: messages, events } = self.mark();
        Mark { end: end - count, count: messages - count, events: events - count }
    }

    #[inline]
    fn messages_from(&self, start: usize) -> impl DoubleEndedIterator<Item = (usize, &Arc<Message>)> {
        let positions = start.max(self.truncated_end)..self.entries.len();
        positions.filter_map(|position| Some((position, self.message(position)?)))
    }

    fn position(&self, id: &MessageId) -> Option<usize> {
        self.position_of(id)
    }

    fn find(&self, id: &MessageId) -> Option<&Arc<Message>> {
        self.message(self.position_of(id)?)
    }

    #[inline]
    fn newest_first(&self) -> impl Iterator<Item = &Arc<Message>> {
        (self.truncated_end..self.entries.len()).rev().filter_map(|position| self.message(position))
    }

    fn projected_messages<'a>(&'a self, projection: Option<&'a Projection>) -> impl Iterator<Item = &'a Arc<Message>> {
        self.projected(projection)
    }

    fn projected_input<'a>(&'a self, projection: Option<&'a Projection>) -> impl Iterator<Item = Cow<'a, MessageData>> {
        let orphans = projection.map_or_else(|| self.orphans(), |projection| projection.orphans(self));
        self.projected(projection).filter_map(move |message| orphans.visible(message))
    }

    fn projected_visible<'a>(
        &'a self,
        projection: Option<&'a Projection>,
    ) -> impl Iterator<Item = (&'a Arc<Message>, Option<MessageData>)> {
        let orphans = projection.map_or_else(|| self.orphans(), |projection| projection.orphans(self));
        self.projected(projection).filter_map(move |message| match orphans.visible(message)? {
            Cow::Borrowed(_) => Some((message, None)),
            Cow::Owned(data) => Some((message, Some(data))),
        })
    }

    #[inline]
    fn has_tool_call(&self, id: &ToolCallId) -> bool {
        self.pairs.contains(id)
    }

    fn orphan_ids(&self) -> Cow<'_, [ToolCallId]> {
        self.pairs.orphan_ids(|| self.messages().map(|message| &**message))
    }
}

impl Conversation {
    /// Returns the conversation at the start of this turn.
    fn of_base(&self) -> Self {
        Self::from_base(self.entries[..self.base_end].iter().flatten().cloned()).0
    }

    /// Checks that an extension may bring these parts: those that it may not are in the base, or in an event of this
    /// turn.
    fn check_parts(&self, content: &Content) -> Result<()> {
        let mut refused = parts_within(content).filter_map(|part| Some((part, refusal(part)?))).peekable();
        if refused.peek().is_none() {
            return Ok(());
        }
        let emitted = self.events.iter().filter_map(|event| match event {
            MessageEvent::Append { message } | MessageEvent::Replace { message, .. } => Some(message),
            MessageEvent::Remove { .. } | MessageEvent::Truncate => None,
        });
        let known: Vec<_> = self.entries[..self.base_end].iter().flatten().chain(emitted).collect();
        let is_known =
            |part: &Part| known.iter().any(|message| parts_within(message.content()).any(|known| known == part));
        match refused.find(|(part, _)| !is_known(part)) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }
}

/// Returns why an extension cannot bring a part, unless the conversation has it already.
fn refusal(part: &Part) -> Option<Error> {
    if part.is_of_model() {
        let message =
            "a message holds reasoning, or data of a model's provider, that no model has put into the conversation";
        let error = Error::new(ErrorCode::MESSAGE_PART, message);
        return Some(error.suggest("copy such a part unchanged from a message of the conversation, or leave it out"));
    }
    match part {
        Part::File(file) => file.check().err(),
        _ => None,
    }
}
