//! Inputs that wait for the next step of the turn that runs.
// STEER-01, D-46

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goondan_core::AgentEvent;
use goondan_lock::Lock;

/// The inputs that wait, oldest first.
#[derive(Default)]
pub(crate) struct Steering {
    waiting: Lock<Vec<Arc<AgentEvent>>>,
    /// How many wait, so that a step which nobody steers takes no lock.
    count: AtomicUsize,
}

impl Steering {
    /// Takes the inputs that wait.
    #[inline]
    pub(super) fn take(&self) -> Vec<Arc<AgentEvent>> {
        match self.count.load(Ordering::Acquire) {
            0 => Vec::new(),
            _ => self.change(std::mem::take),
        }
    }

    /// Changes what waits.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Vec<Arc<AgentEvent>>) -> T) -> T {
        let mut waiting = self.waiting.lock();
        let changed = change(&mut waiting);
        self.count.store(waiting.len(), Ordering::Release);
        changed
    }
}
