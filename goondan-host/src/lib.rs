//! Keeps a bundle running: opens it, watches its files and reloads it while turns go on, delivers the turns that its
//! extensions start in the background, and drains it at the end. Programs import it as `goondan::host`.
//!
//! The `goondan` command is made of it, as is the server in `examples/service`:
//!
//! ```
//! use std::time::Duration;
//!
//! use goondan::host::{Drained, Source};
//! use goondan::store::MemoryStore;
//!
//! # async fn example(input: &str) -> goondan::Result<()> {
//! let host = Source::new("examples/quickstart").read()?.open(MemoryStore::new()).await?;
//!
//! // Edits of the bundle are applied to open conversations, also to turns that run.
//! let reloads = host.watch()?.serve(|outcome| match outcome {
//!     Ok(reload) => println!("reloaded {} agents", reload.agents.len()),
//!     Err(error) => eprintln!("not reloaded: {error}"),
//! });
//! let reloads = tokio::spawn(reloads);
//!
//! // Any number of conversations, each with any number of handles.
//! let instance = host.instance("guide", "user:42").await?;
//! println!("{}", instance.run(input).await?.text());
//!
//! reloads.abort();
//! if host.drain(Duration::from_secs(30)).await? == Drained::TimedOut {
//!     eprintln!("turns were cancelled");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//! Each module uses only those above it in this list.
//!
//! - `race`: the first of two futures
//! - `error`: why a bundle cannot be opened
//! - `instances`: the conversations that the program has opened
//! - `source`: the bundle on disk
//! - `host`: the agents of the bundle, their conversations, and the drain
//! - `opening`: from a path to a host
//! - `turns`: the turns in the background
//! - `questions`: the questions that handlers wait for the answers to
//! - `files`: files that change
//! - `additions`: the additions of a changed bundle
//! - `reloader`: reloads

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod additions;
mod error;
mod files;
mod host;
mod instances;
mod opening;
mod questions;
#[doc(hidden)]
pub mod race;
mod reloader;
mod source;
mod turns;

pub use error::OpenError;
pub use host::{Drained, Host};
pub use instances::HostedInstance;
pub use opening::Opening;
pub use questions::HostQuestions;
pub use reloader::{HostReload, Reloader};
pub use source::Source;
pub use turns::HostTurns;
