//! The offers of a server, and the tools that are registered for them.

mod listing;
mod names;
mod tools;

pub(crate) use listing::Listing;
pub(crate) use names::LONGEST_EXTENSION;
pub(crate) use tools::{Changes, Tools};
