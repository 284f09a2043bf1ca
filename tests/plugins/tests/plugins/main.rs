//! The ready-made extensions, linked and loaded.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod changesets;
mod linkage;
mod mcp;
mod skills;
mod tool_search;
mod message_compaction;
mod message_window;
mod retry;
mod tool_output;
mod agents;
mod bash;
mod call;
mod file_system;
mod http_fetch;
mod json_query;
mod linkage;
mod mcp;
mod text_transform;
mod wait;
