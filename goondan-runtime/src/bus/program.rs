//! The subscriptions of the embedding program to the events of one conversation.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use goondan_core::{BoxFuture, Deliveries, Event, EventHandler, EventPattern, Result};
use goondan_lock::Lock;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::Bus;

/// How many events wait for a program that does not read them. Those that exceed it are lost.
const QUEUE: usize = 256;

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
    /// The number of the subscription on the bus.
    on_bus: Option<u64>,
}

impl Listener {
    fn listen(&mut self, bus: &Bus) {
        let forward = Arc::clone(&self.forward);
        self.on_bus = Some(bus.subscribe(None, self.pattern.clone(), Deliveries::All, forward));
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
        let forward = Arc::new(Forward { events: sender, full: AtomicBool::new(false) });
        let mut listening = self.0.lock();
        listening.last += 1;
        let number = listening.last;
        let mut listener = Listener { number, pattern, forward, on_bus: None };
        // A bus that was attached meanwhile is the newer one.
        listening.bus = listening.bus.take().or(open);
        if let Some(bus) = &listening.bus {
            listener.listen(bus);
        }
        if !listening.ended {
            listening.all.push(listener);
        }
        EventStream { listeners: Arc::downgrade(self), number, events }
    }

    fn unsubscribe(&self, number: u64) {
        let mut listening = self.0.lock();
        let Some(place) = listening.all.iter().position(|listener| listener.number == number) else { return };
        let listener = listening.all.swap_remove(place);
        if let (Some(bus), Some(on_bus)) = (&listening.bus, listener.on_bus) {
            bus.unsubscribe(on_bus);
        }
    }

    /// Ends all subscriptions: the instance is closed.
    pub(crate) fn end(&self) {
        *self.0.lock() = Listening { ended: true, ..Listening::default() };
    }
}

/// The handler of a subscription: puts the events into the queue that the program reads.
struct Forward {
    events: Sender<Event>,
    /// Whether the queue was full for the last event, so that the loss is logged once.
    full: AtomicBool,
}

impl EventHandler for Forward {
    fn handle<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<()>> {
        let full = matches!(self.events.try_send(event.clone()), Err(TrySendError::Full(_)));
        if full && !self.full.swap(true, Ordering::Relaxed) {
            let event = event.name();
            tracing::warn!(event, "the program does not read its events; it loses those that exceed {QUEUE}");
        } else if !full {
            self.full.store(false, Ordering::Relaxed);
        }
        Box::pin(std::future::ready(Ok(())))
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
}

impl EventStream {
    /// Waits for the next event. Returns `None` once the conversation is closed and no handle to it is left.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.events.poll_recv(cx)
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
