//! Background turns, which the program did not run itself: who is told of them, and how many there are.
// WAKE-01

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use goondan_core::host::WireError;
use goondan_core::{AgentEvent, AgentName, Error, FinishReason, InstanceKey, Result, TurnResult};
use goondan_lock::Lock;
use tokio::sync::mpsc::{Receiver, Sender, WeakSender, channel};
use tokio::sync::watch;

use crate::ports::router::AgentReply;
use crate::ports::store::InstanceId;
use crate::turn::suspended;

/// The most turns that wait for a subscriber that does not read them. Those that exceed it are counted only.
const QUEUE: usize = 256;

/// A turn whose result was not returned to the program: an extension or the program delegated it, another agent
/// requested it, or [`Instance::send`](crate::Instance::send) queued it.
#[derive(Debug)]
#[non_exhaustive]
pub struct BackgroundTurn {
    /// The agent that ran the turn.
    pub agent: AgentName,
    /// The key of its instance.
    pub instance: InstanceKey,
    /// The event that the turn answered. Its source is who asked; another agent waits for the answer if it has
    /// `reply_to`.
    pub input: AgentEvent,
    /// The result, or the error that failed the turn.
    pub outcome: Result<TurnResult>,
}

/// An update from [`BackgroundTurns`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BackgroundUpdate {
    /// A turn has ended.
    Ended(Arc<BackgroundTurn>),
    /// So many turns have ended that are not told, because 256 others were not read in time.
    Missed(u64),
}

/// The later background turns of agents, returned by [`Agent::subscribe_turns`](crate::Agent::subscribe_turns).
pub struct BackgroundTurns {
    ended: Receiver<Arc<BackgroundTurn>>,
    missed: Arc<AtomicU64>,
    /// For more agents.
    sender: WeakSender<Arc<BackgroundTurn>>,
    /// The number of turns of each agent.
    counts: Vec<watch::Receiver<Count>>,
}

/// The background turns of one agent.
#[derive(Default)]
pub(crate) struct Background {
    subscribers: Lock<Vec<Subscriber>>,
    count: watch::Sender<Count>,
}

struct Subscriber {
    ended: Sender<Arc<BackgroundTurn>>,
    missed: Arc<AtomicU64>,
}

/// The number of background turns of an agent.
#[derive(Clone, Copy, Default)]
struct Count {
    pending: usize,
    /// The number of all that ever began. It never falls.
    begun: u64,
}

/// A background turn from the moment at which it is asked for until it is dropped.
pub(crate) struct Pending(Arc<Background>);

impl BackgroundTurns {
    /// Returns the turns of the agent with `background`.
    pub(crate) fn of(background: &Background) -> Self {
        let (sender, ended) = channel(QUEUE);
        let (missed, counts) = (Arc::default(), Vec::new());
        let mut turns = Self { ended, missed, sender: sender.downgrade(), counts };
        turns.add(background);
        turns
    }

    pub(crate) fn add(&mut self, background: &Background) {
        let Some(ended) = self.sender.upgrade() else { return };
        let mut subscribers = background.subscribers.lock();
        if !subscribers.iter().any(|subscriber| subscriber.ended.same_channel(&ended)) {
            subscribers.push(Subscriber { ended, missed: Arc::clone(&self.missed) });
            self.counts.push(background.count.subscribe());
        }
    }

    /// Waits for the next notice. Returns `None` once the agents are dropped.
    pub async fn next(&mut self) -> Option<BackgroundUpdate> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Waits for the next notice, as long as a turn of this kind runs or is queued, or a delegation waits for its
    /// result. Returns `None` when there is neither: a program that ends drops no answer then.
    pub async fn next_pending(&mut self) -> Option<BackgroundUpdate> {
        let mut settled = pin!(settled(self.counts.clone()));
        poll_fn(|cx| match settled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(self.told()),
            Poll::Pending => self.poll_next(cx),
        })
        .await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<BackgroundUpdate>> {
        match self.missed() {
            Some(missed) => Poll::Ready(Some(missed)),
            None => self.ended.poll_recv(cx).map(|turn| turn.map(BackgroundUpdate::Ended)),
        }
    }

    /// Returns a notice that is there already.
    fn told(&mut self) -> Option<BackgroundUpdate> {
        self.missed().or_else(|| self.ended.try_recv().ok().map(BackgroundUpdate::Ended))
    }

    fn missed(&self) -> Option<BackgroundUpdate> {
        let missed = self.missed.swap(0, Ordering::Relaxed);
        (missed > 0).then_some(BackgroundUpdate::Missed(missed))
    }
}

/// Waits until no agent has a pending turn. A turn of one may have asked for one of another.
async fn settled(mut counts: Vec<watch::Receiver<Count>>) {
    loop {
        let begun = begun(&counts);
        for count in &mut counts {
            // An error means that the agent is dropped.
            _ = count.wait_for(|count| count.pending == 0).await;
        }
        // None has begun meanwhile, so all were settled at this moment.
        if self::begun(&counts) == begun {
            return;
        }
    }
}

fn begun(counts: &[watch::Receiver<Count>]) -> u64 {
    counts.iter().map(|count| count.borrow().begun).sum()
}

impl Background {
    pub(super) fn has_subscribers(&self) -> bool {
        !self.subscribers.lock().is_empty()
    }

    /// Tells the subscribers of a turn of the instance `id`, and returns its answer.
    pub(super) fn tell(&self, id: &InstanceId, input: AgentEvent, outcome: Result<TurnResult>) -> Result<Answer> {
        let (answer, outcome) = match outcome {
            Ok(result) => (Ok(Answer::of(&result)), Ok(result)),
            Err(error) => {
                let copy = WireError::copy(&error);
                (Err(error), Err(copy))
            }
        };
        let InstanceId { agent, key: instance } = id.clone();
        let turn = Arc::new(BackgroundTurn { agent, instance, input, outcome });
        self.subscribers.lock().retain(|Subscriber { ended, missed }| {
            if ended.try_send(Arc::clone(&turn)).is_err() {
                missed.fetch_add(1, Ordering::Relaxed);
            }
            !ended.is_closed()
        });
        answer
    }
}

/// The answer of a background turn.
pub(super) enum Answer {
    Reply(AgentReply),
    /// There is none yet: the turn waits for decisions. The error says for which.
    Suspended(Error),
}

impl Answer {
    pub(super) fn of(result: &TurnResult) -> Self {
        match result.finish_reason() {
            FinishReason::Suspended => Self::Suspended(suspended(result.waits().iter())),
            _ => Self::Reply(result.into()),
        }
    }
}

impl Pending {
    pub(crate) fn begin(background: &Arc<Background>) -> Self {
        background.count.send_modify(|count| {
            count.pending += 1;
            count.begun += 1;
        });
        Self(Arc::clone(background))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.count.send_modify(|count| count.pending -= 1);
    }
}

impl fmt::Debug for BackgroundTurns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BackgroundTurns({} agents)", self.counts.len())
    }
}
