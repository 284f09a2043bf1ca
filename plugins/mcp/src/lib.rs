//! Offers the tools, resources and prompts of an MCP server to the model.
//!
//! Each `Extension` document of a bundle is one server. `docs/mcp.md` describes the config, and what happens when a
//! server fails.
//!
//! # Layout
//! In the order of the data:
//!
//! - `config`: what a bundle says about a server.
//! - `extension`: the extension, which attaches to a server and keeps the catalog of each step up to date.
//! - `pool`: the connections of the program, which conversations may share.
//! - `connection`: one connection: when it starts, starts again and ends.
//! - `server`: how a server is started, watched and ended.
//! - `listing`: what the server offers, kept up to date.
//! - `state`: what the user is told about a connection.
//! - `child`: the process of a server.
//! - `http`: the client for requests to a server at a URL.
//! - `bearer`: these requests, with a token of the extension `oauth`.
//! - `users`: the extensions that use a connection.
//! - `restarts`: when a server that failed is started again.
//! - `client`: the protocol, by the crate `rmcp`, which only `bearer` names too.
//! - `offer`: what a server offers and answers.
//! - `tools`, `names`: which tools are registered, and under which names.
//! - `handlers`: what answers the calls of the model.
//! - `reply`: what the model reads of an answer.
//! - `failure`: the errors of the extension.
// PATTERN-MCP-02

#[cfg(feature = "http")]
mod bearer;
mod child;
mod client;
mod config;
mod connection;
mod extension;
mod failure;
mod handlers;
#[cfg(feature = "http")]
mod http;
mod listing;
mod names;
mod offer;
mod pool;
mod reply;
mod restarts;
mod server;
mod state;
mod tools;
mod users;

pub use config::{Attach, Auth, Config, Expose, Limits, Mode, Protocol, Scope, SideEffects, ToolSettings, Transport};
pub use extension::Mcp;
