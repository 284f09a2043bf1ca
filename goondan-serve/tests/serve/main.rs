//! Agents that are served, over real connections.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ag_ui;
mod attacked;
mod described;
mod embedded;
mod goldens;
mod native;
mod queued;
mod refused;
mod statuses;
mod support;
mod ui;
