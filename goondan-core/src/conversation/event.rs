//! Owns the message event: the only way in which a conversation changes (CONV-09, CONV-11).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Message;
use crate::name::MessageId;

/// A change of a conversation, as it is emitted and as it stands in `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum MessageEvent {
    /// Adds a message at the end.
    Append {
        /// The new message; its id must be new too (D-20).
        message: Arc<Message>,
    },
    /// Puts a message in the place of another.
    Replace {
        /// The message to replace.
        target_id: MessageId,
        /// Its successor; the id may be another.
        message: Arc<Message>,
    },
    /// Takes a message out.
    Remove {
        /// The message to take out.
        target_id: MessageId,
    },
    /// Takes all messages out (CONV-17).
    Truncate,
}

impl MessageEvent {
    /// Adds `message` at the end.
    pub fn append(message: Message) -> Self {
        Self::Append { message: Arc::new(message) }
    }

    /// Puts `message` in the place of the message `target`.
    pub fn replace(target: impl Into<MessageId>, message: Message) -> Self {
        Self::Replace { target_id: target.into(), message: Arc::new(message) }
    }

    /// Takes the message `target` out.
    pub fn remove(target: impl Into<MessageId>) -> Self {
        Self::Remove { target_id: target.into() }
    }

    /// Takes all messages out.
    pub fn truncate() -> Self {
        Self::Truncate
    }

    /// The message that the event adds at the end, if it is an append.
    pub fn appended(&self) -> Option<&Arc<Message>> {
        match self {
            Self::Append { message } => Some(message),
            Self::Replace { .. } | Self::Remove { .. } | Self::Truncate => None,
        }
    }
}
