//! Extensions in one conversation: they register, become active, and clean up.

mod active;
mod handle;
mod late;
mod register;
mod replace;
mod services;
mod shared_state;

pub(super) use active::{deactivate, run_cleanup};
pub(super) use register::{Registered, Staged};
pub(super) use replace::{Replaced, StepGenerations, reload_failed, replace};
pub(super) use services::{InstanceUpcalls, Services};

use std::sync::Arc;

use super::spec::AgentSpec;

/// What a conversation runs turns with. A reload replaces it between two turns, or between two steps of one.
pub(super) struct Generation {
    pub(super) spec: Arc<AgentSpec>,
    pub(super) registered: Registered,
}
