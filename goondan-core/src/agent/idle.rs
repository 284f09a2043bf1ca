//! Owns the end of idleness: one task of an agent that closes conversations in which nothing happened for a while.
//!
//! Each of them waits in it once, until the moment from which it may be idle. So a turn costs a look at the clock, and the
//! task sleeps until something is due; it is not there before the first conversation is to be watched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout_at};

use super::slot::{Idleness, Slot};

/// How many conversations are closed at once: clean-up may wait for the network, and there may be thousands.
const CLOSING: usize = 32;

/// The way to the task, which is started when there is something to watch.
#[derive(Default)]
pub(super) struct Idle(Mutex<Option<UnboundedSender<Watched>>>);

/// A conversation that waits in the task. It has no other way out than this one's end, also when a runtime shuts down and
/// the task with it.
struct Watched(Arc<Slot>);

impl Idle {
    /// Watches a conversation that is not watched yet.
    pub(super) fn watch(&self, slot: Arc<Slot>) {
        let mut task = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut watched = Watched(slot);
        if let Some(task) = &*task {
            match task.send(watched) {
                Ok(()) => return,
                Err(refused) => watched = refused.0,
            }
        }
        // Unbounded, but each conversation is in it once.
        let (sender, arrivals) = unbounded_channel();
        tokio::spawn(Schedule::starting_with(watched).keep(arrivals));
        *task = Some(sender);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.unwatch();
    }
}

/// When to look at which conversation.
struct Schedule {
    due: BTreeMap<(Instant, u64), Watched>,
    /// Tells those apart that are due at the same moment.
    last: u64,
    closing: Arc<Semaphore>,
}

impl Schedule {
    fn starting_with(first: Watched) -> Self {
        let due = BTreeMap::from([((Instant::now(), 0), first)]);
        Self { due, last: 0, closing: Arc::new(Semaphore::new(CLOSING)) }
    }

    /// Goes on until the agent is gone.
    async fn keep(mut self, mut arrivals: UnboundedReceiver<Watched>) {
        loop {
            let next = self.due.first_key_value().map(|((at, _), _)| *at);
            let arrival = match next {
                Some(at) => timeout_at(at, arrivals.recv()).await,
                None => Ok(arrivals.recv().await),
            };
            let watched = match arrival {
                Ok(Some(arrived)) => Some(arrived),
                Ok(None) => return,
                Err(_) => self.due.pop_first().map(|(_, watched)| watched),
            };
            if let Some(watched) = watched {
                self.look_at(watched).await;
            }
        }
    }

    async fn look_at(&mut self, watched: Watched) {
        // Before the look, so that nothing is kept waiting in a queue.
        let Ok(permit) = Arc::clone(&self.closing).acquire_owned().await else { return };
        match watched.0.idleness() {
            Idleness::Until(at) => {
                self.last += 1;
                self.due.insert((at, self.last), watched);
            }
            Idleness::Over(place) => {
                // In this order: whoever opens it next finds that nobody watches it.
                drop(watched);
                drop(place);
            }
            Idleness::Idle(place) => {
                let slot = Arc::clone(&watched.0);
                drop(watched);
                tokio::spawn(async move {
                    slot.close_idle(place).await;
                    drop(permit);
                });
            }
        }
    }
}
