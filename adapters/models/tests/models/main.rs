//! Models over HTTP: what they send, what they make of answers, and what happens when something fails.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod anthropic;
mod bundle;
mod cache_key;
mod cassette;
mod chat;
mod closed_tools;
mod config;
mod converse;
mod failures;
mod files;
mod gemini;
mod growth;
mod images;
mod limits;
mod members;
mod no_text;
mod provided;
mod recordings;
mod responses;
mod retried;
mod secrets;
mod sizes;
mod support;
mod switches;
mod thinking;
mod values;
