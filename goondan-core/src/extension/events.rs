//! Owns the event surface: subscriptions and emissions on the bus of an instance (EVENT-01..08).

use std::fmt;
use std::sync::{Arc, Weak};

use super::ExtensionHost;
use crate::error::{Error, Result};
use crate::event::{Deliveries, Event, EventArgs, EventHandler};
use crate::log::Logger;

/// The bus of one conversation: extensions of the same agent process talk over it, and the runtime tells what happens
/// (EVENT-02, EVENT-06, EVENT-07).
pub struct EventsApi<'a> {
    host: &'a Arc<dyn ExtensionHost>,
}

impl<'a> EventsApi<'a> {
    pub(super) fn new(host: &'a Arc<dyn ExtensionHost>) -> Self {
        Self { host }
    }

    /// Calls `handler` for every event that `pattern`, a name or a glob such as `workspace.*`, fits. Handlers run beside
    /// the turn; one that fails or is slow holds up nobody (EVENT-03).
    ///
    /// The subscription ends when what is returned is cancelled or dropped (EVENT-01); [`Subscription::detach`] lets it
    /// live as long as the extension.
    ///
    /// # Errors
    /// `E_EVENT_NAME` when `pattern` is not one.
    pub fn on(&self, pattern: &str, handler: impl EventHandler) -> Result<Subscription> {
        self.subscribe(pattern, Deliveries::All, handler)
    }

    /// Calls `handler` for the next event that `pattern` fits, once (LEGACY-EVENTS-02).
    ///
    /// # Errors
    /// `E_EVENT_NAME` when `pattern` is not one.
    pub fn once(&self, pattern: &str, handler: impl EventHandler) -> Result<Subscription> {
        self.subscribe(pattern, Deliveries::One, handler)
    }

    fn subscribe(&self, pattern: &str, limit: Deliveries, handler: impl EventHandler) -> Result<Subscription> {
        let number = self.host.subscribe(pattern.parse()?, limit, Arc::new(handler));
        Ok(Subscription { host: Some(Arc::downgrade(self.host)), number })
    }

    /// Hands all `args`, a tuple, to every subscription of `name` (EVENT-05). Arguments that cannot be written as JSON are
    /// reported in the log, and nobody gets the event.
    pub fn emit(&self, name: &str, args: impl EventArgs) {
        match Event::new(name, args) {
            Ok(event) => self.host.emit(event),
            Err(error) => self.report(name, &error),
        }
    }

    fn report(&self, name: &str, error: &Error) {
        Logger::new(&**self.host).with("event", name).error(format!("the event was not emitted: {error}"));
    }
}

impl fmt::Debug for EventsApi<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventsApi({})", self.host.extension())
    }
}

/// A subscription; it ends when this is dropped.
#[must_use = "the subscription ends when this is dropped; keep it, or call `detach`"]
pub struct Subscription {
    /// Weak, so that an extension that keeps its subscriptions does not keep itself alive.
    host: Option<Weak<dyn ExtensionHost>>,
    number: u64,
}

impl Subscription {
    /// Ends the subscription: nothing that is emitted from now on is delivered (EVENT-01).
    pub fn cancel(self) {}

    /// Lets the subscription live as long as the extension.
    pub fn detach(mut self) {
        self.host = None;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(host) = self.host.as_ref().and_then(Weak::upgrade) {
            host.unsubscribe(self.number);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subscription({})", self.number)
    }
}
