//! Owns the subscriptions of a bus and their queues: what is delivered to whom, and in which order. It runs nothing.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::super::{Event, EventHandler, EventPattern};
use crate::event::Deliveries;
use crate::name::ExtensionName;

/// How many events wait for one handler before it loses the next ones.
pub(super) const QUEUE: usize = 256;

/// An extension that owns subscriptions. The number tells the old and the new one apart when an extension is replaced by
/// one with the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(super) extension: ExtensionName,
    pub(super) number: u64,
}

/// Who listens, to what.
pub(super) struct Subscriber {
    pub(super) owner: Option<Owner>,
    pub(super) pattern: EventPattern,
    pub(super) limit: Deliveries,
    pub(super) handler: Arc<dyn EventHandler>,
}

/// Subscriptions that have ended, each with the number of events that it lost and that were not reported. Whoever gets
/// them drops them, and with them perhaps their handlers, outside of the lock.
pub(super) type Removed = Vec<(Arc<Subscriber>, u64)>;

/// All subscriptions of a bus, in the order in which they were made.
#[derive(Default)]
pub(super) struct Table {
    subscriptions: BTreeMap<u64, Subscription>,
    last: u64,
    owners: u64,
    closed: bool,
}

struct Subscription {
    subscriber: Arc<Subscriber>,
    queue: VecDeque<Event>,
    /// Whether a worker sees to the queue.
    worker: bool,
    /// Whether the worker is within the handler.
    handling: bool,
    /// Whether no more events are taken. It leaves the table when its worker rests.
    ended: bool,
    /// How many events found the queue full since that was last reported.
    lost: u64,
}

/// What a worker does next.
pub(super) enum Next {
    Handle(Arc<Subscriber>, Event),
    /// There is no more to do; so many events were lost meanwhile.
    Rest(Arc<Subscriber>, u64),
}

impl Table {
    /// Returns a number for an owner of subscriptions.
    pub(super) fn next_owner(&mut self) -> u64 {
        self.owners += 1;
        self.owners
    }

    /// Takes a subscription in, and gives its number; gives it back when the bus is closed.
    pub(super) fn add(&mut self, subscriber: Arc<Subscriber>) -> (u64, Option<Arc<Subscriber>>) {
        self.last += 1;
        if self.closed {
            return (self.last, Some(subscriber));
        }
        let queue = VecDeque::new();
        let new = Subscription { subscriber, queue, worker: false, handling: false, ended: false, lost: 0 };
        self.subscriptions.insert(self.last, new);
        (self.last, None)
    }

    /// Ends the subscriptions that `which` picks. Those whose handler runs stay until it is done.
    pub(super) fn remove(&mut self, which: impl Fn(u64, &Subscriber) -> bool) -> Removed {
        let mut removed = Vec::new();
        self.subscriptions.retain(|number, subscription| {
            let picked = which(*number, &subscription.subscriber);
            if picked {
                removed.push((Arc::clone(&subscription.subscriber), subscription.end()));
            }
            !picked || subscription.worker
        });
        removed
    }

    /// Ends all subscriptions, and takes no more.
    pub(super) fn close(&mut self) -> Removed {
        self.closed = true;
        self.remove(|_, _| true)
    }

    /// How many subscriptions take events.
    pub(super) fn listening(&self) -> usize {
        self.subscriptions.values().filter(|subscription| !subscription.ended).count()
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        self.subscriptions.values().any(|subscription| subscription.takes(name))
    }

    /// Puts `event` into the queues; gives the subscriptions that need a worker.
    pub(super) fn push(&mut self, event: &Event) -> Vec<u64> {
        let mut to_start = Vec::new();
        for (number, subscription) in &mut self.subscriptions {
            if !subscription.takes(event.name()) {
                continue;
            }
            if subscription.queue.len() == QUEUE {
                subscription.lost += 1;
                continue;
            }
            subscription.queue.push_back(event.clone());
            // LEGACY-EVENTS-02: under the lock, so that of two emissions at once only one is taken.
            subscription.ended = subscription.subscriber.limit == Deliveries::One;
            if !std::mem::replace(&mut subscription.worker, true) {
                to_start.push(*number);
            }
        }
        to_start
    }

    /// What the worker of the subscription does next; whatever it did is over.
    pub(super) fn next(&mut self, number: u64) -> Option<Next> {
        let subscription = self.subscriptions.get_mut(&number)?;
        let subscriber = Arc::clone(&subscription.subscriber);
        let event = subscription.queue.pop_front();
        subscription.handling = event.is_some();
        match event {
            Some(event) => Some(Next::Handle(subscriber, event)),
            None => Some(Next::Rest(subscriber, self.rest(number))),
        }
    }

    /// Takes note that the worker of the subscription was stopped; gives how many events it leaves behind.
    pub(super) fn abandon(&mut self, number: u64) -> Option<(Arc<Subscriber>, u64)> {
        let subscription = self.subscriptions.get_mut(&number)?;
        let left = subscription.undone() as u64;
        let subscriber = Arc::clone(&subscription.subscriber);
        subscription.queue.clear();
        subscription.handling = false;
        Some((subscriber, left + self.rest(number)))
    }

    /// Takes note that the subscription has no worker any more; gives how many events it lost.
    fn rest(&mut self, number: u64) -> u64 {
        let Some(subscription) = self.subscriptions.get_mut(&number) else { return 0 };
        subscription.worker = false;
        let lost = std::mem::take(&mut subscription.lost);
        if subscription.ended {
            self.subscriptions.remove(&number);
        }
        lost
    }

    /// Whether nothing is queued and no handler runs.
    pub(super) fn is_quiet(&self) -> bool {
        self.subscriptions.values().all(|subscription| subscription.undone() == 0)
    }

    /// The subscriptions that have something to do: how much it is, and how many events they lost.
    pub(super) fn undone(&mut self) -> Vec<(Arc<Subscriber>, usize, u64)> {
        let late = self.subscriptions.values_mut().filter(|subscription| subscription.undone() > 0);
        late.map(|subscription| {
            (Arc::clone(&subscription.subscriber), subscription.undone(), std::mem::take(&mut subscription.lost))
        })
        .collect()
    }
}

impl Subscription {
    fn takes(&self, name: &str) -> bool {
        !self.ended && self.subscriber.pattern.matches(name)
    }

    fn undone(&self) -> usize {
        self.queue.len() + usize::from(self.handling)
    }

    fn end(&mut self) -> u64 {
        self.ended = true;
        self.queue.clear();
        std::mem::take(&mut self.lost)
    }
}

impl Subscriber {
    /// Who it is in the log.
    pub(super) fn owner(&self) -> impl fmt::Display + '_ {
        self.owner.as_ref().map_or("the program", |owner| owner.extension.as_str())
    }

    /// Reports events that found the queue full.
    pub(super) fn report_lost(&self, lost: u64) {
        if lost > 0 {
            let (owner, pattern) = (self.owner(), &self.pattern);
            tracing::warn!(%owner, %pattern, lost, "a handler of events is too slow; it lost those that its queue could not hold");
        }
    }
}
