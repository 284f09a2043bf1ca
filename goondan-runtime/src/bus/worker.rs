//! The task that drains the queue of one subscription. It handles one event at a time and logs errors and panics of the
//! handler.
// EVENT-03

use std::pin::pin;

use goondan_core::Error;
use goondan_core::host::panic::catch_panics;
use tokio::task::coop::consume_budget;

use super::Bus;
use super::table::{Queued, Subscriber, Work};

/// Drains the queue of one subscription. Spawned by [`Bus::emit`] when the queue has no worker; ends when it is empty.
pub(super) struct Worker {
    bus: Bus,
    number: u64,
    /// Set when the queue was empty, so that the drop has no events to report.
    finished: bool,
}

impl Worker {
    pub(super) fn new(bus: Bus, number: u64) -> Self {
        Self { bus, number, finished: false }
    }

    pub(super) async fn run(mut self) {
        loop {
            let work = self.bus.shared.update(|table| table.next_work(self.number));
            match work {
                Some(Work::Handle(subscriber, queued)) => handle(&subscriber, queued).await,
                Some(Work::Finish(subscriber, lost)) => {
                    self.finished = true;
                    self.bus.shared.notify_if_quiet();
                    return subscriber.report_lost(lost);
                }
                None => return,
            }
            // Without this, a handler that never yields and emits the events that it receives would keep the thread.
            consume_budget().await;
        }
    }
}

impl Drop for Worker {
    /// Reports the events that are left when the task is dropped early, because the runtime shuts down.
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Some((subscriber, events)) = self.bus.shared.update(|table| table.abandon(self.number)) {
            self.bus.shared.notify_if_quiet();
            let (extension, pattern) = (subscriber.extension(), &subscriber.pattern);
            tracing::error!(extension, %pattern, events, "a handler of events was stopped before it was done");
        }
    }
}

async fn handle(subscriber: &Subscriber, Queued { event, chain }: Queued) {
    let owner = subscriber.owner.as_ref().map(|owner| &owner.extension);
    let chain = chain.with(&event, owner);
    let handling = pin!(catch_panics(subscriber.owner_name(), subscriber.handle(&event)));
    let outcome = chain.within(handling).await;
    if let Err(error) = outcome.unwrap_or_else(|text| Err(Error::panicked(&text))) {
        let (extension, pattern, event) = (subscriber.extension(), &subscriber.pattern, event.name());
        let error = match owner {
            Some(owner) => error.at(owner, format!("handler of `{pattern}`")),
            None => error,
        };
        tracing::error!(extension, %pattern, event, "a handler of events failed: {}", error.report());
    }
}
