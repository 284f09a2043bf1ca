//! Owns an extension in an instance: from its registration until it goes away.

use std::sync::Arc;
use std::time::Duration;

use super::builder::ExtensionSpec;
use super::services::{ExtensionServices, Services};
use crate::error::Result;
use crate::event::{Deliveries, Event, ExtensionCleanup};
use crate::extension::{AnyRegistration, CleanupHandler};
use crate::name::ExtensionName;
use crate::panic::catch_panics;

/// How long one extension may take to clean up.
const CLEANUP_LIMIT: Duration = Duration::from_secs(5);

/// An extension, and what it registered.
pub(super) struct Attached {
    spec: Arc<ExtensionSpec>,
    host: Arc<ExtensionServices>,
    registrations: Box<[AnyRegistration]>,
}

impl Attached {
    pub(super) fn new(
        spec: Arc<ExtensionSpec>,
        host: Arc<ExtensionServices>,
        registrations: Box<[AnyRegistration]>,
    ) -> Self {
        Self { spec, host, registrations }
    }

    pub(super) fn name(&self) -> &ExtensionName {
        &self.spec.name
    }

    pub(super) fn host(&self) -> &Arc<ExtensionServices> {
        &self.host
    }

    pub(super) fn registrations(&self) -> &[AnyRegistration] {
        &self.registrations
    }

    /// Whether `spec` describes this very extension: the name, the code, the config.
    pub(super) fn is(&self, spec: &Arc<ExtensionSpec>) -> bool {
        Arc::ptr_eq(&self.spec, spec) || self.spec == *spec
    }

    /// From now on its events reach it, and its state is kept.
    pub(super) fn take_effect(&self) {
        self.host.take_over();
        for registration in &*self.registrations {
            if let AnyRegistration::Subscription(pattern, handler) = registration {
                self.host.subscribe(pattern.clone(), Deliveries::All, Arc::clone(handler));
            }
        }
    }

    async fn clean_up(&self, handler: &dyn CleanupHandler) -> Result<(), String> {
        match tokio::time::timeout(CLEANUP_LIMIT, catch_panics(handler.clean_up())).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(error)) | Err(error)) => Err(error.at(self.name(), "#[cleanup]").report().to_string()),
            Err(_) => Err(format!("it took longer than {CLEANUP_LIMIT:?}")),
        }
    }
}

/// Tells every one of `extensions` and who else listens that they go away (LEGACY-EVENTS-06), and takes leave of them.
pub(super) async fn go_away(extensions: &[Arc<Attached>], services: &Services) {
    for attached in extensions {
        let extension = attached.name();
        match Event::new(ExtensionCleanup::NAME, (ExtensionCleanup { extension: extension.clone() },)) {
            Ok(event) => services.bus.emit(event),
            Err(error) => tracing::error!(%extension, "{}", error.report()),
        }
    }
    services.bus.drain(CLEANUP_LIMIT).await;
    take_leave(extensions).await;
}

/// Lets extensions clean up, the last registered first (LOAD-11). What has cleaned up hears nothing more.
pub(super) async fn take_leave(extensions: &[Arc<Attached>]) {
    for attached in extensions.iter().rev() {
        let extension = attached.name();
        for registration in attached.registrations.iter().rev() {
            if let AnyRegistration::Cleanup(handler) = registration
                && let Err(problem) = attached.clean_up(&**handler).await
            {
                tracing::error!(%extension, "the extension could not clean up: {problem}");
            }
        }
        attached.host.unsubscribe_all();
    }
}

/// Drops what went away, where a panic in it reaches nobody.
pub(super) async fn drop_behind_border<T>(gone: T) {
    if let Err(error) = catch_panics(async { drop(gone) }).await {
        tracing::error!("an extension that went away: {}", error.report());
    }
}
