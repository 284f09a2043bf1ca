//! Edits of the messages that one model call is sent, laid over a conversation that does not change.
// PROJ-01, D-27

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::event::MessageEvent;
use super::message::Message;
use super::pairs::{Orphans, match_in_order};
use super::{Applied, Conversation, IdMap, IdSet, duplicate};
use crate::error::Result;
use crate::name::{MessageId, ToolCallId};

/// Message events applied to a conversation without changing it. It has the size of the edits: messages that they do
/// not name are read from the conversation.
#[derive(Default)]
pub struct Projection {
    /// Messages of the conversation below this position are left out.
    start: usize,
    /// Messages of the conversation that were replaced, or removed (`None`), by position.
    changed: BTreeMap<usize, Option<Arc<Message>>>,
    /// Messages after those of the conversation; `None` where one was removed again.
    appended: Vec<Option<Arc<Message>>>,
    /// The messages of the edits.
    places: IdMap<MessageId, Place>,
    /// The tool calls that the edits add, change or remove a part of.
    touched: IdSet<ToolCallId>,
}

/// Where a message of a projection is.
#[derive(Clone, Copy)]
enum Place {
    /// At a position of the conversation.
    Conversation(usize),
    /// In `appended`.
    Appended(usize),
}

impl Projection {
    /// Applies an edit, after those before.
    ///
    /// # Errors
    /// As [`Conversation::apply`].
    #[inline]
    pub fn apply(&mut self, conversation: &Conversation, event: &MessageEvent) -> Result<Applied> {
        match event {
            MessageEvent::Append { message } => {
                let is_there = self.find_in(conversation, message.id()).is_some();
                match self.places.entry(message.id().clone()) {
                    Entry::Vacant(place) if !is_there => place.insert(Place::Appended(self.appended.len())),
                    _ => return Err(duplicate(message.id())),
                };
                self.touch(message);
                self.appended.push(Some(Arc::clone(message)));
                Ok(Applied::Done)
            }
            MessageEvent::Truncate => {
                *self = Self { start: conversation.entries.len(), ..Self::default() };
                Ok(Applied::Done)
            }
            MessageEvent::Remove { target_id } => Ok(self.put(conversation, target_id, None)),
            MessageEvent::Replace { target_id, message } => {
                if message.id() != target_id && self.find(conversation, message.id()).is_some() {
                    return Err(duplicate(message.id()));
                }
                Ok(self.put(conversation, target_id, Some(message)))
            }
        }
    }

    /// Replaces a message, whose id stays. Nothing happens if it is not there.
    pub fn replace(&mut self, conversation: &Conversation, message: Message) {
        let message = Arc::new(message);
        self.put(conversation, message.id(), Some(&message));
    }

    fn find(&self, conversation: &Conversation, id: &MessageId) -> Option<Place> {
        self.places.get(id).copied().or_else(|| self.find_in(conversation, id).map(Place::Conversation))
    }

    /// Returns the position of a message of the conversation that no edit has changed.
    fn find_in(&self, conversation: &Conversation, id: &MessageId) -> Option<usize> {
        let position = conversation.position_of(id)?;
        (position >= self.start && !self.changed.contains_key(&position)).then_some(position)
    }

    /// Replaces the message `target`, or removes it when `successor` is `None`.
    fn put(&mut self, conversation: &Conversation, target: &MessageId, successor: Option<&Arc<Message>>) -> Applied {
        let Some(place) = self.find(conversation, target) else { return Applied::TargetNotFound };
        let old = match place {
            Place::Conversation(position) => self
                .changed
                .insert(position, successor.cloned())
                .unwrap_or_else(|| conversation.message(position).cloned()),
            Place::Appended(index) => std::mem::replace(&mut self.appended[index], successor.cloned()),
        };
        self.places.remove(target);
        if let Some(new) = successor {
            self.places.insert(new.id().clone(), place);
        }
        old.iter().chain(successor).for_each(|message| self.touch(message));
        Applied::Done
    }

    fn touch(&mut self, message: &Message) {
        self.touched.extend(super::pairs::halves(message).map(|(id, _)| id.clone()));
    }

    /// Returns the first position of the conversation that may have a message.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Returns the message at a position of the conversation.
    pub(super) fn message<'a>(&'a self, conversation: &'a Conversation, position: usize) -> Option<&'a Arc<Message>> {
        match self.changed.get(&position) {
            Some(changed) => changed.as_ref(),
            None => conversation.message(position),
        }
    }

    /// Returns the messages after those of the conversation.
    pub(super) fn appended(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.appended.iter().flatten()
    }

    /// Returns the messages of the conversation that the edits leave out or replace.
    pub fn left_out<'a>(&'a self, conversation: &'a Conversation) -> impl Iterator<Item = &'a Arc<Message>> {
        let truncated = conversation.truncated_end..self.start;
        truncated.chain(self.changed.keys().copied()).filter_map(|position| conversation.message(position))
    }

    /// Returns the messages that the edits add or replace others with.
    pub fn added(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.changed.values().flatten().chain(self.appended())
    }

    /// Returns the tool calls without a result and the results without a call, as [`Conversation::model_input`] leaves
    /// them out. Calls and results are matched id by id, so those that no edit touches match as in the conversation.
    pub(super) fn orphans<'a>(&'a self, conversation: &'a Conversation) -> Orphans<'a> {
        let messages = || conversation.projected(Some(self)).map(|message| &**message);
        if self.start > 0 {
            return match_in_order(messages(), |_| true);
        }
        let mut orphans = conversation.orphans();
        if !self.touched.is_empty() {
            orphans.replace(match_in_order(messages(), |id| self.touched.contains(id)), |id| self.touched.contains(id));
        }
        orphans
    }
}

#[cfg(test)]
mod tests;
