//! Host trait behind a conversation view: the messages are in this binary or in another one.

use super::event::MessageEvent;
use super::message_ref::MessageRef;
use super::remote::Snapshot;

/// Read access to a conversation.
pub trait ConversationHost: Send + Sync {
    /// Returns the number of messages in `snapshot`.
    fn message_count(&self, snapshot: Snapshot) -> usize;
    /// Returns the first message of `snapshot` at or after `cursor`, and the cursor after it. The first cursor is 0.
    fn message_from(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)>;
    /// Returns the last message of `snapshot` before `cursor`, and the cursor of that message. `usize::MAX` is after
    /// all messages.
    fn message_before(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)>;
    /// Returns the events of the turn so far.
    fn message_events(&self) -> &[MessageEvent];
}
