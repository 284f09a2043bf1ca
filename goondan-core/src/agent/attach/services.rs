//! What the extensions of one conversation share while it is open.

use std::sync::{Arc, Weak};

use super::late::LateTools;
use crate::event::Bus;
use crate::peers::Inbox;
use crate::state::States;
use crate::store::{InstanceId, Store};

/// What the extensions of one conversation share. It is made when the conversation is opened; handles that extensions
/// keep hold it beyond the end of the conversation, where it does nothing any more.
pub(in crate::agent) struct Services {
    pub(in crate::agent) id: InstanceId,
    pub(in crate::agent) bus: Bus,
    pub(in crate::agent) states: States,
    pub(in crate::agent) inbox: Arc<Inbox>,
    pub(in crate::agent) late: Arc<LateTools>,
    pub(super) store: Arc<dyn Store>,
    store_later: Weak<dyn StoreLater>,
}

/// Stores state that changes outside of turns. The instance implements it.
pub(in crate::agent) trait StoreLater: Send + Sync {
    /// Stores changed state soon, unless the end of a running turn does.
    fn store_later(self: Arc<Self>);
}

impl Services {
    pub(in crate::agent) fn new(
        id: InstanceId,
        bus: Bus,
        states: States,
        store: Arc<dyn Store>,
        store_later: Weak<dyn StoreLater>,
    ) -> Self {
        Self { id, bus, states, inbox: Arc::default(), late: Arc::default(), store, store_later }
    }

    /// Whether event handlers run or other agents' answers are awaited.
    pub(in crate::agent) fn are_busy(&self) -> bool {
        self.inbox.is_waiting() || !self.bus.is_quiet()
    }

    // D-18
    pub(super) fn state_changed(&self) {
        if let Some(store) = self.store_later.upgrade() {
            store.store_later();
        }
    }
}
