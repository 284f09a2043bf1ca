//! The `goondan` command as a program: one module for each subcommand or topic.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[cfg(all(feature = "mcp", feature = "models"))]
mod provider;
mod support;

#[cfg(all(feature = "mcp", feature = "models"))]
mod broken_files;
mod bundle;
#[cfg(feature = "models")]
mod cassettes;
mod changeset;
mod changeset_trees;
mod check;
mod coder;
#[cfg(target_os = "linux")]
mod decide;
mod environment;
mod explain;
mod instance;
mod library;
mod log;
mod memory;
mod new;
mod order;
mod own_files;
mod plugin;
mod prefix;
mod run;
mod serve;
mod servers;
mod shell;
mod tree;
mod trust;
mod watch;
mod watch_changesets;
#[cfg(feature = "models")]
mod watch_record;
#[cfg(feature = "mcp")]
mod workbench;
