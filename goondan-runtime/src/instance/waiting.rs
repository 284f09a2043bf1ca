//! An input that waits for the next step of the turn that runs.
// STEER-01

use std::sync::Arc;

use goondan_core::AgentEvent;

use super::slot::InstanceSlot;

/// An input waits until this is dropped or a step takes it.
pub(super) struct Waiting {
    slot: Arc<InstanceSlot>,
    event: Arc<AgentEvent>,
}

impl Waiting {
    pub(super) fn new(slot: Arc<InstanceSlot>, event: AgentEvent) -> Self {
        let event = Arc::new(event);
        slot.steering.change(|waiting| waiting.push(Arc::clone(&event)));
        Self { slot, event }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.slot.steering.change(|waiting| waiting.retain(|event| !Arc::ptr_eq(event, &self.event)));
    }
}
