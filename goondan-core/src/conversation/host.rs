//! Where the messages behind a view come from: the runtime, or another binary.

use super::{MessageEvent, MessageRef};
use crate::error::Result;

/// Which messages of a conversation: those at the start of the turn, or those of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// At the start of the turn.
    Base,
    /// Now.
    Next,
}

/// Read access to a conversation.
pub trait ConversationHost: Send + Sync {
    /// How many messages `snapshot` holds.
    fn message_count(&self, snapshot: Snapshot) -> usize;
    /// The first message of `snapshot` at or after `cursor`, and the cursor behind it. The first cursor is 0.
    fn message_from(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)>;
    /// The last message of `snapshot` before `cursor`, and the cursor that leads to it. Behind all is `usize::MAX`.
    fn message_before(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)>;
    /// The events of the turn so far.
    fn message_events(&self) -> &[MessageEvent];
}

/// Read access to messages that lie in another binary, each named by its cursor.
pub trait RemoteConversation: Send + Sync {
    /// All text of a message, put together.
    fn text(&self, snapshot: Snapshot, cursor: usize) -> String;
    /// The JSON of a field of a message, or with the empty name of all of it.
    ///
    /// # Errors
    /// When there is no such message or field.
    fn read(&self, snapshot: Snapshot, cursor: usize, field: &'static str) -> Result<Vec<u8>>;
}
