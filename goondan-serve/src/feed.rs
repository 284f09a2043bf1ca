//! All turns of a conversation, for those who watch it as a whole.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use axum::response::Response;
use axum::response::sse::Event;
use futures_util::stream::{BoxStream, StreamExt, unfold};
use goondan_core::EventId;
use goondan_lock::Lock;
use goondan_runtime::BackgroundUpdate;
use goondan_runtime::store::InstanceId;
use goondan_wire::{TurnEnd, Update};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

use crate::log::Entry;
use crate::watch::{event_of, events, place};

/// How many updates wait for a watcher. One that reads more slowly is told how many it has missed.
const WAITING: usize = 1024;

/// An update of a turn.
#[derive(Clone)]
pub(crate) struct Fed {
    pub(crate) event: EventId,
    /// The number of the log; `None` for a turn that has none: its end alone is known.
    pub(crate) epoch: Option<u32>,
    pub(crate) entry: Entry,
}

/// The conversations that are watched.
#[derive(Default)]
pub(crate) struct Feeds {
    watched: Lock<HashMap<InstanceId, Sender<Fed>>>,
}

impl Feeds {
    /// Returns a receiver of what the turns of a conversation tell after this call.
    pub(crate) fn watch(&self, instance: InstanceId) -> Receiver<Fed> {
        self.watched.lock().entry(instance).or_insert_with(|| channel(WAITING).0).subscribe()
    }

    pub(crate) fn send(&self, instance: &InstanceId, fed: Fed) {
        let mut watched = self.watched.lock();
        if watched.get(instance).is_some_and(|feed| feed.send(fed).is_err()) {
            // Those who watched are gone.
            watched.remove(instance);
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
                if let Some(entry) = Entry::new(0, Update::Turn(end)) {
                    let instance = InstanceId { agent: turn.agent.clone(), key: turn.instance.clone() };
                    feeds.send(&instance, Fed { event: turn.input.id.clone(), epoch: None, entry });
                }
            }
        });
        Self(task.abort_handle())
    }
}

/// Returns a stream of `begun`, the updates of a turn that runs, and of all that follow.
pub(crate) fn stream(begun: VecDeque<Fed>, feed: Receiver<Fed>) -> Response {
    let told = begun.back().map(|last| (last.event.clone(), last.epoch, last.entry.number));
    events(unfold((begun, feed, told), async |(mut begun, mut feed, told)| {
        if let Some(fed) = begun.pop_front() {
            return Some((Ok::<_, Infallible>(event(&fed)), (begun, feed, told)));
        }
        loop {
            let next = match feed.recv().await {
                // It came between the beginning of the receiver and the look at the log.
                Ok(fed) if is_told(&fed, told.as_ref()) => continue,
                Ok(fed) => event(&fed),
                Err(RecvError::Lagged(missed)) => Event::default().event("missed").data(missed.to_string()),
                Err(RecvError::Closed) => return None,
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
