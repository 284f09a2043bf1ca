//! Extensions in libraries: built by cargo, loaded by this program, and compared with the same crate linked.
#![allow(unsafe_code, reason = "a test copies a host table to append an entry")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod authoring;
mod builds;
mod c;
mod damaged;
mod failures;
mod frozen;
mod inspect;
mod members;
mod newer;
mod refused;
mod reload;
mod rough;
mod runtime;
mod schemas;
mod support;
