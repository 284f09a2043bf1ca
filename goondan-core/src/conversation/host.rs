//! Host traits behind a conversation view: the messages are in this binary or in another one.

use serde_json::Value;

use super::{MessageEvent, MessageRef};
use crate::error::Result;

/// Selects the messages of a conversation at the start of the turn, or as they are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// The messages at the start of the turn.
    Base,
    /// The messages now: the base with the events of the turn applied.
    Current,
}

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

/// Read access to messages that are in another binary, each addressed by its cursor.
pub trait RemoteConversation: Send + Sync {
    /// Returns all text of a message, joined.
    fn text(&self, snapshot: Snapshot, cursor: usize) -> String;
    /// Returns what an extension added to a message under `key`.
    ///
    /// # Errors
    /// When the value cannot be read.
    fn metadata(&self, snapshot: Snapshot, cursor: usize, key: &str) -> Result<Option<Value>>;
    /// Returns the JSON of a field of a message, or of the whole message if `field` is empty.
    ///
    /// # Errors
    /// When the message or the field does not exist.
    fn read(&self, snapshot: Snapshot, cursor: usize, field: &'static str) -> Result<Vec<u8>>;
}
