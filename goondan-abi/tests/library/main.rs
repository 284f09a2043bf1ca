//! Owns the tests of extensions in libraries: built by cargo, loaded by this program, compared with the same crate linked.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod authoring;
mod builds;
mod c;
mod failures;
mod frozen;
mod inspect;
mod reload;
mod rough;
mod runtime;
mod schemas;
mod support;
