//! The side of the library: the symbol that it exports, and implementations of the core's host traits that call the
//! host.
//!
//! - `entry`: the exported symbol; receives the host's table and registers extensions
//! - `extension`: behind the `ExtensionApi`
//! - `object`, `parts`, `review`, `transform`: the middlewares, handlers, reviewers and transformers that the host
//!   calls
//! - `kind`, `run`, `catalogs`, `conversation`, `result`: behind the context of a middleware
//! - `tool`: behind the context of a tool
//! - `call`, `agents`: the functions `run_…` of the host
//! - `runtime`, `keep_running`, `log`, `secret`: one for the whole library

mod agents;
mod call;
mod catalogs;
mod conversation;
mod entry;
mod extension;
mod fields;
mod keep_running;
mod kind;
mod log;
mod object;
mod parts;
mod result;
mod review;
mod run;
mod runtime;
mod secret;
mod tool;
mod transform;

pub use keep_running::{KeepRunning, keep_running};

use std::sync::OnceLock;

use goondan_core::{Error, ErrorCode};

use crate::table::{HostTable, HostTable1_2, HostTable1_3};

static HOST: OnceLock<Host> = OnceLock::new();

/// The table of the host, as the host passed it: it may be larger than a [`HostTable`].
struct Host(*const HostTable);

// SAFETY: The contract makes the table immutable, and lets every thread call its functions.
unsafe impl Send for Host {}
// SAFETY: As above.
unsafe impl Sync for Host {}

/// Returns the table of the program that loaded this library.
///
/// # Panics
/// If no program has. Everything that calls this is created after `entry` has stored the table.
#[expect(clippy::expect_used, reason = "see above")]
fn host() -> &'static HostTable {
    let host = HOST.get().expect("no host has loaded this library");
    // SAFETY: The contract makes the host pass a table that is valid as long as the process runs.
    unsafe { &*host.0 }
}

/// Returns the table of the program that loaded this library, if it has version 1.2 or a later one.
fn host_1_2() -> Option<&'static HostTable1_2> {
    let has_all = host().size >= size_of::<HostTable1_2>();
    // SAFETY: As for `host`; `size` says that the table has these entries.
    HOST.get().filter(|_| has_all).map(|host| unsafe { &*host.0.cast() })
}

/// Returns the table of the program that loaded this library, if it can ask live questions.
fn host_1_3() -> Option<&'static HostTable1_3> {
    let has_all = host().size >= size_of::<HostTable1_3>();
    // SAFETY: As for `host_1_2`.
    HOST.get().filter(|_| has_all).map(|host| unsafe { &*host.0.cast() })
}

/// The error for a host that is too old for the thing `what`.
fn too_old(what: &str) -> Error {
    let message = format!("this version of the program has no {what}");
    Error::new(ErrorCode::EXT_COMPAT, message).suggest("run it with a newer goondan")
}

/// The error for a host that breaks the contract by not returning `what`.
fn missing(what: &str) -> Error {
    Error::new(ErrorCode::EXT_RUNTIME, format!("the host gave no {what}"))
}
