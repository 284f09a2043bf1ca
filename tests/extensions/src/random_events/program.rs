//! Programs: which events are emitted in which middleware.

use serde::{Deserialize, Serialize};

/// One turn.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TurnProgram {
    /// The events of the turn middleware.
    pub around: Around,
    /// The events of the step middleware, step by step. All steps but the last call a tool.
    pub steps: Vec<Around>,
    /// Whether the turn middleware ends with an error.
    pub fails: bool,
    /// Whether the conversation is closed and opened again after the turn.
    pub restarts: bool,
}

/// The events that a middleware emits around `next`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Around {
    /// The events before it.
    pub before: Vec<Edit>,
    /// The events after it.
    pub after: Vec<Edit>,
}

/// One event. A number selects one of the ids that were ever used, whose message is often gone, or an unused one.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Edit {
    /// Appends a message.
    Append(NewId),
    /// Replaces a message, under the same id or a new one.
    Replace(usize, Option<NewId>),
    /// Removes a message.
    Remove(usize),
    /// Removes all messages.
    Truncate,
}

/// The id of a new message.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum NewId {
    /// An id that was never used.
    Fresh,
    /// An id that was used before and is free again, if there is one.
    Former(usize),
}
