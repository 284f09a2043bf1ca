//! Offers the tools, resources and prompts of an MCP server to the model.
//!
//! Each `Extension` document of a bundle is one server. `docs/mcp.md` describes the config, and the behaviour when a
//! server fails.
//!
//! # Layout
//! In the order of the data:
//!
//! - `config`: the settings of a server in a bundle.
//! - `extension`: the extension, which attaches to a server and keeps the catalog of each step up to date.
//! - `call`: the calls of the model: the `handlers` of the tools, and the `reply` that the model reads.
//! - `connection`: one connection: when it starts, starts again (`restarts`) and ends. Conversations may share it
//!   (`pool`); its `state` is shown to the user.
//! - `offer`: the offers of the server: the `listing`, kept up to date, the `tools` that are registered, and their
//!   `names`.
//! - `server`: a server that can be started at its `place`, and one that runs (`live`): its `process`, or requests over
//!   `http` with a token (`bearer`), and the `session` of the protocol, by the crate `rmcp`. Too large parts in a
//!   `message` is left out before it is read, from `pipes` or from the answer to a `post`.
//! - `failure`: the errors of the extension.
#![cfg_attr(docsrs, feature(doc_cfg))]
// PATTERN-MCP-02

mod call;
mod config;
mod connection;
mod extension;
mod failure;
mod offer;
mod server;

pub use config::{Attach, Auth, Config, Expose, Limits, Mode, Protocol, Scope, SideEffects, ToolSettings, Transport};
pub use extension::Mcp;
