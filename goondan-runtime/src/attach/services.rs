//! State that the extensions of one conversation share while it is open.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use goondan_core::{
    AgentDelegate, AgentReload, AgentReloadAnswer, BoxFuture, BundleFiles, Event, ExtensionDescriptor, ExtensionName,
    PresentExtension,
};
use goondan_lock::Lock;

use super::late::LateTools;
use super::reload_requests::{ReloadListener, Request};
use super::waiting_reload::WaitingReload;
use crate::bus::Bus;
use crate::live::Clock;
use crate::peers::{Delegations, Inbox};
use crate::ports::store::{InstanceId, Store};
use crate::showing::Showing;
use crate::spec::{AgentSpec, ExtensionSpec};
use crate::state::States;

/// State that the extensions of one conversation share. It is made when the conversation is opened; handles that
/// extensions keep hold it beyond the end of the conversation, where it does nothing any more.
pub(crate) struct Services {
    pub(crate) id: InstanceId,
    /// Tells the conversation apart from the others that are open in this process.
    pub(super) number: u64,
    pub(crate) bus: Bus,
    pub(crate) showing: Arc<Showing>,
    pub(crate) states: Arc<States>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) late: Arc<LateTools>,
    /// The clock of the deadlines of its turns.
    pub(crate) clock: Clock,
    pub(super) store: Arc<dyn Store>,
    /// The number of delegations that wait for their results.
    pub(crate) delegated: AtomicUsize,
    pub(crate) delegations: Delegations,
    pub(crate) waiting_reload: WaitingReload,
    /// The features of the agent, for extensions that ask.
    present: Lock<Present>,
    upcalls: Upcalls,
}

/// The features of an agent.
#[derive(Default)]
pub(super) struct Present {
    pub(super) extensions: Vec<Arc<ExtensionSpec>>,
    pub(super) bundle_files: Arc<BundleFiles>,
    pub(super) secret_variables: Arc<[String]>,
}

impl Present {
    /// Returns the features of an agent that is stored in `store`, which its extensions do not write either.
    pub(super) fn new(agent: &AgentSpec, store: &dyn Store) -> Self {
        let mut bundle_files = Arc::clone(&agent.opening.bundle_files);
        for directory in store.directories() {
            Arc::make_mut(&mut bundle_files).add(directory);
        }
        let secret_variables = Arc::clone(&agent.opening.secret_variables);
        Self { extensions: agent.extensions.clone(), bundle_files, secret_variables }
    }
}

/// The owners of the conversation, as its extensions reach them.
pub(crate) struct Upcalls {
    pub(crate) agent: Weak<dyn AgentUpcalls>,
    pub(crate) instance: Weak<dyn InstanceUpcalls>,
    pub(crate) reloads: Arc<ReloadListener>,
}

/// Requests of extensions to their agent, also outside of turns.
pub(crate) trait AgentUpcalls: Send + Sync {
    /// Publishes a delegation of `extension`, or of the program, and starts its turn.
    fn delegate(
        self: Arc<Self>,
        services: &Arc<Services>,
        extension: Option<&ExtensionName>,
        delegation: AgentDelegate,
    );
}

/// Requests of extensions to their instance, also outside of turns.
pub(crate) trait InstanceUpcalls: Send + Sync {
    /// Stores changed state soon, unless the end of a running turn does.
    fn store_later(self: Arc<Self>);
}

impl Services {
    pub(crate) fn new(
        id: InstanceId,
        bus: Bus,
        (states, inbox): (Arc<States>, Arc<Inbox>),
        store: Arc<dyn Store>,
        upcalls: Upcalls,
    ) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let (late, delegated) = (Arc::default(), AtomicUsize::new(0));
        let (delegations, waiting_reload, present) = Default::default();
        let showing = Showing::new(bus.clone());
        Self {
            id,
            number,
            bus,
            showing,
            states,
            inbox,
            late,
            clock: Clock::default(),
            store,
            delegated,
            delegations,
            waiting_reload,
            present,
            upcalls,
        }
    }

    /// Whether event handlers run, or other agents' answers or delegations are awaited.
    pub(crate) fn are_busy(&self) -> bool {
        self.inbox.is_waiting() || self.delegated.load(Ordering::Acquire) > 0 || !self.bus.is_quiet()
    }

    /// Publishes an event of `extension`, or of the program.
    pub(crate) fn emit(&self, extension: Option<&ExtensionName>, event: Event) {
        match extension {
            Some(extension) => self.bus.emit_from(extension, event),
            None => self.bus.emit(event),
        }
    }

    /// Publishes a delegation of `extension`, or of the program, and starts its turn.
    // D-41
    pub(crate) fn delegate(self: &Arc<Self>, extension: Option<&ExtensionName>, delegation: AgentDelegate) {
        if let Some(agent) = self.upcalls.agent.upgrade() {
            agent.delegate(self, extension, delegation);
        }
    }

    /// Publishes a request of `extension` for a reload, and sends it to the program. Returns the answer.
    // D-41
    pub(super) fn request_reload(
        &self,
        extension: &ExtensionName,
        reload: AgentReload,
    ) -> BoxFuture<'static, AgentReloadAnswer> {
        match Event::new(AgentReload::NAME, (&reload,)) {
            Ok(event) => self.emit(Some(extension), event),
            Err(error) => tracing::error!(%extension, "a request for a reload was not published: {}", error.report()),
        }
        let (request, answer) = Request::new(self.id.clone(), reload.id, self.bus.clone());
        self.waiting_reload.add_request(&request);
        self.upcalls.reloads.send(request);
        answer
    }

    /// Replaces the values of the agent, and returns the earlier ones.
    pub(super) fn set_present(&self, present: Present) -> Present {
        std::mem::replace(&mut self.present.lock(), present)
    }

    /// Returns the extensions that the agent has, the files that it is made of, and the variables that it reads as
    /// secrets.
    // LEGACY-CAPS-01
    pub(super) fn present(&self) -> (Vec<PresentExtension>, Arc<BundleFiles>, Arc<[String]>) {
        let present = self.present.lock();
        let describe = |spec: &Arc<ExtensionSpec>| {
            let ExtensionDescriptor { name, version, .. } = *spec.descriptor;
            PresentExtension::new(spec.name.clone(), name.to_owned(), version.to_owned())
        };
        let extensions = present.extensions.iter().map(describe).collect();
        (extensions, Arc::clone(&present.bundle_files), Arc::clone(&present.secret_variables))
    }

    // D-18
    pub(super) fn state_changed(&self) {
        if let Some(instance) = self.upcalls.instance.upgrade() {
            instance.store_later();
        }
    }
}
