//! The extensions of the conformance tests, in the same modules as the tests.
//!
//! They are linked into the tests, and also built as a library that the tests load. So they report to the tests only
//! in ways that cross the ABI: config, files, events and state.
#![expect(clippy::unwrap_used, clippy::panic, reason = "some of them exist to panic, and all assert by panicking")]

pub mod acting;
pub mod agents;
pub mod answers;
pub mod asking;
pub mod beside;
pub mod call_context;
pub mod catalogs;
pub mod cleanup;
pub mod context;
pub mod conversation;
pub mod covered;
pub mod cut;
pub mod depth;
pub mod details;
pub mod effects;
pub mod entry;
pub mod event_loops;
pub mod events;
pub mod files;
pub mod hold;
pub mod idle;
pub mod init_context;
pub mod judged;
pub mod kept;
pub mod links;
mod log;
pub mod masked;
pub mod model;
pub mod model_requests;
pub mod next;
pub mod order;
pub mod parts;
pub mod points;
pub mod prefix;
pub mod prepared;
pub mod presented;
pub mod program_events;
pub mod progress;
pub mod projected;
pub mod random_events;
pub mod reload;
pub mod reload_at_step;
pub mod reply;
pub mod resumed;
pub mod reviewed;
pub mod rewound;
pub mod rough;
pub mod shared_state;
pub mod shown;
pub mod sizes;
pub mod skip;
pub mod state;
pub mod state_change;
pub mod state_late;
pub mod steered;
pub mod surface;
pub mod texts;
pub mod tokens;
pub mod tools;
pub mod tools_ask;
pub mod tools_ask_live;
pub mod tools_late;
pub mod transformed;
pub mod tree;
pub mod turn;
pub mod turns;
pub mod values;
pub mod wake;

use log::{Log, LogConfig};
