//! Serves agents over HTTP: turns that outlive their connections, requests that are answered once, decisions, tokens,
//! and the front ends that exist. `goondan serve` is made of it, and a program mounts it as an axum `Router`: see
//! [`Service`].
//!
//! A turn belongs to its event, and not to its connection: a client may go away and come back, and others may watch.
//! Its updates are kept for five minutes after its end.
//!
//! # Layout
//! Each module uses only those above it in this list.
//!
//! - `listen`: connections
//! - `task`: tasks
//! - `tokens`: who may use a service
//! - `problem`: errors as HTTP says them
//! - `agents`: the agents that are served
//! - `sse`: server-sent events
//! - `log`: the updates of a turn
//! - `watch`: a log as server-sent events
//! - `feed`: all turns of a conversation
//! - `turns`: the turns that run
//! - `questions`: the live questions of turns
//! - `service`: the agents, who may use them, and the end
//! - `caller`: who sends a request
//! - `queue`: turns that are accepted before they begin
//! - `request`: what a request asks for
//! - `calls`: the calls of a turn, for front ends
//! - `front_end`: a turn, for front ends
//! - `schemas`, `operation`: the description of the routes
//! - `native`: the native interface
//! - `page`: a page for trying the agents out
//! - `ui`, `ag_ui`: those of AI SDK UI and of AG-UI
//! - `router`: the routes
#![cfg_attr(docsrs, feature(doc_cfg))]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod ag_ui;
mod agents;
mod caller;
mod calls;
mod children;
mod feed;
mod front_end;
#[cfg(feature = "listen")]
mod listen;
mod log;
mod native;
mod operation;
mod page;
mod problem;
mod questions;
mod queue;
mod request;
mod router;
mod schemas;
mod service;
mod sse;
mod task;
mod tokens;
mod turns;
mod ui;
mod watch;

pub use agents::{Agents, Held};
#[cfg(feature = "listen")]
pub use listen::listen;
pub use service::Service;
pub use tokens::{Grant, Right, Tokens};
pub use turns::Limits;
