//! Replaces older messages of a conversation by a summary, before the conversation becomes too long for the model.
//!
//! # Layout
//! In the order of the data:
//!
//! - `config`: what a bundle says.
//! - `extension`: the middlewares, and what happens when a summary fails.
//! - `choice`: which messages are replaced.
//! - `summary`: the text that replaces them, and how a model is asked for it.
// PATTERN-COMPACT

mod choice;
mod config;
mod extension;
mod summary;

pub use config::{Candidates, Config, OnFailure, Place, SummaryConfig};
pub use extension::MessageCompaction;
