//! The event bus of one instance: subscriptions, and delivery to their handlers.
//!
//! [`Bus::emit`] locks the table of subscriptions, pushes the event to the queue of each subscription that matches
//! it, and returns. A queue of an extension is drained by its own task, which exists only while the queue has events;
//! the program reads its queues itself. So a slow handler delays only the later events of its own queue, and an
//! instance without subscriptions pays one atomic load per event.
// EVENT-01..08

mod chain;
mod program;
mod table;
#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;
mod worker;

pub(crate) use chain::Chain;
pub use program::EventStream;
pub(crate) use program::{Listeners, QUEUE};
pub(crate) use table::Owner;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use goondan_core::{Deliveries, Error, ErrorCode, Event, EventHandler, EventPattern, ExtensionName, TurnInfo};
use goondan_lock::Lock;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use program::Forward;
use table::{DRAIN_LIMIT, Removed, Subscriber, Table};
use worker::Worker;

/// The event bus of one instance. Clones refer to the same bus. It lives until [`close`](Bus::close): handlers own
/// handles of extensions, which own the bus, and closing breaks this reference cycle.
#[derive(Clone)]
pub(crate) struct Bus {
    shared: Arc<Shared>,
}

struct Shared {
    /// Where handlers run, so that threads outside of the runtime can emit.
    runtime: Handle,
    /// The number of subscriptions that accept events, readable without the lock.
    listening: AtomicUsize,
    /// No foreign code runs under this lock, not even the drop of a handler: it could use the bus and deadlock.
    table: Lock<Table>,
    /// Notified whenever all queues are empty and no handler runs.
    quiet: Notify,
}

impl Bus {
    /// Returns a bus whose handlers run on `runtime`.
    pub(crate) fn new(runtime: Handle) -> Self {
        let (listening, table, quiet) = (AtomicUsize::new(0), Lock::default(), Notify::new());
        Self { shared: Arc::new(Shared { runtime, listening, table, quiet }) }
    }

    /// Returns a new owner of subscriptions.
    pub(crate) fn new_owner(&self, extension: ExtensionName) -> Owner {
        Owner { extension, number: self.shared.table.lock().next_owner() }
    }

    /// Starts a subscription and returns its number. The owner is the extension that `handler` belongs to, or `None`
    /// for the embedding program.
    pub(crate) fn subscribe(
        &self,
        owner: Option<Owner>,
        pattern: EventPattern,
        deliveries: Deliveries,
        handler: Arc<dyn EventHandler>,
    ) -> u64 {
        let subscriber = Arc::new(Subscriber::new(owner, pattern, deliveries, handler));
        // A closed bus returns the subscriber, which must be dropped outside of the lock.
        let (number, _refused) = self.shared.update(|table| table.add(subscriber));
        number
    }

    /// Starts a listener of the program and returns its number.
    fn listen(&self, pattern: EventPattern, forward: Arc<Forward>) -> u64 {
        self.shared.update(|table| table.listen(pattern, forward))
    }

    /// Ends a listener of the program.
    fn unlisten(&self, number: u64) {
        self.remove(|table| table.unlisten(number));
    }

    /// Ends a subscription: neither the events in its queue nor later ones are delivered. A running handler is not
    /// interrupted.
    // EVENT-01
    pub(crate) fn unsubscribe(&self, number: u64) {
        self.remove(|table| table.remove(|candidate, _| candidate == number));
    }

    /// Ends all subscriptions of an extension that is removed.
    pub(crate) fn unsubscribe_owner(&self, owner: &Owner) {
        self.remove(|table| table.remove(|_, subscriber| subscriber.owner.as_ref() == Some(owner)));
    }

    /// Ends all subscriptions, and refuses new ones.
    pub(crate) fn close(&self) {
        self.remove(|table| table.close());
    }

    fn remove(&self, remove: impl FnOnce(&mut Table) -> Removed) {
        let removed = self.shared.update(remove);
        for (subscriber, lost) in &removed.subscribers {
            subscriber.report_lost(*lost);
        }
    }

    /// Queues `event` for all subscriptions that match it. Never waits, and can be called from any thread. A
    /// subscription whose queue is full loses the event; the loss is reported when the queue is empty again, or the
    /// subscription ends. An event that a handler emits after a long chain of events is refused.
    pub(crate) fn emit(&self, event: Event) {
        if self.has_subscriptions() {
            self.emit_after(Chain::current(), event);
        }
    }

    /// Queues `event` as [`emit`](Self::emit) does: the events of `chain` have led to it.
    pub(crate) fn emit_after(&self, chain: Chain, event: Event) {
        if chain.is_loop() {
            return self.report_loop(chain.extension(), event.shared_name(), || chain.error(&event));
        }
        // Spawned outside of the lock: a runtime that shuts down drops the task immediately, and the drop takes the
        // lock.
        let pushed = self.shared.update(|table| table.push(&event, chain));
        for number in pushed.to_start {
            self.shared.runtime.spawn(Worker::new(self.clone(), number).run());
        }
        for listener in pushed.listeners {
            listener.receive(&event);
        }
    }

    /// Emits an event of an extension, as [`emit`](Self::emit) does. While the bus is drained, an extension may emit
    /// only so many: a loop of handlers that emit in tasks of their own would not end.
    pub(crate) fn emit_from(&self, extension: &ExtensionName, event: Event) {
        if self.has_subscriptions() && self.shared.table.lock().admit(extension, &event) {
            self.emit(event);
        }
    }

    /// Records that `turn` runs, until the guard is dropped: it is the cause of the events that are emitted meanwhile.
    pub(crate) fn enter_turn(&self, turn: &Arc<TurnInfo>) -> InTurn<'_> {
        self.shared.table.lock().turn = Some(Arc::clone(turn));
        InTurn(self)
    }

    /// Returns where handlers run, unless the bus is closed.
    pub(crate) fn runtime(&self) -> Option<&Handle> {
        (!self.shared.table.lock().is_closed()).then_some(&self.shared.runtime)
    }

    /// Returns the turn that is the cause of the events that are emitted now: the one whose event is being handled,
    /// or the one that runs.
    pub(crate) fn cause(&self) -> Option<Arc<TurnInfo>> {
        Chain::current().caused_by(self.shared.table.lock().turn.as_ref()).into_cause()
    }

    /// Returns whether any subscription accepts events.
    pub(crate) fn has_subscriptions(&self) -> bool {
        self.shared.listening.load(Ordering::Acquire) > 0
    }

    /// Returns whether any subscription matches an event called `name`, so that the event is worth creating.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.has_subscriptions() && self.shared.table.lock().wants(name)
    }

    /// Returns whether all queues are empty and no handler runs.
    pub(crate) fn is_quiet(&self) -> bool {
        self.shared.table.lock().is_quiet()
    }

    /// Waits until all emitted events are handled, those that handlers emit included, but not longer than `timeout`.
    /// Returns the number of events that are left, which are handled later. The future is ready at its first poll
    /// when the bus is quiet.
    // D-18
    pub(crate) async fn drain(&self, timeout: Duration) -> usize {
        if self.is_quiet() {
            return 0;
        }
        let _draining = Draining::begin(self);
        if self.wait_until_quiet(timeout).await { 0 } else { self.report_pending(timeout) }
    }

    /// Waits as [`drain`](Self::drain) does, without a limit on the events of extensions. Returns whether the bus is
    /// quiet.
    pub(crate) async fn wait_until_quiet(&self, timeout: Duration) -> bool {
        let quiet = async {
            loop {
                // Created before the check, so that a notification between the check and the await is not missed.
                let notified = self.shared.quiet.notified();
                if self.shared.table.lock().is_quiet() {
                    return;
                }
                notified.await;
            }
        };
        tokio::time::timeout(timeout, quiet).await.is_ok()
    }

    /// Logs that an event of `extension` is refused, once for each extension and event: a loop begins anew in each
    /// turn.
    fn report_loop(&self, extension: Option<&ExtensionName>, event: &Arc<str>, error: impl FnOnce() -> Error) {
        if self.shared.table.lock().report_loop(extension.cloned(), Arc::clone(event)) {
            let (extension, error) = (extension.map(ExtensionName::as_str), error());
            tracing::error!(extension, %event, code = %error.code(), "{}", error.report());
        }
    }

    fn report_pending(&self, timeout: Duration) -> usize {
        let pending = self.shared.table.lock().pending();
        for (subscriber, events, lost) in &pending {
            let (extension, pattern) = (subscriber.extension(), &subscriber.pattern);
            tracing::warn!(extension, %pattern, events, deadline = ?timeout, "a handler of events is late; it is not waited for");
            subscriber.report_lost(*lost);
        }
        pending.iter().map(|(_, events, _)| events).sum()
    }
}

/// While it lives, a turn runs.
pub(crate) struct InTurn<'a>(&'a Bus);

impl Drop for InTurn<'_> {
    fn drop(&mut self) {
        self.0.shared.table.lock().turn = None;
    }
}

/// While it lives, a drain runs.
struct Draining<'a>(&'a Bus);

impl<'a> Draining<'a> {
    fn begin(bus: &'a Bus) -> Self {
        bus.shared.table.lock().begin_drain();
        Self(bus)
    }
}

impl Drop for Draining<'_> {
    /// Logs which extensions emitted too many events.
    fn drop(&mut self) {
        let refused = self.0.shared.table.lock().end_drain();
        for (extension, event) in refused {
            self.0.report_loop(Some(&extension), &event, || {
                let message = format!(
                    "`{event}` was not emitted: the extension had emitted {DRAIN_LIMIT} events while the end of a turn \
                     waited for event handlers"
                );
                Error::new(ErrorCode::EVENT_LOOP, message)
                    .suggest("look for a handler that emits, in a task of its own, the event that it handles")
                    .at(&extension, "`emit`")
            });
        }
    }
}

impl Shared {
    fn update<T>(&self, update: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.table.lock();
        let updated = update(&mut table);
        self.listening.store(table.listening(), Ordering::Release);
        updated
    }

    fn notify_if_quiet(&self) {
        if self.table.lock().is_quiet() {
            self.quiet.notify_waiters();
        }
    }
}
