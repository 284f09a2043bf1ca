//! Members of a conversation for the runtime, which extensions do not see.

use std::borrow::Cow;
use std::sync::Arc;

use super::as_of::{AsOf, Mark};
use super::content::{Content, parts_of_models};
use super::event::MessageEvent;
use super::message::{Message, MessageData};
use super::projection::Projection;
use super::{Conversation, IdSet};
use crate::name::ToolCallId;

/// The members of a [`Conversation`] for the runtime.
pub trait ConversationExt {
    /// Returns the present moment.
    fn mark(&self) -> Mark;
    /// Returns the conversation as it was at `mark`.
    fn as_of(&self, mark: Mark) -> AsOf<'_>;
    /// Returns whether an extension may emit `event`: see [`Conversation::may_hold`].
    fn may_emit(&self, event: &MessageEvent) -> bool;
    /// Returns whether an extension may bring `content`: a part that only models can make must equal one that is in
    /// the conversation, or was in this turn.
    fn may_hold(&self, content: &Content) -> bool;
    /// Returns the position that the next message will have. Positions are valid until the turn is folded.
    fn end(&self) -> usize;
    /// Returns the current messages from `start` on, each with its position.
    fn messages_from(&self, start: usize) -> impl DoubleEndedIterator<Item = (usize, &Arc<Message>)>;
    /// Returns the current messages, newest first.
    fn newest_first(&self) -> impl Iterator<Item = &Arc<Message>>;
    /// Returns what is sent to a model with the edits of a projection.
    fn projected_input<'a>(&'a self, projection: Option<&'a Projection>) -> impl Iterator<Item = Cow<'a, MessageData>>;
    /// Returns whether a message has a call with this id, or its result.
    fn has_tool_call(&self, id: &ToolCallId) -> bool;
    /// Returns the ids of the tool calls without a result and the results without a call.
    fn orphan_ids(&self) -> Cow<'_, IdSet<ToolCallId>>;
}

impl ConversationExt for Conversation {
    fn mark(&self) -> Mark {
        Mark { end: self.end(), count: self.len(), events: self.events().len() }
    }

    fn as_of(&self, mark: Mark) -> AsOf<'_> {
        AsOf { conversation: self, mark }
    }

    #[inline]
    fn may_emit(&self, event: &MessageEvent) -> bool {
        let (MessageEvent::Append { message } | MessageEvent::Replace { message, .. }) = event else { return true };
        self.may_hold(message.content())
    }

    fn may_hold(&self, content: &Content) -> bool {
        let mut of_models = parts_of_models(content).peekable();
        if of_models.peek().is_none() {
            return true;
        }
        let emitted = self.events.iter().filter_map(|event| match event {
            MessageEvent::Append { message } | MessageEvent::Replace { message, .. } => Some(message),
            MessageEvent::Remove { .. } | MessageEvent::Truncate => None,
        });
        let known: Vec<_> = self.entries[..self.base_end].iter().flatten().chain(emitted).collect();
        of_models.all(|part| known.iter().any(|message| parts_of_models(message.content()).any(|known| known == part)))
    }

    #[inline]
    fn end(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    fn messages_from(&self, start: usize) -> impl DoubleEndedIterator<Item = (usize, &Arc<Message>)> {
        let positions = start.max(self.truncated_end)..self.entries.len();
        positions.filter_map(|position| Some((position, self.message(position)?)))
    }

    #[inline]
    fn newest_first(&self) -> impl Iterator<Item = &Arc<Message>> {
        (self.truncated_end..self.entries.len()).rev().filter_map(|position| self.message(position))
    }

    fn projected_input<'a>(&'a self, projection: Option<&'a Projection>) -> impl Iterator<Item = Cow<'a, MessageData>> {
        let orphans = projection.map_or_else(|| self.orphans(), |projection| projection.orphans(self));
        self.projected(projection).filter_map(move |message| orphans.visible(message))
    }

    #[inline]
    fn has_tool_call(&self, id: &ToolCallId) -> bool {
        self.pairs.contains(id)
    }

    fn orphan_ids(&self) -> Cow<'_, IdSet<ToolCallId>> {
        self.pairs.orphan_ids(|| self.messages().map(|message| &**message))
    }
}
