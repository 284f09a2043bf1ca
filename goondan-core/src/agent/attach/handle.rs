//! What an extension's [`ExtensionApi`](crate::ExtensionApi) is backed by.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use super::Services;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Deliveries, Event, EventHandler, EventPattern, Owner};
use crate::extension::{AnyRegistration, ExtensionHost};
use crate::log::{LogHost, LogLevel};
use crate::name::ExtensionName;
use crate::panic::drop_guarded;
use crate::state::StateCell;

/// One extension's access to its conversation. Extensions keep it through clones of their `ExtensionApi`.
pub(in crate::agent) struct ExtensionHandle {
    extension: ExtensionName,
    services: Arc<Services>,
    owner: Owner,
    /// A copy of the stored state. It becomes the stored state when the extension becomes active.
    state: Arc<StateCell>,
    /// `None` once registration is over.
    registrations: Mutex<Option<Vec<AnyRegistration>>>,
}

impl ExtensionHandle {
    pub(super) fn new(extension: ExtensionName, services: Arc<Services>) -> Arc<Self> {
        let state = services.states.copy_of(&extension);
        let owner = services.bus.new_owner(extension.clone());
        Arc::new(Self { extension, services, owner, state, registrations: Mutex::new(Some(Vec::new())) })
    }

    /// Ends registration, and returns what was registered.
    pub(super) fn end_registration(&self) -> Vec<AnyRegistration> {
        self.registrations.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }

    /// Makes this extension's state the one that is stored.
    pub(super) fn take_over_state(&self) {
        self.services.states.hand_over(&self.extension, &self.state);
    }

    /// Starts a subscription that the extension owns.
    pub(super) fn subscribe(&self, pattern: EventPattern, limit: Deliveries, handler: Arc<dyn EventHandler>) -> u64 {
        self.services.bus.subscribe(Some(self.owner.clone()), pattern, limit, handler)
    }

    /// Ends all subscriptions that the extension owns.
    pub(super) fn unsubscribe_all(&self) {
        self.services.bus.unsubscribe_owner(&self.owner);
    }
}

impl ExtensionHost for ExtensionHandle {
    fn extension(&self) -> &ExtensionName {
        &self.extension
    }

    fn register(&self, registration: AnyRegistration) -> Result<()> {
        if let Some(registrations) = &mut *self.registrations.lock().unwrap_or_else(PoisonError::into_inner) {
            registrations.push(registration);
            return Ok(());
        }
        drop_guarded(&self.extension, || drop(registration));
        Err(Error::new(ErrorCode::EXT_INIT, "registration is over")
            .suggest("register in `#[init]`; what is registered later would change turns that run already")
            .at(&self.extension, "registration"))
    }

    fn state(&self) -> Option<Value> {
        self.state.get()
    }

    fn update_state(&self, change: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        self.state.update(&self.extension, change)?;
        self.services.state_changed();
        Ok(())
    }

    fn subscribe(&self, pattern: EventPattern, limit: Deliveries, handler: Arc<dyn EventHandler>) -> u64 {
        Self::subscribe(self, pattern, limit, handler)
    }

    fn unsubscribe(&self, subscription: u64) {
        self.services.bus.unsubscribe(subscription);
    }

    fn emit(&self, event: Event) {
        self.services.bus.emit_from(&self.extension, event);
    }
}

impl LogHost for ExtensionHandle {
    fn log(&self, level: LogLevel, text: &str, fields: &Map<String, Value>) {
        /// `tracing` needs the level as a constant.
        macro_rules! line {
            ($level:expr) => {
                tracing::event!(
                    target: "goondan::extension",
                    $level,
                    agent = %self.services.id.agent,
                    instance = %self.services.id.key,
                    extension = %self.extension,
                    fields = %AsJson(fields),
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

/// Structured values as JSON, formatted only if a subscriber records the line.
struct AsJson<'a>(&'a Map<String, Value>);

impl std::fmt::Display for AsJson<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = serde_json::to_string(self.0).map_err(|_| std::fmt::Error)?;
        f.write_str(&text)
    }
}
