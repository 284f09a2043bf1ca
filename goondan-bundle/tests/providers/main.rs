//! Providers of models that a program brings: what a bundle with them is checked for, and what its agents call.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod agents;
mod limits;
mod provided;
mod settings;
mod support;
