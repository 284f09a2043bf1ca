//! PATTERN-MCP: the extension `mcp` with a server that has odd habits.

mod asked;
mod calls;
mod changes;
mod children;
mod failures;
mod limits;
mod over_http;
mod protocol;
mod settings;
mod sharing;
mod status;
pub(crate) mod support;
mod tokens;
