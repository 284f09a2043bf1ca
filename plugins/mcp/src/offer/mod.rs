//! What a server offers, and the tools that are registered for it.

mod listing;
mod names;
mod tools;

pub(crate) use listing::Listing;
pub(crate) use names::LONGEST_EXTENSION;
pub(crate) use tools::{Changes, Tools};
