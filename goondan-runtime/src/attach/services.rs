//! What the extensions of one conversation share while it is open.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use goondan_core::{
    AgentDelegate, AgentReload, AgentReloadAnswer, Event, ExtensionDescriptor, ExtensionName, PresentExtension,
    ReloadEffect,
};

use super::Generation;
use super::late::LateTools;
use super::replace::WaitingReload;
use crate::bus::Bus;
use crate::peers::Inbox;
use crate::ports::store::{InstanceId, Store};
use crate::spec::ExtensionSpec;
use crate::state::States;

/// What the extensions of one conversation share. It is made when the conversation is opened; handles that extensions
/// keep hold it beyond the end of the conversation, where it does nothing any more.
pub(crate) struct Services {
    pub(crate) id: InstanceId,
    /// Tells the conversation apart from the others that are open in this process.
    pub(super) number: u64,
    pub(crate) bus: Bus,
    pub(crate) states: States,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) late: Arc<LateTools>,
    pub(super) store: Arc<dyn Store>,
    /// How many delegations wait for their results.
    pub(crate) delegated: AtomicUsize,
    pub(crate) waiting_reload: WaitingReload,
    /// What the agent has, for extensions that ask.
    extensions: Mutex<Vec<Arc<ExtensionSpec>>>,
    instance: Weak<dyn InstanceUpcalls>,
}

/// What extensions ask of the instance that they are in, also outside of turns.
pub(crate) trait InstanceUpcalls: Send + Sync {
    /// Starts the turn that an event called `agent.delegate` asks for. `extension` is `None` for one of the program.
    fn delegate(self: Arc<Self>, services: &Arc<Services>, extension: Option<&ExtensionName>, event: &Event);
    /// Brings the event `agent.reload` to the program.
    fn request_reload(self: Arc<Self>, services: &Arc<Services>, event: &Event);
    /// Shows what the conversation runs with from now on to those who do not wait for turns.
    fn set_generation(&self, new: &Arc<Generation>);
    /// Stores changed state soon, unless the end of a running turn does.
    fn store_later(self: Arc<Self>);
}

impl Services {
    pub(crate) fn new(
        id: InstanceId,
        bus: Bus,
        states: States,
        store: Arc<dyn Store>,
        instance: Weak<dyn InstanceUpcalls>,
    ) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (inbox, late, delegated) = (Arc::default(), Arc::default(), AtomicUsize::new(0));
        let (waiting_reload, extensions) = (WaitingReload::default(), Mutex::default());
        Self { id, number, bus, states, inbox, late, store, delegated, waiting_reload, extensions, instance }
    }

    /// Whether event handlers run, or other agents' answers or delegations are awaited.
    pub(crate) fn are_busy(&self) -> bool {
        self.inbox.is_waiting() || self.delegated.load(Ordering::Acquire) > 0 || !self.bus.is_quiet()
    }

    /// Emits an event of `extension`, or of the program. `agent.delegate` and `agent.reload` are acted upon besides.
    pub(crate) fn emit(self: &Arc<Self>, extension: Option<&ExtensionName>, event: Event) {
        if let name @ (AgentDelegate::NAME | AgentReload::NAME) = event.name()
            && let Some(instance) = self.instance.upgrade()
        {
            if name == AgentDelegate::NAME {
                instance.delegate(self, extension, &event);
            } else {
                instance.request_reload(self, &event);
            }
        }
        match extension {
            Some(extension) => self.bus.emit_from(extension, event),
            None => self.bus.emit(event),
        }
    }

    /// Answers the extension that asked for a reload by the request `id`.
    pub(crate) fn answer_reload(&self, id: &str, effect: ReloadEffect, reason: Option<&str>) {
        let answer = AgentReloadAnswer::new(id, effect, reason.map(str::to_owned));
        match Event::new(AgentReloadAnswer::NAME, (answer,)) {
            Ok(event) => self.bus.emit(event),
            Err(error) => tracing::error!("the answer to a request for a reload was not emitted: {error}"),
        }
    }

    /// Replaces what the agent has, and returns what it had.
    pub(super) fn set_extensions(&self, extensions: Vec<Arc<ExtensionSpec>>) -> Vec<Arc<ExtensionSpec>> {
        std::mem::replace(&mut self.extensions.lock().unwrap_or_else(PoisonError::into_inner), extensions)
    }

    /// Returns what the agent has.
    // LEGACY-CAPS-01
    pub(super) fn extensions(&self) -> Vec<PresentExtension> {
        let extensions = self.extensions.lock().unwrap_or_else(PoisonError::into_inner);
        let present = |spec: &Arc<ExtensionSpec>| {
            let ExtensionDescriptor { name, version, .. } = *spec.descriptor;
            PresentExtension::new(spec.name.clone(), name.to_owned(), version.to_owned())
        };
        extensions.iter().map(present).collect()
    }

    pub(super) fn generation_changed(&self, new: &Arc<Generation>) {
        if let Some(instance) = self.instance.upgrade() {
            instance.set_generation(new);
        }
    }

    // D-18
    pub(super) fn state_changed(&self) {
        if let Some(instance) = self.instance.upgrade() {
            instance.store_later();
        }
    }
}
