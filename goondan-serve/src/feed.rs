//! All turns of a conversation, for those who watch it as a whole.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Bytes;
use axum::response::Response;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use goondan_core::EventId;
use goondan_lock::Lock;
use goondan_runtime::BackgroundUpdate;
use goondan_runtime::store::InstanceId;
use goondan_wire::{TurnEnd, Update, Updates};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

use crate::log::{Entry, Log};
use crate::sse::{self, Event};
use crate::task::spawn;

/// The most updates that wait for a watcher. One that reads more slowly is told how many it has missed.
const WAITING: usize = 1024;

/// An update of a turn.
#[derive(Clone)]
pub(crate) struct Fed {
    pub(crate) event: EventId,
    /// The number of the log; `None` for a turn in the background, which has none.
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

    /// Returns whether any conversation is watched.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watched.lock().is_empty()
    }

    /// Tells an update of a turn in the background.
    fn send_background(&self, instance: &InstanceId, event: &EventId, update: Update) {
        if self.watched.lock().contains_key(instance)
            && let Some(entry) = Entry::without_place(update)
        {
            self.send(instance, &Fed { event: event.clone(), epoch: None, entry });
        }
    }

    /// Tells all who watch that so many updates are left out, which may be of their conversations.
    fn miss(&self, missed: u64) {
        for watcher in self.watched.lock().values().flatten() {
            watcher.missed.fetch_add(missed, Ordering::Relaxed);
        }
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
        let task = spawn(Box::pin(async move {
            // A conversation runs one turn at a time.
            let mut running: HashMap<InstanceId, Updates> = HashMap::new();
            while let Some(update) = turns.next().await {
                match update {
                    BackgroundUpdate::Running(told) => {
                        let instance = InstanceId { agent: told.agent.clone(), key: told.instance.clone() };
                        let updates = running.entry(instance.clone()).or_default();
                        if let Some(update) = updates.next(told.update.clone()) {
                            feeds.send_background(&instance, &told.event, update);
                        }
                    }
                    BackgroundUpdate::Ended(turn) => {
                        let instance = InstanceId { agent: turn.agent.clone(), key: turn.instance.clone() };
                        running.remove(&instance);
                        let end = TurnEnd::of(&turn.outcome).in_background(&*turn);
                        feeds.send_background(&instance, &turn.input.id, Update::Turn(Box::new(end)));
                    }
                    BackgroundUpdate::Missed(missed) => feeds.miss(missed),
                    _ => {}
                }
            }
        }));
        Self(task)
    }
}

/// The part of the log of a turn that was there when someone began to watch its conversation.
pub(crate) struct Begun {
    event: EventId,
    epoch: u32,
    /// `None` once it is told.
    log: Option<Arc<Log>>,
    /// The number that is told next.
    next: u64,
    /// The number of the first update that the feed has.
    until: u64,
    read: VecDeque<Entry>,
}

impl Begun {
    /// Returns what the log has now from the number `from` on.
    pub(crate) fn new(event: EventId, log: Arc<Log>, from: u64) -> Self {
        let (epoch, until) = (log.epoch(), log.length());
        Self { event, epoch, log: Some(log), next: from, until, read: VecDeque::new() }
    }

    fn next(&mut self) -> Option<Bytes> {
        if self.read.is_empty() {
            self.read.extend(self.log.as_ref()?.read(self.next).entries);
        }
        match self.read.pop_front().filter(|entry| entry.number < self.until) {
            Some(entry) => {
                self.next = entry.number + 1;
                Some(entry.event)
            }
            None => {
                (self.log, self.read) = (None, VecDeque::new());
                None
            }
        }
    }

    fn has_told(&self, fed: &Fed) -> bool {
        fed.event == self.event && fed.epoch == Some(self.epoch) && fed.entry.number < self.until
    }
}

/// Returns a stream of the updates of a turn that has begun, and of all that follow.
pub(crate) fn stream(begun: Option<Begun>, feed: Feed) -> Response {
    sse::response(unfold((begun, feed), async |(mut begun, mut feed)| {
        if let Some(event) = begun.as_mut().and_then(Begun::next) {
            return Some((event, (begun, feed)));
        }
        loop {
            let event = match sse::within(feed.next()).await {
                None => sse::comment(),
                // It came between the beginning of the receiver and the look at the log.
                Some(Some(Received::Update(fed))) if begun.as_ref().is_some_and(|begun| begun.has_told(&fed)) => {
                    continue;
                }
                Some(Some(Received::Update(fed))) => fed.entry.event,
                Some(Some(Received::Missed(missed))) => {
                    Event::new(&missed.to_string()).field("event", "missed").bytes()
                }
                Some(None) => return None,
            };
            return Some((event, (begun, feed)));
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_begun_is_told_up_to_the_first_update_of_the_feed() {
        let (event, log) = (EventId::from("e"), Arc::new(Log::new(&"e".into(), 7)));
        let gone = |number: u32| Update::Gone { id: format!("{number}").into() };
        let mut pushed: Vec<_> = (0..200).filter_map(|number| log.push(gone(number), usize::MAX)).collect();
        let mut begun = Begun::new(event.clone(), Arc::clone(&log), 3);
        let later = log.push(gone(200), usize::MAX);
        let told: Vec<_> = std::iter::from_fn(|| begun.next()).collect();
        assert!(told.iter().eq(pushed[3..].iter().map(|entry| &entry.event)));
        assert_eq!(Arc::strong_count(&log), 1, "a log that is told is not kept");
        pushed.extend(later);
        let is_told = |entry: Entry| begun.has_told(&Fed { event: event.clone(), epoch: Some(7), entry });
        let is_told: Vec<_> = pushed.into_iter().map(is_told).collect();
        assert_eq!(is_told, [[true; 200].as_slice(), &[false]].concat());
    }
}
