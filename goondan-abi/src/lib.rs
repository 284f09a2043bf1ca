//! The second linkage of goondan: the same extension crate, loaded as a library.
//!
//! A crate of extensions becomes a library by `crate-type = ["rlib", "cdylib"]`. This crate, which `goondan` depends
//! on, exports the one symbol that a library needs. With the feature `host`, a program inspects and loads libraries:
//!
//! ```no_run
//! use goondan::Agent;
//! use goondan::plugin::Library;
//!
//! # fn main() -> goondan::Result<()> {
//! // Reads the file; no code of it runs.
//! let inspected = Library::inspect("plugins/libmessage_window.so")?;
//! for extension in inspected.extensions() {
//!     println!("{} {}", extension.name, extension.version);
//! }
//! let extension = inspected.load()?.extension(Some("message-window"))?;
//! let builder = Agent::builder("assistant").described_extension("message-window", extension, serde_json::json!({}));
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//! - `table`: the contract, every type that host and library share
//! - `panic`, `bytes`, `waker`, `pool`, `future`, `json_map`: the common parts of both sides
//! - `guest`: the side of the library
//! - `host`: the side of the program
#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(unsafe_code, reason = "calls across the ABI; all other crates of the workspace are free of unsafe code")]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod bytes;
mod future;
mod guest;
#[cfg(feature = "host")]
mod host;
mod json_map;
mod panic;
mod pool;
pub mod table;
mod waker;

pub use guest::{KeepRunning, keep_running};
#[cfg(feature = "host")]
#[doc(hidden)]
pub use host::host_table;
#[cfg(feature = "host")]
pub use host::{
    ExtensionRecord, ExtensionSchemas, Inspected, Library, Loaded, MiddlewareRecord, ToolRecord, ToolSchema,
};
