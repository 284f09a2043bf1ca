//! An active extension of a conversation, from its registration to its cleanup.

use std::sync::Arc;
use std::time::Duration;

use goondan_core::host::panic::{catch_panics, drop_guarded};
use goondan_core::{
    AnyRegistration, CleanupHandler, Deliveries, Error, Event, ExtensionCleanup, ExtensionName, OnError, Result,
};

use super::handle::ExtensionHandle;
use super::services::Services;
use crate::join::join;
use crate::spec::ExtensionSpec;

/// The longest time of the cleanup of one extension.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);

/// An extension, and its registrations.
pub(crate) struct ActiveExtension {
    spec: Arc<ExtensionSpec>,
    handle: Arc<ExtensionHandle>,
    registrations: Box<[AnyRegistration]>,
}

impl ActiveExtension {
    pub(super) fn new(
        spec: Arc<ExtensionSpec>,
        handle: Arc<ExtensionHandle>,
        registrations: Box<[AnyRegistration]>,
    ) -> Self {
        Self { spec, handle, registrations }
    }

    pub(super) fn name(&self) -> &ExtensionName {
        &self.spec.name
    }

    pub(super) fn on_error(&self) -> OnError {
        self.spec.on_error
    }

    pub(super) fn guards_swarm(&self) -> bool {
        self.spec.guards_swarm()
    }

    pub(super) fn handle(&self) -> &Arc<ExtensionHandle> {
        &self.handle
    }

    pub(super) fn registrations(&self) -> &[AnyRegistration] {
        &self.registrations
    }

    /// Whether `spec` describes this extension: the same name, code and config.
    pub(super) fn matches(&self, spec: &Arc<ExtensionSpec>) -> bool {
        Arc::ptr_eq(&self.spec, spec) || self.spec == *spec
    }

    /// Starts its subscriptions, and makes its state the one that is stored.
    pub(super) fn activate(&self) {
        self.handle.take_over_state();
        for registration in &*self.registrations {
            if let AnyRegistration::Subscription(pattern, handler) = registration {
                self.handle.subscribe(pattern.clone(), Deliveries::All, Arc::clone(handler));
            }
        }
    }

    /// Whether an option of a layer orders this extension and `other`.
    fn is_ordered_with(&self, other: &Self) -> bool {
        let names = |active: &Self, other: &Self| {
            active.registrations.iter().any(|registration| match registration {
                AnyRegistration::Middleware(_, options) => {
                    let mut named = options.before.iter().chain(&options.after);
                    named.any(|name| name.trim_end_matches('?') == other.name().as_str())
                }
                _ => false,
            })
        };
        names(self, other) || names(other, self)
    }

    /// Runs the cleanup handlers, and ends the extension's handles.
    async fn end(&self) {
        for registration in self.registrations.iter().rev() {
            if let AnyRegistration::Cleanup(handler) = registration
                && let Err(problem) = self.clean_up(&**handler).await
            {
                tracing::error!(extension = %self.name(), "the extension could not clean up: {problem}");
            }
        }
        self.handle.unsubscribe_all();
        self.handle.end();
    }

    async fn clean_up(&self, handler: &dyn CleanupHandler) -> Result<(), String> {
        let clean_up = catch_panics(self.name(), async { handler.clean_up().await });
        match tokio::time::timeout(CLEANUP_TIMEOUT, clean_up).await {
            Ok(outcome) => outcome
                .unwrap_or_else(|text| Err(Error::panicked(&text)))
                .map_err(|error| error.at(self.name(), "#[cleanup]").report().to_string()),
            Err(_) => Err(format!("it took longer than {CLEANUP_TIMEOUT:?}")),
        }
    }
}

/// Drops the extension: whatever else refers to its parts is dropped before, as [`Registered`](super::Registered) is.
impl Drop for ActiveExtension {
    fn drop(&mut self) {
        self.handle.late().remove(self.handle.owner());
        for registration in std::mem::take(&mut self.registrations) {
            drop_guarded(&self.spec.name, || drop(registration));
        }
    }
}

/// Emits `extension.cleanup` for each of `extensions`, drains the bus, and runs their cleanup handlers.
// LEGACY-EVENTS-06
pub(crate) async fn deactivate(extensions: &[Arc<ActiveExtension>], services: &Services) {
    for active in extensions {
        let extension = active.name();
        match Event::new(ExtensionCleanup::NAME, (ExtensionCleanup::new(extension.clone()),)) {
            Ok(event) => services.bus.emit(event),
            Err(error) => tracing::error!(%extension, "{}", error.report()),
        }
    }
    services.bus.drain(CLEANUP_TIMEOUT).await;
    run_cleanup(extensions).await;
}

/// Runs the cleanup handlers of `extensions` side by side, the last registered first, and ends the subscriptions of
/// each. Of two extensions that `before` or `after` orders, the last registered has ended before the other begins.
// LOAD-11
pub(crate) async fn run_cleanup(extensions: &[Arc<ActiveExtension>]) {
    let mut waves: Vec<Vec<&ActiveExtension>> = Vec::new();
    for active in extensions.iter().rev() {
        let last = waves.iter().rposition(|wave| wave.iter().any(|later| later.is_ordered_with(active)));
        let wave = last.map_or(0, |last| last + 1);
        if wave == waves.len() {
            waves.push(Vec::new());
        }
        waves[wave].push(active);
    }
    for wave in waves {
        join(wave.into_iter().map(ActiveExtension::end).collect()).await;
    }
}
