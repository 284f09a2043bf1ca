//! All turns of a conversation, for those who watch it as a whole.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::response::Response;
use axum::response::sse::Event;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use goondan_core::EventId;
use goondan_lock::Lock;
use goondan_runtime::BackgroundUpdate;
use goondan_runtime::store::InstanceId;
use goondan_wire::{TurnEnd, Update};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

use crate::log::Entry;
use crate::watch::{event_of, events, place};

/// The most updates that wait for a watcher. One that reads more slowly is told how many it has missed.
const WAITING: usize = 1024;

/// An update of a turn.
#[derive(Clone)]
pub(crate) struct Fed {
    pub(crate) event: EventId,
    /// The number of the log; `None` for a turn that has none: its end alone is known.
    pub(crate) epoch: Option<u32>,
    pub(crate) entry: Entry,
}

/// The conversations that are watched, each with those who watch it.
#[derive(Default)]
pub(crate) struct Feeds {
    watched: Lock<HashMap<InstanceId, Vec<Watcher>>>,
}

struct Watcher {
    updates: Sender<Received>,
    missed: Arc<AtomicU64>,
}

/// Receives the updates of the turns of a conversation.
pub(crate) struct Feed {
    updates: Receiver<Received>,
    /// The number of updates that have been left out since the newest that waits.
    missed: Arc<AtomicU64>,
    feeds: Arc<Feeds>,
    instance: InstanceId,
}

/// An update, or a gap.
enum Received {
    Update(Fed),
    /// So many updates are left out.
    Missed(u64),
}

impl Watcher {
    /// Returns whether the update waits now.
    fn send(&self, fed: &Fed) -> bool {
        let missed = self.missed.load(Ordering::Relaxed);
        if missed > 0 && self.updates.try_send(Received::Missed(missed)).is_ok() {
            self.missed.fetch_sub(missed, Ordering::Relaxed);
        }
        self.updates.try_send(Received::Update(fed.clone())).is_ok()
    }
}

impl Feed {
    async fn next(&mut self) -> Option<Received> {
        match self.updates.try_recv() {
            Ok(received) => Some(received),
            Err(_) => match self.missed.swap(0, Ordering::Relaxed) {
                0 => self.updates.recv().await,
                missed => Some(Received::Missed(missed)),
            },
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.updates.close();
        let mut watched = self.feeds.watched.lock();
        if let Some(watchers) = watched.get_mut(&self.instance) {
            watchers.retain(|watcher| !watcher.updates.is_closed());
            if watchers.is_empty() {
                watched.remove(&self.instance);
            }
        }
    }
}

impl Feeds {
    /// Returns a receiver of the updates of the turns of a conversation after this call.
    pub(crate) fn watch(self: &Arc<Self>, instance: InstanceId) -> Feed {
        let (sender, updates) = channel(WAITING);
        let missed = Arc::default();
        let watcher = Watcher { updates: sender, missed: Arc::clone(&missed) };
        self.watched.lock().entry(instance.clone()).or_default().push(watcher);
        Feed { updates, missed, feeds: Arc::clone(self), instance }
    }

    /// Returns whether a conversation is watched.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watched.lock().is_empty()
    }

    pub(crate) fn send(&self, instance: &InstanceId, fed: &Fed) {
        for watcher in self.watched.lock().get(instance).into_iter().flatten() {
            if !watcher.send(fed) {
                watcher.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Ends all streams.
    pub(crate) fn close(&self) {
        self.watched.lock().clear();
    }
}

/// Follows the turns that nothing asked for over HTTP, until it is dropped.
pub(crate) struct Background(AbortHandle);

impl Drop for Background {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Background {
    pub(crate) fn follow(mut turns: BoxStream<'static, BackgroundUpdate>, feeds: Arc<Feeds>) -> Self {
        let task = tokio::spawn(async move {
            while let Some(update) = turns.next().await {
                let BackgroundUpdate::Ended(turn) = update else { continue };
                let end = TurnEnd::of(&turn.outcome).in_background(&*turn);
                if let Some(entry) = Entry::new(0, Update::Turn(Box::new(end))) {
                    let instance = InstanceId { agent: turn.agent.clone(), key: turn.instance.clone() };
                    feeds.send(&instance, &Fed { event: turn.input.id.clone(), epoch: None, entry });
                }
            }
        });
        Self(task.abort_handle())
    }
}

/// Returns a stream of `begun`, the updates of a turn that runs, and of all that follow.
pub(crate) fn stream(begun: VecDeque<Fed>, feed: Feed) -> Response {
    let told = begun.back().map(|last| (last.event.clone(), last.epoch, last.entry.number));
    events(unfold((begun, feed, told), async |(mut begun, mut feed, told)| {
        if let Some(fed) = begun.pop_front() {
            return Some((Ok::<_, Infallible>(event(&fed)), (begun, feed, told)));
        }
        loop {
            let next = match feed.next().await? {
                // It came between the beginning of the receiver and the look at the log.
                Received::Update(fed) if is_told(&fed, told.as_ref()) => continue,
                Received::Update(fed) => event(&fed),
                Received::Missed(missed) => Event::default().event("missed").data(missed.to_string()),
            };
            return Some((Ok(next), (begun, feed, told)));
        }
    }))
}

fn is_told(fed: &Fed, told: Option<&(EventId, Option<u32>, u64)>) -> bool {
    told.is_some_and(|(event, epoch, number)| fed.event == *event && fed.epoch == *epoch && fed.entry.number <= *number)
}

fn event(fed: &Fed) -> Event {
    let event = event_of(&fed.entry.json);
    match fed.epoch {
        Some(epoch) => place(event, &fed.event, epoch, fed.entry.number),
        None => event,
    }
}
