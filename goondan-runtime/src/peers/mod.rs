//! Requests to other agents: how a turn sends them, and where their answers wait.

mod asked;
mod caller;
mod inbox;
mod left;
mod reach;
mod tree;

pub(crate) use asked::{Delegations, Place};
pub(crate) use caller::{Asks, Caller, answered_request};
pub(crate) use inbox::Inbox;
pub(crate) use left::Left;
pub(crate) use reach::Reach;
pub(crate) use tree::Asked;
