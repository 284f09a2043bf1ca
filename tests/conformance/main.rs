//! The promises of goondan, tested from outside: through extensions, a scripted model, and what they see.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod agents;
mod answered;
mod answers;
mod bits;
mod call_ids;
mod cleanup;
mod context;
mod conversation;
mod depth;
mod details;
mod effects;
mod entry;
mod event_loops;
mod events;
mod gated;
mod hold;
mod idle;
mod idle_others;
mod init_context;
mod inputs;
mod kept;
mod linkage;
mod linkages;
mod links;
mod model;
mod next;
mod order;
mod pairs;
mod parts;
mod random_events;
mod reload;
mod reply;
mod retried;
mod rough;
mod state;
mod state_change;
mod state_late;
mod stored;
mod streams;
mod support;
mod surface;
mod tools;
mod tools_late;
mod turn;
