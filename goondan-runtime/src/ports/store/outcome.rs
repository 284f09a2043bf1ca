//! How a turn ended, as its commit stores it.

use std::borrow::Cow;

use goondan_core::{Error, ErrorCode, EventId};
use serde::{Deserialize, Serialize};

/// The number of characters of an error's message that are stored.
const MAX_MESSAGE: usize = 500;

/// How a turn ended, and the event that it answered. The answer itself is in the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum TurnOutcome {
    /// The turn ended with a result.
    #[non_exhaustive]
    Answered {
        /// The event that started the turn.
        event: EventId,
    },
    /// The turn ended with an error.
    #[non_exhaustive]
    Failed {
        /// The event that started the turn.
        event: EventId,
        /// The code of the error.
        code: ErrorCode,
        /// Its message; a long one is cut.
        message: String,
    },
    /// The caller was dropped or the process died while the turn ran, and the turn was closed later.
    #[non_exhaustive]
    Interrupted {
        /// The event that started the turn. `None` if its record does not say, as in files of other implementations.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<EventId>,
    },
}

impl TurnOutcome {
    /// The outcome of a turn that ended with a result.
    pub fn answered(event: EventId) -> Self {
        Self::Answered { event }
    }

    /// The outcome of a turn that `error` ended.
    pub fn failed(event: EventId, error: &Error) -> Self {
        let message = error.message();
        let message = match message.char_indices().nth(MAX_MESSAGE) {
            Some((end, _)) => Cow::Owned(format!("{}…", &message[..end])),
            None => message,
        };
        Self::Failed { event, code: error.code().clone(), message: message.into_owned() }
    }

    /// The outcome of a turn that was interrupted.
    pub fn interrupted(event: Option<EventId>) -> Self {
        Self::Interrupted { event }
    }

    /// Returns the event that started the turn.
    pub fn event(&self) -> Option<&EventId> {
        match self {
            Self::Answered { event } | Self::Failed { event, .. } => Some(event),
            Self::Interrupted { event } => event.as_ref(),
        }
    }
}
