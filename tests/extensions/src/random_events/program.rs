//! Owns the programs: which events are emitted, and where.

use serde::{Deserialize, Serialize};

/// One turn.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TurnProgram {
    /// What the turn middleware emits.
    pub around: Around,
    /// What the step middleware emits, step by step; all steps but the last call a tool.
    pub steps: Vec<Around>,
    /// Whether the turn middleware ends with an error.
    pub fails: bool,
    /// Whether the conversation is closed and opened again after the turn.
    pub restarts: bool,
}

/// What a middleware emits around `next`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Around {
    /// Before it.
    pub before: Vec<Edit>,
    /// After it.
    pub after: Vec<Edit>,
}

/// One event. Numbers pick among the ids that were ever used, so that targets are often gone, or among the unused ones.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Edit {
    /// A message comes.
    Append(NewId),
    /// One takes the place of another, under its id or another one.
    Replace(usize, Option<NewId>),
    /// One goes.
    Remove(usize),
    /// All go.
    Truncate,
}

/// The id of a message that comes in.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum NewId {
    /// One that was never used.
    Fresh,
    /// One that was used before and is free again, if there is one.
    Former(usize),
}
