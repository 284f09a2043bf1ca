//! Owns what the extensions of one instance share while it is open, and what stands behind their handles.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::{Map, Value};

use super::slot::Slot;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Bus, Deliveries, Event, EventHandler, EventPattern, Owner};
use crate::extension::{AnyRegistration, ExtensionHost};
use crate::log::{LogHost, LogLevel};
use crate::name::ExtensionName;
use crate::peers::Inbox;
use crate::state::{StateCell, States};
use crate::store::InstanceId;

/// What the extensions of one instance share.
pub(super) struct Services {
    pub(super) id: InstanceId,
    pub(super) bus: Bus,
    pub(super) states: States,
    pub(super) inbox: Arc<Inbox>,
    /// Whether a turn runs: then its end stores changed state, else somebody has to see to it (D-18).
    pub(super) in_turn: AtomicBool,
    /// Whether somebody sees to it already.
    storing: AtomicBool,
    /// How many extensions were registered.
    owners: AtomicU64,
    runtime: tokio::runtime::Handle,
    slot: Weak<Slot>,
    /// Whether the instance is open, so that state can be stored outside of turns.
    open: AtomicBool,
}

impl Services {
    pub(super) fn new(slot: &Arc<Slot>, states: States, runtime: tokio::runtime::Handle) -> Self {
        Self {
            id: slot.id.clone(),
            bus: Bus::new(runtime.clone()),
            states,
            inbox: Arc::default(),
            in_turn: AtomicBool::new(false),
            storing: AtomicBool::new(false),
            owners: AtomicU64::new(0),
            runtime,
            slot: Arc::downgrade(slot),
            open: AtomicBool::new(false),
        }
    }

    /// The instance is open: what changes from now on must be stored.
    pub(super) fn serve(&self) {
        self.open.store(true, Ordering::Release);
    }

    /// Whether something is under way: handlers of events, answers of other agents, state that is about to be stored.
    pub(super) fn are_busy(&self) -> bool {
        self.storing.load(Ordering::Acquire) || self.inbox.is_waiting() || !self.bus.is_quiet()
    }

    /// Stores state that was changed while no turn runs (D-18).
    fn store_when_idle(self: &Arc<Self>) {
        let Some(slot) = self.slot.upgrade().filter(|_| self.open.load(Ordering::Acquire)) else { return };
        if self.in_turn.load(Ordering::Acquire) || self.storing.swap(true, Ordering::AcqRel) {
            return;
        }
        let this = Arc::clone(self);
        self.runtime.spawn(async move {
            this.storing.store(false, Ordering::Release);
            if let Err(error) = slot.store_state(&this).await {
                tracing::error!(instance = %this.id, "state was not stored: {}", error.report());
            }
        });
    }
}

/// Behind the [`ExtensionApi`](crate::ExtensionApi) of one extension.
pub(super) struct ExtensionServices {
    pub(super) extension: ExtensionName,
    services: Arc<Services>,
    owner: Owner,
    /// In the place of an older one once the extension takes effect.
    state: Arc<StateCell>,
    notes: Arc<Notes>,
}

/// What was registered so far; `None` once registration is over.
pub(super) struct Notes(Mutex<Option<Vec<Registration>>>);

/// Something that was registered, and by whom.
pub(super) type Registration = (Arc<ExtensionServices>, AnyRegistration);

impl Notes {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Some(Vec::new())))
    }

    /// Ends registration.
    pub(super) fn close(&self) -> Vec<Registration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }
}

impl ExtensionServices {
    pub(super) fn new(extension: ExtensionName, services: Arc<Services>, notes: Arc<Notes>) -> Arc<Self> {
        let state = services.states.copy_of(&extension);
        let number = services.owners.fetch_add(1, Ordering::Relaxed);
        let owner = Owner { extension: extension.clone(), number };
        Arc::new(Self { extension, services, owner, state, notes })
    }

    /// The extension takes effect: its state is the one that is kept.
    pub(super) fn take_over(&self) {
        self.services.states.hand_over(&self.extension, &self.state);
    }

    /// Starts a subscription in the name of the extension.
    pub(super) fn subscribe(&self, pattern: EventPattern, limit: Deliveries, handler: Arc<dyn EventHandler>) -> u64 {
        self.services.bus.subscribe(Some(self.owner.clone()), pattern, limit, handler)
    }

    /// Ends all subscriptions of the extension.
    pub(super) fn unsubscribe_all(&self) {
        self.services.bus.unsubscribe_owner(&self.owner);
    }

    fn note(self: &Arc<Self>, registration: AnyRegistration) -> Result<()> {
        match &mut *self.notes.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(notes) => {
                notes.push((Arc::clone(self), registration));
                Ok(())
            }
            None => Err(Error::new(ErrorCode::EXT_INIT, "registration is over")
                .suggest("register in `#[init]`; what is registered later would change turns that run already")
                .at(&self.extension, "registration")),
        }
    }
}

/// The handle of an extension holds this; the account of registrations needs to know whose they are.
pub(super) struct Handle(pub(super) Arc<ExtensionServices>);

impl ExtensionHost for Handle {
    fn extension(&self) -> &ExtensionName {
        &self.0.extension
    }

    fn register(&self, registration: AnyRegistration) -> Result<()> {
        self.0.note(registration)
    }

    fn state(&self) -> Option<Value> {
        self.0.state.get()
    }

    fn update_state(&self, change: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        self.0.state.update(change)?;
        self.0.services.store_when_idle();
        Ok(())
    }

    fn subscribe(&self, pattern: EventPattern, limit: Deliveries, handler: Arc<dyn EventHandler>) -> u64 {
        self.0.subscribe(pattern, limit, handler)
    }

    fn unsubscribe(&self, subscription: u64) {
        self.0.services.bus.unsubscribe(subscription);
    }

    fn emit(&self, event: Event) {
        self.0.services.bus.emit(event);
    }
}

impl LogHost for Handle {
    fn log(&self, level: LogLevel, text: &str, fields: &Map<String, Value>) {
        self.0.log(level, text, fields);
    }
}

impl LogHost for ExtensionServices {
    fn log(&self, level: LogLevel, text: &str, fields: &Map<String, Value>) {
        /// `tracing` wants the level as a constant.
        macro_rules! line {
            ($level:expr) => {
                tracing::event!(
                    target: "goondan::extension",
                    $level,
                    agent = %self.services.id.agent,
                    instance = %self.services.id.key,
                    extension = %self.extension,
                    fields = %Fields(fields),
                    "{text}"
                )
            };
        }
        match level {
            LogLevel::Debug => line!(tracing::Level::DEBUG),
            LogLevel::Info => line!(tracing::Level::INFO),
            LogLevel::Warn => line!(tracing::Level::WARN),
            LogLevel::Error => line!(tracing::Level::ERROR),
        }
    }
}

/// Structured values as JSON; rendered only when somebody listens.
struct Fields<'a>(&'a Map<String, Value>);

impl std::fmt::Display for Fields<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = serde_json::to_string(self.0).map_err(|_| std::fmt::Error)?;
        f.write_str(&text)
    }
}
