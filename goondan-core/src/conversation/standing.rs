//! Messages that stand for others, such as summaries.
// BACK-01

use super::message::Message;
use super::message_ref::MessageRef;
use crate::name::TurnId;

/// The member of a message's metadata with the newest turn that it stands for.
const STANDS_FOR: &str = "standsFor";

impl Message {
    /// Marks the message as one that stands for `messages`, which it replaces, such as a summary: a conversation that is
    /// taken back keeps it, and cannot be taken back to before the newest of them. In their order; nothing is marked if
    /// none of them has a turn.
    ///
    /// ```
    /// use goondan::prelude::*;
    ///
    /// # fn shorten(ctx: &mut TurnContext<'_>) {
    /// let old: Vec<_> = ctx.conversation().iter().take(20).collect();
    /// let summary = Message::system("Twenty messages were removed.").standing_for(old.iter().copied());
    /// let ids: Vec<_> = old.iter().map(|message| message.to_id()).collect();
    /// ids.into_iter().for_each(|id| ctx.emit(MessageEvent::remove(id)));
    /// ctx.emit(MessageEvent::append(summary));
    /// # }
    /// ```
    #[must_use]
    pub fn standing_for<'a>(self, messages: impl IntoIterator<Item = MessageRef<'a>>) -> Self {
        match messages.into_iter().filter_map(|message| message.stands_for().or_else(|| message.turn())).last() {
            Some(turn) => self.with_metadata(STANDS_FOR, turn.as_str()),
            None => self,
        }
    }

    /// Returns the newest turn of the messages that this one stands for: see [`Message::standing_for`]. The runtime marks
    /// a message that replaces another, and has another id, as standing for that one.
    pub fn stands_for(&self) -> Option<TurnId> {
        MessageRef::from(self).stands_for()
    }
}

impl MessageRef<'_> {
    /// Returns the newest turn of the messages that this one stands for: see [`Message::stands_for`].
    pub fn stands_for(&self) -> Option<TurnId> {
        self.metadata(STANDS_FOR)?.as_str().map(TurnId::from)
    }
}
