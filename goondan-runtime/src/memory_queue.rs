//! The queue in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::iter;
use std::num::NonZeroUsize;
use std::pin::pin;

use goondan_core::{BoxFuture, Error, ErrorCode, EventId, Result};
use goondan_lock::Lock;
use tokio::sync::{Notify, watch};

use crate::ports::queue::Queue;
use crate::ports::router::AgentCall;
use crate::ports::store::{EventDigest, InstanceId, TurnOutcome};

/// Keeps events in memory, for tests and for programs that need not keep the events they accept.
#[derive(Debug, Default)]
pub struct MemoryQueue {
    waiting: Lock<Waiting>,
    /// Notified when there may be something to take.
    changed: Notify,
}

/// The events in a queue. Each has a number, in the order in which they were put.
#[derive(Debug, Default)]
struct Waiting {
    entries: BTreeMap<u64, Entry>,
    by_event: HashMap<(InstanceId, EventId), u64>,
    /// The numbers of the events of each instance. Only the first one is taken.
    by_instance: HashMap<InstanceId, VecDeque<u64>>,
    /// Those that can be taken: the first one of each instance, unless it was.
    free: BTreeSet<u64>,
}

/// An event in a queue.
#[derive(Debug)]
struct Entry {
    call: AgentCall,
    digest: EventDigest,
    /// For those who wait for the outcome.
    outcome: watch::Sender<Option<TurnOutcome>>,
}

impl Waiting {
    fn add(&mut self, call: AgentCall) {
        let number = self.entries.last_key_value().map_or(0, |(last, _)| last + 1);
        let instance = call.instance_id();
        self.by_event.insert((instance.clone(), call.event.id.clone()), number);
        let of_instance = self.by_instance.entry(instance).or_default();
        of_instance.push_back(number);
        if of_instance.len() == 1 {
            self.free.insert(number);
        }
        let digest = EventDigest::of(&call.event);
        self.entries.insert(number, Entry { call, digest, outcome: watch::Sender::new(None) });
    }

    fn remove(&mut self, instance: InstanceId, event: EventId) -> Option<Entry> {
        let key = (instance, event);
        let number = self.by_event.remove(&key)?;
        if let Some(of_instance) = self.by_instance.get_mut(&key.0) {
            if of_instance.front() == Some(&number) {
                of_instance.pop_front();
                self.free.extend(of_instance.front());
            } else {
                of_instance.retain(|of| *of != number);
            }
            if of_instance.is_empty() {
                self.by_instance.remove(&key.0);
            }
        }
        self.free.remove(&number);
        self.entries.remove(&number)
    }

    fn take(&mut self, room: NonZeroUsize) -> Vec<AgentCall> {
        let numbers: Vec<_> = iter::from_fn(|| self.free.pop_first()).take(room.get()).collect();
        numbers.iter().filter_map(|number| self.entries.get(number)).map(|entry| entry.call.clone()).collect()
    }

    fn give_back(&mut self, instance: &InstanceId, event: &EventId) {
        let first = self.by_instance.get(instance).and_then(VecDeque::front);
        if let Some((number, _)) = self.find(instance, event)
            && first == Some(&number)
        {
            self.free.insert(number);
        }
    }

    fn find(&self, instance: &InstanceId, event: &EventId) -> Option<(u64, &Entry)> {
        let number = *self.by_event.get(&(instance.clone(), event.clone()))?;
        Some((number, self.entries.get(&number)?))
    }
}

impl MemoryQueue {
    /// Returns an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether this event is in the queue.
    ///
    /// # Errors
    /// `E_EVENT_REUSED` when an event is that has its id and another input.
    pub fn contains(&self, call: &AgentCall) -> Result<bool> {
        match self.waiting.lock().find(&call.instance_id(), &call.event.id) {
            Some((_, entry)) if entry.digest != EventDigest::of(&call.event) => Err(reused(&call.event.id)),
            found => Ok(found.is_some()),
        }
    }

    /// Returns the events in the queue, in the order in which they were put.
    pub fn events(&self) -> Vec<AgentCall> {
        self.waiting.lock().entries.values().map(|entry| entry.call.clone()).collect()
    }

    /// Adds an event that is not in the queue.
    #[doc(hidden)]
    pub fn add(&self, call: AgentCall) {
        self.waiting.lock().add(call);
        self.changed.notify_waiters();
    }

    /// Removes an event, and tells those who wait for its outcome.
    #[doc(hidden)]
    pub fn remove(&self, instance: InstanceId, event: EventId, outcome: Option<TurnOutcome>) {
        let removed = self.waiting.lock().remove(instance, event);
        if let Some(entry) = removed {
            entry.outcome.send_replace(outcome);
        }
        self.changed.notify_waiters();
    }
}

impl Queue for MemoryQueue {
    fn put(&self, call: AgentCall) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            if !self.contains(&call)? {
                self.add(call);
            }
            Ok(())
        })
    }

    fn take(&self, room: NonZeroUsize) -> BoxFuture<'_, Result<Vec<AgentCall>>> {
        Box::pin(async move {
            loop {
                let mut changed = pin!(self.changed.notified());
                // Before the look at the entries, so that no change is missed.
                changed.as_mut().enable();
                let taken = self.waiting.lock().take(room);
                if !taken.is_empty() {
                    return Ok(taken);
                }
                changed.await;
            }
        })
    }

    fn done<'a>(&'a self, call: &'a AgentCall, outcome: TurnOutcome) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.remove(call.instance_id(), call.event.id.clone(), Some(outcome));
            Ok(())
        })
    }

    fn give_back(&self, call: &AgentCall) {
        self.waiting.lock().give_back(&call.instance_id(), &call.event.id);
        self.changed.notify_waiters();
    }

    fn outcome<'a>(
        &'a self,
        instance: &'a InstanceId,
        event: &'a EventId,
    ) -> BoxFuture<'a, Result<Option<TurnOutcome>>> {
        Box::pin(async move {
            let waiting = self.waiting.lock().find(instance, event).map(|(_, entry)| entry.outcome.subscribe());
            let Some(mut outcome) = waiting else { return Ok(None) };
            // The sender is dropped after it has sent, unless the queue is.
            Ok(outcome.wait_for(Option::is_some).await.map_or(None, |outcome| outcome.clone()))
        })
    }
}

fn reused(event: &EventId) -> Error {
    let message = format!("an event `{event}` with another input waits in the queue");
    Error::new(ErrorCode::EVENT_REUSED, message)
        .suggest("give each input an id of its own, and send the same input again when a request is repeated")
}
