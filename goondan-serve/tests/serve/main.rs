//! Agents that are served, over real connections.

mod native;
mod refused;
mod support;
mod ui;
