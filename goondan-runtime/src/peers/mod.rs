//! Requests to other agents: how a turn sends them, and where their answers wait.

mod caller;
mod inbox;
mod reach;

pub(crate) use caller::{Asked, Caller, Place, answered_request};
pub(crate) use inbox::Inbox;
pub(crate) use reach::Reach;
