//! The agent, policy and extensions that a conversation runs turns with.

use std::sync::Arc;

use goondan_core::ReloadEffect;
use goondan_lock::Lock;

use super::register::Registered;
use crate::spec::AgentSpec;

/// The agent, policy and extensions that a conversation runs turns with. A reload replaces it between two turns, or
/// between two steps of one.
pub(crate) struct Generation {
    pub(crate) spec: Arc<AgentSpec>,
    pub(crate) registered: Registered,
}

impl Generation {
    /// Returns when a running turn can have `spec`: from its next step, if the extensions with a layer around turns
    /// stay as they are.
    pub(crate) fn effect_of(&self, spec: &AgentSpec) -> ReloadEffect {
        let mut around = self.registered.turn.layers().map(|layer| &layer.extension);
        let stays = around.all(|name| {
            let active = self.registered.extensions.iter().find(|active| active.name() == name);
            active.is_some_and(|active| spec.extensions.iter().any(|spec| active.matches(spec)))
        });
        if stays { ReloadEffect::NextStep } else { ReloadEffect::NextTurn }
    }
}

/// The newest generation of an open conversation, for readers that do not wait for turns.
pub(crate) struct Newest(Lock<Arc<Generation>>);

impl Newest {
    pub(crate) fn new(generation: &Arc<Generation>) -> Self {
        Self(Lock::new(Arc::clone(generation)))
    }

    pub(crate) fn get(&self) -> Arc<Generation> {
        Arc::clone(&self.0.lock())
    }

    pub(super) fn set(&self, new: &Arc<Generation>) {
        let old = std::mem::replace(&mut *self.0.lock(), Arc::clone(new));
        // Not under the lock, because extensions may be dropped with it.
        drop(old);
    }
}
