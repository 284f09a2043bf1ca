//! The subscriptions of a bus and their queues: which events are delivered to which handler, and in which order. It
//! decides only; the workers run the handlers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use goondan_core::host::panic::drop_guarded;
use goondan_core::{Deliveries, Event, EventHandler, EventPattern, ExtensionName, Result, TurnInfo};

use super::chain::Chain;
use super::program::Forward;

/// The capacity of a queue; a handler loses the events that exceed it.
pub(super) const QUEUE: usize = 256;

/// The most events that an extension may emit while the bus is drained. More than that come from a loop of handlers
/// that emit in tasks of their own, so that their events have no chain.
pub(super) const DRAIN_LIMIT: u32 = 1_000;

/// An extension that owns subscriptions. When an extension is replaced by one with the same name, the number
/// distinguishes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(super) extension: ExtensionName,
    pub(super) number: u64,
}

impl Owner {
    /// Returns the extension's name.
    pub(crate) fn extension(&self) -> &ExtensionName {
        &self.extension
    }
}

/// The handler of a subscription, its owner, and the events that it handles.
pub(super) struct Subscriber {
    pub(super) owner: Option<Owner>,
    pub(super) pattern: EventPattern,
    pub(super) deliveries: Deliveries,
    /// `None` once it is being dropped.
    handler: Option<Arc<dyn EventHandler>>,
}

/// Subscriptions that have ended, each with the number of lost events that is not reported yet. The receiver drops them
/// outside of the lock, because this may drop their handlers.
pub(super) struct Removed {
    pub(super) subscribers: Vec<(Arc<Subscriber>, u64)>,
    _listeners: Vec<Listener>,
}

/// Where an event goes.
pub(super) struct Pushed {
    /// The subscriptions that need a worker.
    pub(super) to_start: Vec<u64>,
    /// The listeners of the program that receive it at once, outside of the lock.
    pub(super) listeners: Vec<Arc<Forward>>,
}

/// A listener of the program. It has no worker: its own queue receives an event when that is emitted, so that the
/// program reads events in their order among the updates of a turn.
struct Listener {
    number: u64,
    pattern: EventPattern,
    forward: Arc<Forward>,
}

/// All subscriptions of a bus, in the order in which they were started.
#[derive(Default)]
pub(super) struct Table {
    entries: BTreeMap<u64, Entry>,
    listeners: Vec<Listener>,
    last: u64,
    owners: u64,
    closed: bool,
    /// The number of drains that run.
    drains: usize,
    /// The events that each extension has emitted since then.
    drained: BTreeMap<ExtensionName, Drained>,
    /// The loops that were reported: the extension whose handler emitted the event that was refused, and its name.
    loops: BTreeSet<(Option<ExtensionName>, Arc<str>)>,
    /// The turn that runs.
    pub(super) turn: Option<Arc<TurnInfo>>,
}

/// A subscription: its subscriber, and the events that wait for it. Removed when it has ended and has no worker.
struct Entry {
    subscriber: Arc<Subscriber>,
    queue: VecDeque<Queued>,
    /// Whether a worker drains the queue.
    has_worker: bool,
    /// Whether the worker runs the handler.
    handling: bool,
    /// Whether no more events are accepted. The entry is removed when its worker finishes.
    ended: bool,
    /// The number of events that were lost because the queue was full, since the last report.
    lost: u64,
}

/// The events of an extension while the bus is drained.
#[derive(Default)]
struct Drained {
    events: u32,
    /// The name of the first event that exceeded the limit.
    refused: Option<Arc<str>>,
}

/// An event in a queue.
pub(super) struct Queued {
    pub(super) event: Event,
    /// The events that led to it.
    pub(super) chain: Chain,
}

/// The next action of a worker.
pub(super) enum Work {
    /// Runs the handler.
    Handle(Arc<Subscriber>, Queued),
    /// Ends, because the queue is empty, and reports this number of lost events.
    Finish(Arc<Subscriber>, u64),
}

impl Table {
    /// Returns a number for an owner of subscriptions.
    pub(super) fn next_owner(&mut self) -> u64 {
        self.owners += 1;
        self.owners
    }

    /// Adds a subscription and returns its number. When the bus is closed, it returns the subscriber too.
    pub(super) fn add(&mut self, subscriber: Arc<Subscriber>) -> (u64, Option<Arc<Subscriber>>) {
        self.last += 1;
        if self.closed {
            return (self.last, Some(subscriber));
        }
        let queue = VecDeque::new();
        let entry = Entry { subscriber, queue, has_worker: false, handling: false, ended: false, lost: 0 };
        self.entries.insert(self.last, entry);
        (self.last, None)
    }

    /// Adds a listener of the program and returns its number.
    pub(super) fn listen(&mut self, pattern: EventPattern, forward: Arc<Forward>) -> u64 {
        self.last += 1;
        if !self.closed {
            self.listeners.push(Listener { number: self.last, pattern, forward });
        }
        self.last
    }

    /// Ends a listener of the program.
    pub(super) fn unlisten(&mut self, number: u64) -> Removed {
        let _listeners = self.listeners.extract_if(.., |listener| listener.number == number).collect();
        Removed { subscribers: Vec::new(), _listeners }
    }

    /// Ends the subscriptions for which `which` returns true. Those whose handler runs stay in the table until it is
    /// done.
    pub(super) fn remove(&mut self, which: impl Fn(u64, &Subscriber) -> bool) -> Removed {
        let mut subscribers = Vec::new();
        self.entries.retain(|number, entry| {
            let selected = which(*number, &entry.subscriber);
            if selected {
                subscribers.push((Arc::clone(&entry.subscriber), entry.end()));
            }
            !selected || entry.has_worker
        });
        Removed { subscribers, _listeners: Vec::new() }
    }

    /// Ends all subscriptions, and refuses new ones.
    pub(super) fn close(&mut self) -> Removed {
        self.closed = true;
        Removed { _listeners: std::mem::take(&mut self.listeners), ..self.remove(|_, _| true) }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns the number of subscriptions that accept events.
    pub(super) fn listening(&self) -> usize {
        self.listeners.len() + self.entries.values().filter(|entry| !entry.ended).count()
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        self.entries.values().any(|entry| entry.wants(name))
            || self.listeners.iter().any(|listener| listener.pattern.matches(name))
    }

    /// Pushes `event` to the queues that it matches, and returns the work that is left.
    pub(super) fn push(&mut self, event: &Event, chain: Chain) -> Pushed {
        let chain = chain.caused_by(self.turn.as_ref());
        let mut to_start = Vec::new();
        for (number, entry) in &mut self.entries {
            if !entry.wants(event.name()) {
                continue;
            }
            if entry.queue.len() == QUEUE {
                entry.lost += 1;
                continue;
            }
            entry.queue.push_back(Queued { event: event.clone(), chain: chain.clone() });
            // LEGACY-EVENTS-02: under the lock, so that only one of two concurrent emissions is accepted.
            entry.ended = entry.subscriber.deliveries == Deliveries::One;
            if !std::mem::replace(&mut entry.has_worker, true) {
                to_start.push(*number);
            }
        }
        let listeners = self.listeners.iter().filter(|listener| listener.pattern.matches(event.name()));
        Pushed { to_start, listeners: listeners.map(|listener| Arc::clone(&listener.forward)).collect() }
    }

    /// Returns the next action of the worker of a subscription, which has completed the previous one.
    pub(super) fn next_work(&mut self, number: u64) -> Option<Work> {
        let entry = self.entries.get_mut(&number)?;
        let subscriber = Arc::clone(&entry.subscriber);
        let queued = entry.queue.pop_front();
        entry.handling = queued.is_some();
        match queued {
            Some(queued) => Some(Work::Handle(subscriber, queued)),
            None => Some(Work::Finish(subscriber, self.release_worker(number))),
        }
    }

    /// Records that the worker of a subscription was dropped early. Returns the number of events that are not handled.
    pub(super) fn abandon(&mut self, number: u64) -> Option<(Arc<Subscriber>, u64)> {
        let entry = self.entries.get_mut(&number)?;
        let left = entry.pending() as u64;
        let subscriber = Arc::clone(&entry.subscriber);
        entry.queue.clear();
        entry.handling = false;
        Some((subscriber, left + self.release_worker(number)))
    }

    /// Records that a subscription has no worker any more. Returns the number of events that it lost.
    fn release_worker(&mut self, number: u64) -> u64 {
        let Some(entry) = self.entries.get_mut(&number) else { return 0 };
        entry.has_worker = false;
        let lost = std::mem::take(&mut entry.lost);
        if entry.ended {
            self.entries.remove(&number);
        }
        lost
    }

    /// Returns whether all queues are empty and no handler runs.
    pub(super) fn is_quiet(&self) -> bool {
        self.entries.values().all(|entry| entry.pending() == 0)
    }

    /// Returns the subscriptions with pending events: the number of these events, and the number of lost ones.
    pub(super) fn pending(&mut self) -> Vec<(Arc<Subscriber>, usize, u64)> {
        let late = self.entries.values_mut().filter(|entry| entry.pending() > 0);
        late.map(|entry| (Arc::clone(&entry.subscriber), entry.pending(), std::mem::take(&mut entry.lost))).collect()
    }

    /// Records that the bus is drained, until [`end_drain`](Self::end_drain).
    pub(super) fn begin_drain(&mut self) {
        self.drains += 1;
    }

    /// Records the end of a drain. Returns the extensions whose events were refused, each with the first of these.
    pub(super) fn end_drain(&mut self) -> Vec<(ExtensionName, Arc<str>)> {
        self.drains -= 1;
        if self.drains > 0 {
            return Vec::new();
        }
        let drained = std::mem::take(&mut self.drained).into_iter();
        drained.filter_map(|(extension, drained)| Some((extension, drained.refused?))).collect()
    }

    /// Returns whether `extension` may emit `event`: not after too many events while the bus is drained.
    pub(super) fn admit(&mut self, extension: &ExtensionName, event: &Event) -> bool {
        if self.drains == 0 {
            return true;
        }
        let drained = self.drained.entry(extension.clone()).or_default();
        if drained.events < DRAIN_LIMIT {
            drained.events += 1;
            return true;
        }
        drained.refused.get_or_insert_with(|| Arc::clone(event.shared_name()));
        false
    }

    /// Returns whether a loop was not reported yet, and records that it is.
    pub(super) fn report_loop(&mut self, extension: Option<ExtensionName>, event: Arc<str>) -> bool {
        self.loops.insert((extension, event))
    }
}

impl Entry {
    fn wants(&self, name: &str) -> bool {
        !self.ended && self.subscriber.pattern.matches(name)
    }

    /// Returns the number of events that are queued or being handled.
    fn pending(&self) -> usize {
        self.queue.len() + usize::from(self.handling)
    }

    /// Returns the number of lost events that is not reported yet.
    fn end(&mut self) -> u64 {
        self.ended = true;
        self.queue.clear();
        std::mem::take(&mut self.lost)
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let handler = self.handler.take();
        drop_guarded(self.owner_name(), || drop(handler));
    }
}

impl Subscriber {
    pub(super) fn new(
        owner: Option<Owner>,
        pattern: EventPattern,
        deliveries: Deliveries,
        handler: Arc<dyn EventHandler>,
    ) -> Self {
        Self { owner, pattern, deliveries, handler: Some(handler) }
    }

    /// Runs the handler.
    pub(super) async fn handle(&self, event: &Event) -> Result<()> {
        match &self.handler {
            Some(handler) => handler.handle(event).await,
            None => Ok(()),
        }
    }

    /// Returns the extension that owns it, for the log; `None` for the embedding program.
    pub(super) fn extension(&self) -> Option<&str> {
        self.owner.as_ref().map(|owner| owner.extension.as_str())
    }

    /// Returns the name of the owner, for the log of a panic.
    pub(super) fn owner_name(&self) -> &str {
        self.extension().unwrap_or("the program")
    }

    /// Logs the number of lost events, if any.
    pub(super) fn report_lost(&self, lost: u64) {
        if lost > 0 {
            let (extension, pattern) = (self.extension(), &self.pattern);
            tracing::warn!(extension, %pattern, lost, "a handler of events is too slow; it lost those that its queue could not hold");
        }
    }
}
