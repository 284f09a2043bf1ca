//! Requests to other agents: how a turn sends them, and where their answers wait.

mod asked;
mod caller;
mod inbox;
mod reach;

pub(crate) use asked::{Asked, Delegations, Place};
pub(crate) use caller::{Asks, Caller, answered_request};
pub(crate) use inbox::Inbox;
pub(crate) use reach::Reach;
