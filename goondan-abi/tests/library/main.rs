//! Owns the tests of extensions in libraries: built by cargo, loaded by this program, compared with the same crate linked.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod authoring;
mod failures;
mod frozen;
mod inspect;
mod reload;
mod runtime;
mod schemas;
mod support;
