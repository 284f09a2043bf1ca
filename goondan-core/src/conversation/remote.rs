//! Messages of a conversation that is in another binary.

use serde_json::Value;

use crate::error::Result;

/// Selects the messages of a conversation at the start of the turn, or as they are now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// The messages at the start of the turn.
    Base,
    /// The messages now: the base with the events of the turn applied.
    Current,
}

/// Read access to messages that are in another binary, each addressed by its cursor.
pub trait RemoteConversation: Send + Sync {
    /// Returns all text of a message, joined.
    fn text(&self, snapshot: Snapshot, cursor: usize) -> String;
    /// Returns the value that an extension added to a message under `key`.
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
