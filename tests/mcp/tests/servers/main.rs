//! PATTERN-MCP: the extension `mcp` against a server with odd habits, linked and loaded.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod calls;
mod changes;
mod failures;
mod linkage;
mod over_http;
mod settings;
mod sharing;
mod support;
