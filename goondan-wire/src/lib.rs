//! The JSON in which goondan tells other processes what happens in a turn: updates, the end of a turn, errors. Programs
//! import it as `goondan::wire`.
//!
//! `goondan run --json --stream` writes one [`Update`] a line. A program writes the same from the stream of a turn, with
//! the feature `runtime`, which the facade turns on:
//!
//! ```
//! # #[cfg(feature = "runtime")] {
//! use goondan::Agent;
//! use goondan::model::{ScriptItem, ScriptedModel};
//! use goondan::wire::{TurnEnd, Update, Updates};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi")])).build()?;
//! let mut turn = agent.instance("user:42").await?.run_stream("hello");
//! let (mut updates, mut lines) = (Updates::default(), Vec::new());
//! while let Some(update) = turn.next().await {
//!     lines.extend(updates.next(update));
//! }
//! lines.push(Update::Turn(Box::new(TurnEnd::of(&turn.finish().await))));
//! for line in &lines {
//!     println!("{}", line.to_json()?);
//! }
//! # assert_eq!(lines.len(), 8);
//! # Ok::<(), goondan::Error>(())
//! # })?;
//! # }
//! # Ok::<(), goondan::Error>(())
//! ```
//!
//! # Versions
//! Later versions add types and members. Readers ignore those that they do not know: an unknown type is
//! [`Update::Other`]. [`VERSION`], which the schema of the lines has too, grows when a reader would misunderstand what
//! it knows.
//!
//! # Layout
//! Each module uses only those above it in this list.
//!
//! - `decide`: a line of input that decides about a call
//! - `end`: how a turn ended
//! - `update`: what happens meanwhile
//! - `updates`: from the stream of a turn
#![cfg_attr(docsrs, feature(doc_cfg))]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod decide;
mod end;
mod update;
#[cfg(feature = "runtime")]
mod updates;

pub use decide::{DecideLine, Deciding};
pub use end::{Background, ErrorBody, TurnEnd};
pub use update::{Reported, Update};
#[cfg(feature = "runtime")]
pub use updates::Updates;

/// The version of the types in this crate.
pub const VERSION: u32 = 1;
