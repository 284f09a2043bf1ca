//! Offers skills to the model: folders with instructions, and perhaps scripts, for certain tasks.
//!
//! # Layout
//! In the order of the data:
//!
//! - `config`: what a bundle says.
//! - `extension`: the extension; when it looks for skills, and what a step shows.
//! - `discovery`: the skills in some directories.
//! - `describe`: the description of a skill.
//! - `collection`: the skills of a conversation, and which of them are open.
//! - `context`: the messages that the model reads.
//! - `tools`: the tools of the model.
//! - `run`: a command in the directory of a skill.
// PATTERN-SKILL

mod collection;
mod config;
mod context;
mod describe;
mod discovery;
mod extension;
mod run;
mod tools;

pub use config::{AutoScan, Config, Discovery};
pub use extension::Skills;
