//! The queue in memory.

use std::collections::{HashSet, VecDeque};
use std::num::NonZeroUsize;
use std::pin::pin;

use goondan_core::{BoxFuture, Error, ErrorCode, EventId, Result};
use goondan_lock::Lock;
use tokio::sync::{Notify, watch};

use crate::ports::queue::Queue;
use crate::ports::router::AgentCall;
use crate::ports::store::{EventDigest, InstanceId, TurnOutcome};

/// Keeps events in memory, for tests and for programs that need not keep what they accept.
#[derive(Debug, Default)]
pub struct MemoryQueue {
    entries: Lock<VecDeque<Entry>>,
    /// Notified when there may be something to take.
    changed: Notify,
}

/// An event in a queue.
#[derive(Debug)]
struct Entry {
    instance: InstanceId,
    call: AgentCall,
    digest: EventDigest,
    is_taken: bool,
    /// For those who wait for the outcome.
    outcome: watch::Sender<Option<TurnOutcome>>,
}

impl Entry {
    fn is_of(&self, instance: &InstanceId, event: &EventId) -> bool {
        self.call.event.id == *event && self.instance == *instance
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
        let instance = call.instance_id();
        match self.entries.lock().iter().find(|entry| entry.is_of(&instance, &call.event.id)) {
            Some(entry) if entry.digest != EventDigest::of(&call.event) => Err(reused(&call.event.id)),
            found => Ok(found.is_some()),
        }
    }

    /// Returns the events in the queue, in the order in which they were put.
    pub fn events(&self) -> Vec<AgentCall> {
        self.entries.lock().iter().map(|entry| entry.call.clone()).collect()
    }

    /// Adds an event that is not in the queue.
    #[doc(hidden)]
    pub fn add(&self, call: AgentCall) {
        let (instance, digest) = (call.instance_id(), EventDigest::of(&call.event));
        let entry = Entry { instance, call, digest, is_taken: false, outcome: watch::Sender::new(None) };
        self.entries.lock().push_back(entry);
        self.changed.notify_waiters();
    }

    /// Takes events whose instances have none that is taken.
    fn take_now(&self, room: NonZeroUsize) -> Vec<AgentCall> {
        let mut entries = self.entries.lock();
        let mut busy: HashSet<_> =
            entries.iter().filter(|entry| entry.is_taken).map(|entry| entry.instance.clone()).collect();
        let free = entries.iter_mut().filter(|entry| busy.insert(entry.instance.clone()));
        let taken = free.take(room.get()).map(|entry| {
            entry.is_taken = true;
            entry.call.clone()
        });
        taken.collect()
    }
}

impl FromIterator<AgentCall> for MemoryQueue {
    /// Puts events in their order, none of which has the id of another one.
    fn from_iter<I: IntoIterator<Item = AgentCall>>(calls: I) -> Self {
        let queue = Self::new();
        calls.into_iter().for_each(|call| queue.add(call));
        queue
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
                let taken = self.take_now(room);
                if !taken.is_empty() {
                    return Ok(taken);
                }
                changed.await;
            }
        })
    }

    fn done<'a>(&'a self, call: &'a AgentCall, outcome: TurnOutcome) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let instance = call.instance_id();
            let mut entries = self.entries.lock();
            let place = entries.iter().position(|entry| entry.is_of(&instance, &call.event.id));
            if let Some(entry) = place.and_then(|place| entries.remove(place)) {
                entry.outcome.send_replace(Some(outcome));
                self.changed.notify_waiters();
            }
            Ok(())
        })
    }

    fn give_back(&self, call: &AgentCall) {
        let instance = call.instance_id();
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.is_of(&instance, &call.event.id)) {
            entry.is_taken = false;
            self.changed.notify_waiters();
        }
    }

    fn outcome<'a>(
        &'a self,
        instance: &'a InstanceId,
        event: &'a EventId,
    ) -> BoxFuture<'a, Result<Option<TurnOutcome>>> {
        Box::pin(async move {
            let find = |entry: &&Entry| entry.is_of(instance, event);
            let Some(mut outcome) = self.entries.lock().iter().find(find).map(|entry| entry.outcome.subscribe()) else {
                return Ok(None);
            };
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
