//! Background turns, which the program did not run itself: who is told of them, and how many there are.
// WAKE-01

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use goondan_core::host::WireError;
use goondan_core::{AgentEvent, AgentName, BoxFuture, Error, EventId, FinishReason, InstanceKey, Result, TurnResult};
use goondan_lock::Lock;
use tokio::sync::mpsc::{Receiver, Sender, WeakSender, channel, unbounded_channel};
use tokio::sync::watch;

use super::Waiter;
use crate::ports::router::AgentReply;
use crate::ports::store::InstanceId;
use crate::turn::suspended;
use crate::updates::{TurnUpdate, UpdateSender};

/// The most notices that wait for a subscriber that does not read them. Those that exceed it are counted only.
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

/// Something that happened in a background turn while it ran.
#[derive(Debug)]
#[non_exhaustive]
pub struct BackgroundTurnUpdate {
    /// The agent that runs the turn.
    pub agent: AgentName,
    /// The key of the instance that runs it.
    pub instance: InstanceKey,
    /// The id of its input event.
    pub event: EventId,
    /// The update.
    pub update: TurnUpdate,
}

/// An update from [`BackgroundTurns`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BackgroundUpdate {
    /// Something happened in a turn that runs: see [`BackgroundTurns::with_updates`].
    Running(Arc<BackgroundTurnUpdate>),
    /// A turn has ended.
    Ended(Arc<BackgroundTurn>),
    /// So many turns have ended that are not told, because 256 others were not read in time. Updates count as turns.
    Missed(u64),
}

/// The later background turns of agents, returned by [`Agent::subscribe_turns`](crate::Agent::subscribe_turns).
pub struct BackgroundTurns {
    notices: Receiver<BackgroundUpdate>,
    reader: Arc<Reader>,
    /// For more agents.
    sender: WeakSender<BackgroundUpdate>,
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
    notices: Sender<BackgroundUpdate>,
    reader: Arc<Reader>,
}

/// The state that a subscription shares with the agents that tell it.
#[derive(Default)]
struct Reader {
    missed: AtomicU64,
    wants_updates: AtomicBool,
}

impl Subscriber {
    fn send(&self, notice: BackgroundUpdate) {
        if self.notices.try_send(notice).is_err() {
            self.reader.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn wants_updates(&self) -> bool {
        self.reader.wants_updates.load(Ordering::Relaxed)
    }
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
        let (sender, notices) = channel(QUEUE);
        let (reader, counts) = (Arc::default(), Vec::new());
        let mut turns = Self { notices, reader, sender: sender.downgrade(), counts };
        turns.add(background);
        turns
    }

    pub(crate) fn add(&mut self, background: &Background) {
        let Some(notices) = self.sender.upgrade() else { return };
        let mut subscribers = background.subscribers.lock();
        if !subscribers.iter().any(|subscriber| subscriber.notices.same_channel(&notices)) {
            subscribers.push(Subscriber { notices, reader: Arc::clone(&self.reader) });
            self.counts.push(background.count.subscribe());
        }
    }

    /// Adds the updates of the turns that begin afterwards, as [`BackgroundUpdate::Running`], in the order of each turn
    /// and before its end. Updates of the agents that a turn asks are not among them: those have turns of their own.
    #[must_use]
    pub fn with_updates(self) -> Self {
        self.reader.wants_updates.store(true, Ordering::Relaxed);
        self
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
            None => self.notices.poll_recv(cx),
        }
    }

    /// Returns a notice that is there already.
    fn told(&mut self) -> Option<BackgroundUpdate> {
        self.missed().or_else(|| self.notices.try_recv().ok())
    }

    fn missed(&self) -> Option<BackgroundUpdate> {
        let missed = self.reader.missed.swap(0, Ordering::Relaxed);
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

    /// Returns whether a subscriber wants the updates of turns.
    pub(super) fn wants_updates(&self) -> bool {
        self.subscribers.lock().iter().any(Subscriber::wants_updates)
    }

    /// Tells something that happened in the turn of the instance `id` that answers `event`.
    fn tell_update(&self, id: &InstanceId, event: &EventId, update: TurnUpdate) {
        let InstanceId { agent, key: instance } = id.clone();
        let update = Arc::new(BackgroundTurnUpdate { agent, instance, event: event.clone(), update });
        let subscribers = self.subscribers.lock();
        let wanting = subscribers.iter().filter(|subscriber| subscriber.wants_updates());
        wanting.for_each(|subscriber| subscriber.send(BackgroundUpdate::Running(Arc::clone(&update))));
    }

    /// Runs a turn of the instance `id`, and tells its updates to the subscribers that want them, and to the one that
    /// waits.
    pub(super) async fn tell_updates<'a>(
        &self,
        (id, event): (&InstanceId, &EventId),
        mut waiter: Waiter,
        run: impl FnOnce(Waiter) -> BoxFuture<'a, Result<TurnResult>>,
    ) -> Result<TurnResult> {
        let (sender, mut updates) = unbounded_channel();
        let sender = UpdateSender::new(sender);
        let waits = waiter.updates.replace(sender.clone());
        if waits.is_some() {
            // It wants those of its children, of which this turn is one.
            sender.want_children();
        }
        let mut turn = run(waiter);
        poll_fn(|cx| {
            let ended = turn.as_mut().poll(cx);
            while let Poll::Ready(Some(update)) = updates.poll_recv(cx) {
                if update.is_of_others() {
                    sender.has_told_counted();
                }
                if let Some(waits) = &waits {
                    waits.send(update.clone());
                }
                if !matches!(update, TurnUpdate::Child { .. }) {
                    self.tell_update(id, event, update);
                }
            }
            ended
        })
        .await
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
        self.subscribers.lock().retain(|subscriber| {
            subscriber.send(BackgroundUpdate::Ended(Arc::clone(&turn)));
            !subscriber.notices.is_closed()
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
