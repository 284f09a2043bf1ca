//! Message events, the only way in which a conversation changes.
// CONV-09, CONV-11

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::message::Message;
use crate::depth::{MAX_DEPTH, TooDeep};
use crate::error::Error;
use crate::name::MessageId;

/// A change of a conversation, as it is emitted and as it is written to `events.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum MessageEvent {
    /// Adds a message at the end.
    Append {
        /// The new message; its id must be new too.
        // D-20
        message: Arc<Message>,
    },
    /// Replaces a message, which keeps its position.
    Replace {
        /// The id of the message to replace.
        target_id: MessageId,
        /// The replacement; its id may differ.
        message: Arc<Message>,
    },
    /// Removes a message.
    Remove {
        /// The id of the message to remove.
        target_id: MessageId,
    },
    /// Removes all messages.
    Truncate,
}

impl MessageEvent {
    /// Returns an event that adds `message` at the end.
    pub fn append(message: Message) -> Self {
        Self::Append { message: Arc::new(message) }
    }

    /// Returns an event that replaces the message whose id is `target` with `message`.
    pub fn replace(target: impl Into<MessageId>, message: Message) -> Self {
        Self::Replace { target_id: target.into(), message: Arc::new(message) }
    }

    /// Returns an event that removes the message with the id `target`.
    pub fn remove(target: impl Into<MessageId>) -> Self {
        Self::Remove { target_id: target.into() }
    }

    /// Returns an event that removes all messages.
    pub fn truncate() -> Self {
        Self::Truncate
    }

    /// Checks the values in the message of the event.
    ///
    /// # Errors
    /// The place of the first that is too deep.
    #[inline]
    pub(crate) fn check_depth(&self) -> Result<(), TooDeep> {
        match self {
            Self::Append { message } | Self::Replace { message, .. } => message.check_depth(MAX_DEPTH),
            Self::Remove { .. } | Self::Truncate => Ok(()),
        }
    }

    /// Drops the event, in whose message a value is too deep, and returns the error.
    #[cold]
    pub(crate) fn refuse(self, error: TooDeep) -> Error {
        let (Self::Append { message } | Self::Replace { message, .. }) = self else {
            return error.refuse("the message event");
        };
        let error = error.refuse(format_args!("the message `{}`", message.id()));
        Arc::into_inner(message).into_iter().for_each(Message::discard);
        error
    }

    /// Returns the message that the event appends, if it is an append.
    pub fn appended(&self) -> Option<&Arc<Message>> {
        match self {
            Self::Append { message } => Some(message),
            Self::Replace { .. } | Self::Remove { .. } | Self::Truncate => None,
        }
    }
}
