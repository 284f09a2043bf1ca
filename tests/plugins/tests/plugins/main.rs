//! The ready-made extensions, linked and loaded.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod additions;
mod agents;
mod approval;
mod ask;
mod bash;
mod call;
mod changesets;
mod changesets_effect;
mod file_system;
mod front_end;
mod growth;
mod http_fetch;
mod json_query;
mod linkage;
mod live_config;
mod logging;
mod mcp;
mod message_compaction;
mod message_window;
mod oauth;
mod plan;
mod presented;
mod recipes;
mod redact;
mod resumed;
mod retry;
mod rewound;
mod shared;
mod skills;
mod subagents;
mod text_transform;
mod tool_output;
mod tool_search;
mod untrusted_trees;
mod validate;
mod wait;
mod work_trees;
