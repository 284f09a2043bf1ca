//! Owns the extensions of the conformance tests, module by module as the tests are. They are linked into the tests, and
//! built as a library that the tests load; so they reach the tests by what crosses a border: config, files, events, state.
#![expect(clippy::unwrap_used, clippy::panic, reason = "to panic is what some of them are for, and how they assert")]

pub mod agents;
pub mod context;
pub mod conversation;
pub mod effects;
pub mod entry;
pub mod events;
pub mod idle;
mod log;
pub mod model;
pub mod next;
pub mod order;
pub mod random_events;
pub mod reload;
pub mod state;
pub mod state_late;
pub mod surface;
pub mod tools;
pub mod turn;

use log::{Log, LogConfig};
