//! The subscriptions of the embedding program to the events of one conversation.

use std::fmt;
use std::sync::{Arc, Weak};

use goondan_core::{Event, EventPattern};
use goondan_lock::Lock;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, channel};

use super::Bus;

/// The most events that wait for a program that does not read them. Those that exceed it are lost.
pub(crate) const QUEUE: usize = 256;

/// The subscriptions of the program. They outlast the bus: an idle conversation closes its bus, and has another one
/// when it is open again.
#[derive(Default)]
pub(crate) struct Listeners(Lock<Listening>);

#[derive(Default)]
struct Listening {
    all: Vec<Listener>,
    last: u64,
    /// The bus of the conversation as it was last opened.
    bus: Option<Bus>,
    /// Whether the instance is closed, so that a subscription ends at once.
    ended: bool,
}

struct Listener {
    number: u64,
    pattern: EventPattern,
    forward: Arc<Forward>,
    /// Its number on the bus.
    on_bus: Option<u64>,
}

impl Listener {
    fn listen(&mut self, bus: &Bus) {
        self.on_bus = Some(bus.listen(self.pattern.clone(), Arc::clone(&self.forward)));
    }
}

impl Listeners {
    /// Subscribes to the bus of a conversation that is being opened.
    pub(crate) fn attach(&self, bus: &Bus) {
        let mut listening = self.0.lock();
        listening.all.iter_mut().for_each(|listener| listener.listen(bus));
        listening.bus = Some(bus.clone());
    }

    /// Starts a subscription. `open` is the bus of the open conversation, if it is open.
    pub(crate) fn subscribe(self: &Arc<Self>, pattern: EventPattern, open: Option<Bus>) -> EventStream {
        let (sender, events) = channel(QUEUE);
        let take = move |event| !matches!(sender.try_send(event), Err(TrySendError::Full(_)));
        let forward = Arc::new(Forward(Lock::new(Receiving { take: Box::new(take), full: false })));
        let mut listening = self.0.lock();
        listening.last += 1;
        let (number, receiving) = (listening.last, Arc::downgrade(&forward));
        let mut listener = Listener { number, pattern, forward, on_bus: None };
        // A bus that was attached meanwhile is the newer one.
        listening.bus = listening.bus.take().or(open);
        if let Some(bus) = &listening.bus {
            listener.listen(bus);
        }
        if !listening.ended {
            listening.all.push(listener);
        }
        EventStream { listeners: Arc::downgrade(self), number, events, forward: receiving }
    }

    fn unsubscribe(&self, number: u64) {
        let mut listening = self.0.lock();
        let Some(place) = listening.all.iter().position(|listener| listener.number == number) else { return };
        let listener = listening.all.swap_remove(place);
        if let (Some(bus), Some(on_bus)) = (&listening.bus, listener.on_bus) {
            bus.unlisten(on_bus);
        }
    }

    /// Ends all subscriptions: the instance is closed.
    pub(crate) fn end(&self) {
        *self.0.lock() = Listening { ended: true, ..Listening::default() };
    }
}

/// Puts the events of a subscription where the program reads them.
pub(super) struct Forward(Lock<Receiving>);

struct Receiving {
    /// Takes an event, and returns whether there was room for it.
    take: Box<dyn FnMut(Event) -> bool + Send>,
    /// Whether there was none for the last event, so that the loss is logged once.
    full: bool,
}

impl Forward {
    pub(super) fn receive(&self, event: &Event) {
        let mut receiving = self.0.lock();
        let full = !(receiving.take)(event.clone());
        if full && !receiving.full {
            let event = event.name();
            tracing::warn!(event, "the program does not read its events; it loses those that exceed {QUEUE}");
        }
        receiving.full = full;
    }
}

/// The events of a subscription of the program. [`InstanceEvents::subscribe`](crate::InstanceEvents::subscribe) returns
/// it, and dropping it ends the subscription.
///
/// It holds up to 256 events that are not read; later ones are lost, which is logged.
pub struct EventStream {
    /// Weak: the subscription ends with the handles of the conversation.
    listeners: Weak<Listeners>,
    number: u64,
    events: Receiver<Event>,
    /// Weak, so that the events end with the subscription.
    forward: Weak<Forward>,
}

impl EventStream {
    /// Waits for the next event. Returns `None` once the conversation is closed and no handle to it is left.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Gives `take` the later events, and those that were not read yet. It returns whether there was room.
    pub(crate) fn forward_to(&mut self, mut take: impl FnMut(Event) -> bool + Send + 'static) {
        let forward = self.forward.upgrade();
        let mut receiving = forward.as_ref().map(|forward| forward.0.lock());
        while let Ok(event) = self.events.try_recv() {
            take(event);
        }
        if let Some(receiving) = &mut receiving {
            receiving.take = Box::new(take);
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if let Some(listeners) = self.listeners.upgrade() {
            listeners.unsubscribe(self.number);
        }
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventStream({})", self.number)
    }
}
