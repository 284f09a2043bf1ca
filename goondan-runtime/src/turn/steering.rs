//! Inputs that wait for the next step of the turn that runs.
// STEER-01, D-46

use std::sync::{Arc, OnceLock};

use goondan_core::AgentEvent;
use goondan_lock::Lock;

/// The inputs that wait, oldest first. Made with the first one: most conversations are never steered.
#[derive(Default)]
pub(crate) struct Steering(OnceLock<Box<Lock<Vec<Arc<AgentEvent>>>>>);

impl Steering {
    /// Takes the inputs that wait.
    #[inline]
    pub(super) fn take(&self) -> Vec<Arc<AgentEvent>> {
        self.0.get().map(|waiting| std::mem::take(&mut *waiting.lock())).unwrap_or_default()
    }

    /// Changes the waiting inputs.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Vec<Arc<AgentEvent>>)) {
        change(&mut self.0.get_or_init(Box::default).lock());
    }
}
