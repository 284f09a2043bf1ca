//! The file store through the `Store` trait, and through its files.
// clippy.toml allows these in test functions only, not in their helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[cfg(unix)]
mod bad;
mod bits;
#[cfg(unix)]
mod deep;
mod disk;
mod files;
#[cfg(unix)]
mod links;
#[cfg(unix)]
mod lock;
mod outcome;
#[cfg(unix)]
mod private;
mod records;
mod repair;
mod shared;
mod syncs;
