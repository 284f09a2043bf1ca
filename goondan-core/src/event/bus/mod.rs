//! Owns the bus of one instance: who listens to what, and how an emission reaches them (EVENT-01..08).
//!
//! An emission puts the event into the queue of each subscription that it fits, under one lock, and is over. A task of its
//! own empties each queue; it is there only while the queue holds something. So nobody waits for a handler but the events
//! behind it in the same queue, and an instance to which nobody listens pays one atomic load.

mod table;
#[cfg(test)]
#[cfg(feature = "testing")]
mod tests;
mod worker;

pub(crate) use table::Owner;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::{Event, EventHandler, EventPattern};
use crate::event::Deliveries;
use crate::name::ExtensionName;
use table::{Removed, Subscriber, Table};
use worker::Worker;

/// The bus of one instance. Clones are the same bus. It stays until [`close`](Bus::close): handlers hold handles of
/// extensions, and these hold the bus.
#[derive(Clone)]
pub(crate) struct Bus {
    shared: Arc<Shared>,
}

struct Shared {
    /// Where handlers run, so that threads of other programs can emit.
    runtime: Handle,
    /// How many subscriptions take events, to be read without the lock.
    listening: AtomicUsize,
    /// No code of others runs under this lock, not even the drop of a handler: it could come back here.
    table: Mutex<Table>,
    /// Notified whenever nothing is queued and no handler runs.
    quiet: Notify,
}

impl Bus {
    /// A bus whose handlers run on `runtime`.
    pub(crate) fn new(runtime: Handle) -> Self {
        let (listening, table, quiet) = (AtomicUsize::new(0), Mutex::default(), Notify::new());
        Self { shared: Arc::new(Shared { runtime, listening, table, quiet }) }
    }

    /// Returns a new owner of subscriptions.
    pub(crate) fn new_owner(&self, extension: ExtensionName) -> Owner {
        Owner { extension, number: self.shared.table().next_owner() }
    }

    /// Starts a subscription, and gives its number. The owner is the extension whose code `handler` is, or none for the
    /// embedding program.
    pub(crate) fn subscribe(
        &self,
        owner: Option<Owner>,
        pattern: EventPattern,
        limit: Deliveries,
        handler: Arc<dyn EventHandler>,
    ) -> u64 {
        let subscriber = Arc::new(Subscriber { owner, pattern, limit, handler });
        let (number, _refused) = self.shared.change(|table| table.add(subscriber));
        number
    }

    /// Ends a subscription: what is emitted from now on is not delivered, nor what waits in its queue (EVENT-01). A
    /// handler that runs is not interrupted.
    pub(crate) fn unsubscribe(&self, number: u64) {
        self.remove(|table| table.remove(|candidate, _| candidate == number));
    }

    /// Ends all subscriptions of an extension that goes away.
    pub(crate) fn unsubscribe_owner(&self, owner: &Owner) {
        self.remove(|table| table.remove(|_, subscriber| subscriber.owner.as_ref() == Some(owner)));
    }

    /// Ends all subscriptions, and accepts no more.
    pub(crate) fn close(&self) {
        self.remove(|table| table.close());
    }

    fn remove(&self, remove: impl FnOnce(&mut Table) -> Removed) {
        for (subscriber, lost) in self.shared.change(remove) {
            subscriber.report_lost(lost);
        }
    }

    /// Hands `event` to all subscriptions that it fits. Never waits, and can be called from everywhere. A subscription
    /// whose queue is full loses the event; that is reported when it has caught up, or ends.
    pub(crate) fn emit(&self, event: Event) {
        if !self.has_subscriptions() {
            return;
        }
        // Outside of the lock: a runtime that shuts down drops the task at once, and the task takes the lock.
        for number in self.shared.change(|table| table.push(&event)) {
            self.shared.runtime.spawn(Worker::new(self.clone(), number).run());
        }
    }

    /// Whether anybody listens, to whatever.
    pub(crate) fn has_subscriptions(&self) -> bool {
        self.shared.listening.load(Ordering::Acquire) > 0
    }

    /// Whether an event called `name` would be delivered to somebody, and is worth making.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.has_subscriptions() && self.shared.table().wants(name)
    }

    /// Whether nothing is queued and no handler runs.
    pub(crate) fn is_quiet(&self) -> bool {
        self.shared.table().is_quiet()
    }

    /// Waits until everything that was emitted is handled, also what handlers emit, but not longer than `deadline` (D-18).
    /// Gives the number of events that are left; they are handled later. With nothing to wait for this is ready at once.
    pub(crate) async fn drain(&self, deadline: Duration) -> usize {
        if self.is_quiet() {
            return 0;
        }
        let quiet = async {
            loop {
                // Made before the look at the table, so that no notification falls in between.
                let notified = self.shared.quiet.notified();
                if self.shared.table().is_quiet() {
                    return;
                }
                notified.await;
            }
        };
        match tokio::time::timeout(deadline, quiet).await {
            Ok(()) => 0,
            Err(_) => self.report_undone(deadline),
        }
    }

    fn report_undone(&self, deadline: Duration) -> usize {
        let undone = self.shared.table().undone();
        for (subscriber, events, lost) in &undone {
            let (owner, pattern) = (subscriber.owner(), &subscriber.pattern);
            tracing::warn!(%owner, %pattern, events, ?deadline, "a handler of events is late; it is not waited for");
            subscriber.report_lost(*lost);
        }
        undone.iter().map(|(_, events, _)| events).sum()
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.table();
        let changed = change(&mut table);
        self.listening.store(table.listening(), Ordering::Release);
        changed
    }

    fn notify_if_quiet(&self) {
        if self.table().is_quiet() {
            self.quiet.notify_waiters();
        }
    }
}
