//! A native extension framework and runtime for LLM agents.
//!
//! An extension is an `impl` block, or a module, under [`#[goondan::extension]`](macro@extension). Its functions
//! wrap the turns, steps and tool calls of an agent, answer tool calls, and handle events. Each takes the parameters
//! that it needs, in any order:
//!
//! ```
//! use goondan::prelude::*;
//!
//! #[derive(Debug, Deserialize, JsonSchema)]
//! #[serde(rename_all = "camelCase", deny_unknown_fields)]
//! pub struct Config {
//!     max_messages: usize,
//! }
//!
//! pub struct MessageWindow {
//!     max: usize,
//! }
//!
//! /// Keeps the newest messages of a conversation.
//! #[goondan::extension(name = "message-window")]
//! impl MessageWindow {
//!     #[init]
//!     fn new(config: Config) -> Self {
//!         Self { max: config.max_messages }
//!     }
//!
//!     #[middleware(turn)]
//!     async fn trim(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
//!         let excess = ctx.conversation().len().saturating_sub(self.max);
//!         let oldest = ctx.conversation().iter().take(excess);
//!         let oldest: Vec<_> = oldest.map(|message| message.to_id()).collect();
//!         for id in oldest {
//!             ctx.emit(MessageEvent::remove(id));
//!         }
//!         next.run(ctx).await
//!     }
//!
//!     /// Returns how many messages the window keeps.
//!     #[tool(effect = read)]
//!     async fn status(&self) -> Result<usize> {
//!         Ok(self.max)
//!     }
//! }
//! ```
//!
//! # Where to look
//! | to | see |
//! | --- | --- |
//! | write an extension | [`prelude`], [`macro@extension`], and the attributes of its functions: [`macro@init`], [`macro@middleware`], [`macro@tool`], [`macro@on`], [`macro@cleanup`] |
//! | wrap turns, steps and tool calls | [`mod@middleware`] |
//! | read and change a conversation | [`conversation`] |
//! | offer tools | [`mod@tool`] |
//! | let a person decide about tool calls | [`decision`] |
//! | emit and receive events | [`event`] |
//! | keep state, write to the log, register at run time | [`mod@extension`] |
//! | read and write JSON | [`mod@json`] |
#![cfg_attr(
    feature = "runtime",
    doc = "| run agents in a program | [`Agent`], [`Instance`], [`agent`], [`model`], [`store`] |"
)]
//! | read agents from a bundle | `bundle`, with the feature of that name |
//! | keep a bundle running, in a server | `host`, with the feature of that name |
//! | tell another process what happens | `wire`, with the feature of that name |
//! | read the updates of a turn with stream combinators | `agent`, with the feature `stream` |
//! | connect real models | `models`, with the feature of that name |
//! | write a log without secrets | `log`, with the feature of that name |
//! | load libraries | `plugin`, with the feature `plugins` |
//! | test an extension | `testing`, with the feature of that name |
//!
//! # Features
//! An extension depends on `goondan` without default features. A program uses `runtime`, which is on by default, and
//! as needed `bundle` (agents described in YAML), `host` (bundles that run, in servers), `wire` (their JSON), `models` (models over HTTP),
//! `plugins` (extensions in libraries), `log` (a layer of `tracing` that masks secrets) and `testing` (the harness for
//! tests of extensions).
#![cfg_attr(docsrs, feature(doc_cfg))]

// The examples of the README compile and run.
#[cfg(all(doctest, feature = "runtime"))]
#[doc = include_str!("../README.md")]
struct Readme;

// So do those of the macros.
#[cfg(all(doctest, feature = "runtime"))]
mod macros {
    #[doc = include_str!("../goondan-macros/src/examples/extension.md")]
    struct Extension;
    #[doc = include_str!("../goondan-macros/src/examples/module.md")]
    struct Module;
    #[doc = include_str!("../goondan-macros/src/examples/init.md")]
    struct Init;
    #[doc = include_str!("../goondan-macros/src/examples/middleware.md")]
    struct Middleware;
    #[doc = include_str!("../goondan-macros/src/examples/tool.md")]
    struct Tool;
    #[doc = include_str!("../goondan-macros/src/examples/on.md")]
    struct On;
    #[doc = include_str!("../goondan-macros/src/examples/cleanup.md")]
    struct Cleanup;
}

pub mod agent;
pub mod conversation;
pub mod decision;
pub mod error;
pub mod errors;
pub mod event;
pub mod extension;
pub mod json;
#[cfg(feature = "log")]
pub mod log;
pub mod middleware;
#[cfg(feature = "runtime")]
pub mod model;
pub mod name;
#[cfg(feature = "plugins")]
pub mod plugin;
pub mod prelude;
#[cfg(feature = "runtime")]
pub mod store;
pub mod tool;

#[cfg(feature = "bundle")]
#[doc(inline)]
pub use goondan_bundle as bundle;
pub use goondan_core::secret;
#[cfg(feature = "host")]
#[doc(inline)]
pub use goondan_host as host;
#[cfg(feature = "models")]
#[doc(inline)]
pub use goondan_models as models;
#[cfg(feature = "testing")]
pub use goondan_runtime::testing;
#[cfg(feature = "wire")]
#[doc(inline)]
pub use goondan_wire as wire;

#[cfg(feature = "bundle")]
pub use goondan_bundle::Bundle;
pub use goondan_core::{BoxFuture, Error, ErrorCode, Result, Secret, ToolReply};
#[cfg(feature = "runtime")]
pub use goondan_runtime::{Agent, Instance, model_provider};
pub use serde_json::{Map, Value, json};
/// The crates of the derives, for `#[serde(crate = "goondan::serde")]` and its like: see [`mod@json`].
pub use {schemars, serde};

pub use goondan_macros::{cleanup, extension, init, middleware, on, tool};

// This path also makes sure that the crate is linked, and with it the symbol that libraries export.
pub use goondan_abi::{KeepRunning, keep_running};

/// Names for expansions, the standard library included: see `goondan-macros/src/paths.rs`. Not part of the API.
#[doc(hidden)]
pub mod __private {
    pub use core::clone::Clone;
    pub use core::option::Option;
    pub use core::primitive::{str, u8};
    pub use core::result::Result::Ok;
    pub use core::time::Duration;
    pub use core::{env, unreachable};
    pub use std::boxed::Box;
    pub use std::sync::Arc;

    pub use goondan_core::{
        AnyRegistration, BoxFuture, CleanupHandler, Effect, Event, EventHandler, Extension, ExtensionApi,
        ExtensionDescriptor, LineTemplate, LinkedExtension, Middleware, MiddlewareDescriptor, MiddlewareKind,
        MiddlewareOptions, Next, Presenter, Result, Step, StepContext, StepResult, ToolCall, ToolCallContext,
        ToolCallResult, ToolContext, ToolDescriptor, ToolHandler, ToolReply, Turn, TurnContext, TurnResult, inventory,
        length_prefixed, params, record_len,
    };
    pub use serde_json::Value;
}
