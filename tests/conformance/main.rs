//! The promises of goondan, tested from outside: through extensions, a scripted model, and what they see.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod context;
mod conversation;
mod entry;
mod next;
mod order;
mod support;
mod tools;
mod turn;
