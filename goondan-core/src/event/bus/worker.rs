//! Owns the task that empties the queue of one subscription: one event at a time, each behind a border that faults do not
//! cross (EVENT-03).

use tokio::task::coop::consume_budget;

use super::Bus;
use super::table::{Next, Subscriber};
use crate::event::Event;
use crate::panic::catch_panics;

/// Empties the queue of one subscription, then ends.
pub(super) struct Worker {
    bus: Bus,
    number: u64,
    rests: bool,
}

impl Worker {
    pub(super) fn new(bus: Bus, number: u64) -> Self {
        Self { bus, number, rests: false }
    }

    pub(super) async fn run(mut self) {
        loop {
            let next = self.bus.shared.change(|table| table.next(self.number));
            match next {
                Some(Next::Handle(subscriber, event)) => handle(&subscriber, &event).await,
                Some(Next::Rest(subscriber, lost)) => {
                    self.rests = true;
                    self.bus.shared.notify_if_quiet();
                    return subscriber.report_lost(lost);
                }
                None => return,
            }
            // Handlers that never wait, and emit what they get, must not keep the thread for themselves.
            consume_budget().await;
        }
    }
}

impl Drop for Worker {
    /// The task was dropped before its queue was empty: the runtime shuts down.
    fn drop(&mut self) {
        if self.rests {
            return;
        }
        if let Some((subscriber, events)) = self.bus.shared.change(|table| table.abandon(self.number)) {
            self.bus.shared.notify_if_quiet();
            let (owner, pattern) = (subscriber.owner(), &subscriber.pattern);
            tracing::error!(%owner, %pattern, events, "a handler of events was stopped before it was done");
        }
    }
}

async fn handle(subscriber: &Subscriber, event: &Event) {
    // The whole life of the future is within the border: a handler can panic before it gives one, and while it is dropped.
    let outcome = catch_panics(async { subscriber.handler.handle(event).await }).await;
    if let Err(error) = outcome.and_then(|outcome| outcome) {
        let (owner, pattern, event) = (subscriber.owner(), &subscriber.pattern, event.name());
        tracing::error!(%owner, %pattern, event, "a handler of events failed: {}", error.report());
    }
}
