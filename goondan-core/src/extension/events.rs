//! Events: subscriptions and emissions on the event bus of an instance.

use std::fmt;
use std::sync::{Arc, Weak};

use super::ExtensionHost;
use crate::error::{Error, Result};
use crate::event::{Deliveries, Event, EventArgs, EventHandler};
use crate::log::Logger;

/// The event bus of one conversation. Returned by [`ExtensionApi::events`](crate::ExtensionApi::events).
///
/// Extensions exchange events on it, and the runtime reports there what happens: turns, steps, tool calls. `#[on]`
/// subscribes a function for the life of the extension; this handle emits, and subscribes at run time.
///
/// ```
/// use goondan::prelude::*;
///
/// # struct Cards;
/// # #[goondan::extension(name = "cards")]
/// # impl Cards {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// /// Reports every finished turn to other extensions.
/// #[on("turn.completed")]
/// async fn report(&self, event: &Event, api: &ExtensionApi) -> Result<()> {
///     api.events().emit("cards.turn", (event.args()[0].clone(),));
///     Ok(())
/// }
/// # }
/// ```
// EVENT-02, EVENT-06, EVENT-07
pub struct EventsApi<'a> {
    host: &'a Arc<dyn ExtensionHost>,
}

impl<'a> EventsApi<'a> {
    pub(super) fn new(host: &'a Arc<dyn ExtensionHost>) -> Self {
        Self { host }
    }

    /// Calls `handler` for every event that matches `pattern`, a name or a glob such as `workspace.*`.
    ///
    /// Handlers run beside the turn: neither the next step nor a tool call waits for them, nor does another handler.
    /// The commit at the end of the turn does, for at most 5 seconds, so that state which they set is stored with the
    /// turn.
    ///
    /// The subscription ends when the returned [`Subscription`] is cancelled or dropped; [`Subscription::detach`]
    /// extends it to the life of the extension.
    ///
    /// # Errors
    /// `E_EVENT_NAME` when `pattern` is not a legal name or glob.
    // EVENT-01, EVENT-03
    pub fn on(&self, pattern: &str, handler: impl EventHandler) -> Result<Subscription> {
        self.subscribe(pattern, Deliveries::All, handler)
    }

    /// Calls `handler` once, for the next event that matches `pattern`.
    ///
    /// # Errors
    /// `E_EVENT_NAME` when `pattern` is not a legal name or glob.
    // LEGACY-EVENTS-02
    pub fn once(&self, pattern: &str, handler: impl EventHandler) -> Result<Subscription> {
        self.subscribe(pattern, Deliveries::One, handler)
    }

    fn subscribe(&self, pattern: &str, limit: Deliveries, handler: impl EventHandler) -> Result<Subscription> {
        let number = self.host.subscribe(pattern.parse()?, limit, Arc::new(handler));
        Ok(Subscription { host: Some(Arc::downgrade(self.host)), number })
    }

    /// Sends an event with the arguments `args`, a tuple, to every subscription that matches `name`. If an argument
    /// cannot be written as JSON, or the name is illegal, the event is not sent, and an error is logged.
    ///
    /// Handlers may emit too. After 64 events that led to one another, the next one is not sent, and `E_EVENT_LOOP` is
    /// logged: a handler that emits the event that it handles would not end.
    // EVENT-05
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

/// A subscription to events. Dropping it ends the subscription; [`Subscription::detach`] keeps it.
#[must_use = "the subscription ends when this is dropped; keep it, or call `detach`"]
pub struct Subscription {
    /// Weak, so that an extension that stores its subscriptions does not keep itself alive. `None` once detached.
    host: Option<Weak<dyn ExtensionHost>>,
    number: u64,
}

impl Subscription {
    /// Ends the subscription: events that are emitted later are not delivered.
    // EVENT-01
    pub fn cancel(self) {}

    /// Keeps the subscription for the life of the extension.
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
