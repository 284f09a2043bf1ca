//! One background task per agent that closes idle conversations.
//!
//! Each conversation is in the schedule once, at the earliest moment at which it can be idle. A turn therefore costs
//! one reading of the clock, and the task sleeps until a conversation is due. It is spawned with the first
//! conversation.

use std::collections::BTreeMap;
use std::sync::Arc;

use goondan_lock::Lock;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout_at};

use super::slot::{Idleness, InstanceSlot};

/// The most conversations that are closed at once: a cleanup may wait for the network, and there may be thousands.
const CLOSING: usize = 32;

/// The channel to the task.
#[derive(Default)]
pub(super) struct Idle(Lock<Option<UnboundedSender<Watched>>>);

/// A slot in the schedule. Its drop unmarks the slot, also when a runtime shuts down and drops the task.
struct Watched(Arc<InstanceSlot>);

impl Idle {
    /// Adds a slot that is not in the schedule.
    pub(super) fn watch(&self, slot: Arc<InstanceSlot>) {
        let mut task = self.0.lock();
        let mut watched = Watched(slot);
        if let Some(task) = &*task {
            match task.send(watched) {
                Ok(()) => return,
                Err(refused) => watched = refused.0,
            }
        }
        // Unbounded, but each slot is in it at most once.
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

/// The slots by the moment at which they are looked at.
struct Schedule {
    due: BTreeMap<(Instant, u64), Watched>,
    /// Makes keys unique that have the same moment.
    last: u64,
    closing: Arc<Semaphore>,
}

impl Schedule {
    fn starting_with(first: Watched) -> Self {
        let due = BTreeMap::from([((Instant::now(), 0), first)]);
        Self { due, last: 0, closing: Arc::new(Semaphore::new(CLOSING)) }
    }

    /// Runs until the agent is dropped, and the channel with it.
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
        // Before looking, so that no conversation lock is held while this waits.
        let Ok(permit) = Arc::clone(&self.closing).acquire_owned().await else { return };
        match watched.0.idleness() {
            Idleness::Until(at) => {
                self.last += 1;
                self.due.insert((at, self.last), watched);
            }
            Idleness::Over(lock) => {
                // In this order: the next lock holder that opens the conversation finds it unwatched.
                drop(watched);
                drop(lock);
            }
            Idleness::Idle(lock) => {
                let slot = Arc::clone(&watched.0);
                drop(watched);
                tokio::spawn(async move {
                    slot.close_idle(lock).await;
                    drop(permit);
                });
            }
        }
    }
}
