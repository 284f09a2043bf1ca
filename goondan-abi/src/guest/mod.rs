//! Owns the side of the library: what it exports, and the host traits in front of the host's table.

mod agents;
mod entry;
mod extension;
mod log;
mod object;
mod run;
mod run_fields;
mod runtime;
mod tool;

use std::sync::OnceLock;

use crate::table::HostTable;

static HOST: OnceLock<&'static HostTable> = OnceLock::new();

/// The table of the program that loaded this library.
///
/// # Panics
/// When no program has: nothing that calls this can have been made then.
#[expect(clippy::expect_used, reason = "see above")]
fn host() -> &'static HostTable {
    HOST.get().expect("no host has loaded this library")
}
