//! State that the instances of an agent share, and the map of their slots.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use goondan_core::{AgentName, InstanceKey, Result};
use goondan_lock::Lock;
use tokio::sync::Notify;

use super::Instance;
use super::background::Background;
use super::idle::Idle;
use super::slot::InstanceSlot;
use crate::attach::ReloadListener;
use crate::live::Questions;
use crate::peers::Reach;
use crate::ports::store::{InstanceId, Store};
use crate::spec::AgentSpec;
use crate::turn::Observers;

/// State that an [`Agent`](crate::Agent) and its instances share.
pub(crate) struct AgentInner {
    pub(crate) name: AgentName,
    /// The description that later conversations are opened with.
    spec: Lock<Arc<AgentSpec>>,
    /// Held by a reload: one runs at a time.
    pub(crate) reloading: tokio::sync::Mutex<()>,
    pub(super) store: Arc<dyn Store>,
    pub(super) idle_after: Option<Duration>,
    pub(super) idle: Idle,
    pub(crate) observers: Arc<Observers>,
    pub(crate) background: Arc<Background>,
    pub(crate) reload_listener: Arc<ReloadListener>,
    pub(crate) questions: Arc<Questions>,
    slots: Lock<HashMap<InstanceKey, Weak<InstanceSlot>>>,
    pub(crate) reach: Reach,
    /// Tells requests of other agents that a turn of the agent does not wait for a decision any more. One for all
    /// conversations, and few wait.
    // ASK-01
    pub(super) decided: Notify,
}

impl AgentInner {
    pub(crate) fn new(name: AgentName, spec: AgentSpec, store: Arc<dyn Store>, idle_after: Option<Duration>) -> Self {
        Self {
            name,
            spec: Lock::new(Arc::new(spec)),
            reloading: tokio::sync::Mutex::default(),
            store,
            idle_after,
            idle: Idle::default(),
            observers: Arc::default(),
            background: Arc::default(),
            reload_listener: Arc::default(),
            questions: Arc::default(),
            slots: Lock::default(),
            reach: Reach::default(),
            decided: Notify::new(),
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn spec(&self) -> Arc<AgentSpec> {
        Arc::clone(&self.spec.lock())
    }

    /// Replaces the spec, and returns the old one.
    pub(crate) fn replace_spec(&self, new: Arc<AgentSpec>) -> Arc<AgentSpec> {
        std::mem::replace(&mut self.spec.lock(), new)
    }

    /// Returns the slot of the instance `key`, made if there is none.
    pub(crate) fn slot(self: &Arc<Self>, key: InstanceKey) -> Arc<InstanceSlot> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(&key).and_then(Weak::upgrade) {
            return slot;
        }
        let slot = Arc::new(InstanceSlot::new(InstanceId { agent: self.name.clone(), key: key.clone() }, self));
        slots.insert(key, Arc::downgrade(&slot));
        slot
    }

    /// Returns a handle of the conversation of `slot`, opened if it is not open.
    pub(crate) async fn open(self: &Arc<Self>, slot: &Arc<InstanceSlot>) -> Result<Instance> {
        if let Some(instance) = slot.handle().filter(|_| slot.is_open()) {
            return Ok(instance);
        }
        let mut lock = slot.lock().await;
        if slot.idle_after().is_none() && slot.handle().is_none() {
            // The last handle was dropped, but the conversation is not closed yet.
            slot.close(lock).await?;
            lock = slot.lock().await;
        }
        let instance = slot.make_handle(self);
        instance.ensure_open(lock).await?;
        Ok(instance)
    }

    /// Opens the conversation `key` on behalf of another agent or of a delegation: it stays open for a while without a
    /// handle.
    pub(crate) async fn open_for_others(self: &Arc<Self>, key: InstanceKey) -> Result<Instance> {
        let slot = self.slot(key);
        let instance = self.open(&slot).await?;
        slot.use_for_others(self);
        Ok(instance)
    }

    pub(crate) fn slots(&self) -> Vec<Arc<InstanceSlot>> {
        self.slots.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// Removes the slot of `key` after it was dropped, unless there is a new one by now.
    pub(super) fn forget(&self, key: &InstanceKey) {
        let mut slots = self.slots.lock();
        if slots.get(key).is_some_and(|slot| slot.strong_count() == 0) {
            slots.remove(key);
        }
    }
}
