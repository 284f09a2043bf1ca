//! File store: keeps conversations of goondan in files, so that they survive the process and the machine. Programs
//! import it from the facade crate `goondan`, as `goondan::store::FileStore`.
//!
//! # Files
//! `<state root>/workspaces/<workspaceId>/instances/<instance>/` holds:
//!
//! - `metadata.json` and `lock`
//! - `messages/base.jsonl`: the messages of the committed turns, for an opening as far as the journal knows them
//! - `messages/events.jsonl`: the journal of the newest turns, and of the running one
//! - `messages/runtime-events.jsonl`, and its predecessor `runtime-events.1.jsonl`: the work of the runtime, for
//!   readers outside the process
//! - `extensions/<name>.json`: the state of each extension
//! - `workspace/`: the working directory of tools
//!
//! `<state root>/workspaces/<workspaceId>/inbox.jsonl` holds the events of a [`FileQueue`], with the lock
//! `inbox.lock`.
//!
//! `<state root>/workspaces/<workspaceId>/extensions/` holds all that the conversations of an extension share: its
//! shared state in `<name>.json`, with the lock `<name>.lock`, and in `<name>/` its own files.
//!
//! All of it is made for its owner alone, and an instance directory that others could read is closed to them when it is
//! opened.
//!
//! Their formats are those of F-STORE.
//!
//! # Layout
//! `store` is [`FileStore`], with the order of writes and the files that a crash between them leaves. `layout`
//! computes the paths. `journal` opens an instance and writes its turns: it takes the `lock`, runs `recovery`,
//! appends `records` to `events`, shows the messages of a turn in the `base_file`, and makes a `checkpoint` of `base`
//! and `state` when the journal is full. `grammar` reads a journal, and `standing` compares the other files with it;
//! `answered` knows the events that were answered. `metadata` and `runtime_events` are for readers outside the
//! process. `admin`, `status`, `repair` and `transfer` work on instances that are not open. `shared` is apart from
//! instances. Files are written with the operations of `atomic` on a `disk`, whose `syncs` may overlap, and every
//! file is opened by `path`, which follows no link.

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod admin;
mod answered;
mod atomic;
mod base;
mod base_file;
mod checkpoint;
mod disk;
mod events;
mod fsync;
mod grammar;
mod journal;
mod layout;
mod lines;
mod lock;
mod metadata;
mod path;
mod queue;
mod records;
mod recovery;
mod repair;
mod runtime_events;
mod shared;
mod standing;
mod state;
mod status;
mod store;
mod syncs;
mod transfer;

pub use admin::StoredConversation;
#[doc(hidden)]
pub use disk::{Disk, DiskFile, OpenMode, RealDisk};
pub use fsync::Fsync;
pub use layout::{agreements_dir, state_root, workspace_id};
#[doc(hidden)]
pub use path::StorePath;
pub use queue::FileQueue;
pub use repair::StoredFault;
pub use store::FileStore;
pub use syncs::Syncs;
