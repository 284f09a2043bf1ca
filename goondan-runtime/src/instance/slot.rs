//! The slot of an instance in its agent: the queue of its turns, and whether its conversation is open.
//!
//! A slot has two locks. The *conversation lock* is a fair async mutex around the open conversation, if any: it is the
//! queue of the instance, held by one turn, reload, opening or closing at a time. The *status* is a short lock around
//! everything that others need to know without waiting in that queue; only the holder of the conversation lock opens or
//! closes the conversation in it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use goondan_core::host::panic::message;
use goondan_core::{BoxFuture, Error, ErrorCode, EventId, Result, Timestamp, TurnInfo};
use goondan_lock::Lock;
use tokio::runtime::Handle;
use tokio::sync::futures::Notified;
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{Notify, OwnedMappedMutexGuard, OwnedMutexGuard};
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument;
use tracing::instrument::WithSubscriber;

use super::conversation::{OpenConversation, View};
use super::shared::AgentInner;
use super::{HandleInner, Instance};
use crate::attach::{InstanceUpcalls, reload_failed};
use crate::ports::store::InstanceId;
use crate::spec::AgentSpec;
use crate::turn::Steering;

/// The time that a conversation that was opened for other agents stays open while nothing happens in it, unless its
/// agent sets a time: long enough that agents that exchange messages do not open it for each one.
const IDLE_FOR_OTHERS: Duration = Duration::from_secs(300);

/// The slot of one instance. It exists while a handle, an open conversation or the idle task refers to it.
pub(crate) struct InstanceSlot {
    pub(crate) id: InstanceId,
    agent: Weak<AgentInner>,
    idle_after: Option<Duration>,
    conversation: Arc<tokio::sync::Mutex<Option<Box<OpenConversation>>>>,
    /// Tells the turn that runs that it is cancelled.
    cancelled: Notify,
    /// The inputs that the turn that runs may take.
    pub(super) steering: Steering,
    status: Lock<SlotStatus>,
}

/// The conversation lock, over a conversation that may be closed.
pub(crate) type ConversationLock = OwnedMutexGuard<Option<Box<OpenConversation>>>;

/// The conversation lock, over an open conversation.
pub(super) type OpenLock = OwnedMappedMutexGuard<Option<Box<OpenConversation>>, OpenConversation>;

struct SlotStatus {
    phase: Phase,
    /// The handle that callers share.
    handle: Weak<HandleInner>,
    /// Whether the conversation was opened for other agents since it was last closed.
    for_others: bool,
    /// When something last happened. Kept only for conversations that close when they are idle.
    last_used: Instant,
    /// The event that is answered now.
    running: Option<EventId>,
    /// The number of promised turns that are not in the queue yet.
    promised: usize,
    /// Whether the idle task has the slot.
    watched: bool,
}

/// A conversation that is closed or open, with the task that stores changed state.
enum Phase {
    /// Nothing is open, or the lock holder is opening or closing the conversation, and stores its state.
    Closed,
    Open {
        /// For readers that do not wait in the queue.
        view: View,
        saving: Saving,
        runtime: Handle,
    },
}

/// The writer of state that changes while a conversation is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Saving {
    /// A change spawns a task.
    Idle,
    /// A task was spawned and has not started.
    Scheduled,
    /// The turn or reload that runs does it when it ends.
    AtTurnEnd,
}

/// The first of two things that a reload waits for.
enum Either {
    Lock(ConversationLock),
    /// Of the turn that has taken the reload.
    Outcome(Result<Result<()>, RecvError>),
}

/// The idleness of a conversation.
pub(super) enum Idleness {
    /// Nothing is open, or it closes in another way.
    Over(ConversationLock),
    /// It is not idle before this moment.
    Until(Instant),
    /// It is idle, and the lock keeps it so.
    Idle(ConversationLock),
}

impl InstanceSlot {
    pub(super) fn new(id: InstanceId, agent: &Arc<AgentInner>) -> Self {
        Self {
            id,
            agent: Arc::downgrade(agent),
            idle_after: agent.idle_after,
            conversation: Arc::default(),
            cancelled: Notify::new(),
            steering: Steering::default(),
            status: Lock::new(SlotStatus {
                phase: Phase::Closed,
                handle: Weak::new(),
                for_others: false,
                last_used: Instant::now(),
                running: None,
                promised: 0,
                watched: false,
            }),
        }
    }

    /// Waits for the conversation lock. The first poll takes a position in the queue.
    pub(crate) fn lock(&self) -> impl Future<Output = ConversationLock> + Send + use<> {
        Arc::clone(&self.conversation).lock_owned()
    }

    /// Returns the conversation if it is open, without waiting.
    pub(super) fn view(&self) -> Option<View> {
        match &self.status.lock().phase {
            Phase::Open { view, .. } => Some(view.clone()),
            Phase::Closed => None,
        }
    }

    /// Whether the conversation is open.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.status.lock().phase, Phase::Open { .. })
    }

    /// Whether the conversation is open and runs with another spec than `spec`.
    pub(crate) fn runs_other_than(&self, spec: &Arc<AgentSpec>) -> bool {
        self.view().is_some_and(|view| !Arc::ptr_eq(&view.newest.get().spec, spec))
    }

    /// Returns the handle that callers share, if there is one.
    pub(crate) fn handle(&self) -> Option<Instance> {
        self.status.lock().handle()
    }

    /// Returns the handle that callers share, or a new one.
    pub(crate) fn make_handle(self: &Arc<Self>, agent: &Arc<AgentInner>) -> Instance {
        let mut status = self.status.lock();
        status.handle().unwrap_or_else(|| {
            let handle = Instance::new(Arc::clone(agent), Arc::clone(self));
            status.handle = handle.downgrade();
            handle
        })
    }

    /// Opens the conversation unless it is open. `keep_alive` is a handle, held until the opening is over: a caller
    /// that is dropped meanwhile leaves an open conversation, which then closes if there is no other handle.
    pub(super) async fn open(
        self: &Arc<Self>,
        agent: &Arc<AgentInner>,
        keep_alive: Instance,
        mut lock: ConversationLock,
    ) -> Result<OpenLock> {
        if lock.as_ref().is_some_and(|open| open.is_lost()) {
            lock = self.close_lost(lock).await?;
        }
        if lock.is_none() {
            lock = self.open_new(agent, keep_alive, lock).await?;
        }
        OwnedMutexGuard::try_map(lock, |open| open.as_deref_mut()).map_err(|_| self.closed_error())
    }

    /// Opens the conversation.
    // In a box, as other functions here that are large: see `running`.
    fn open_new(
        self: &Arc<Self>,
        agent: &Arc<AgentInner>,
        keep_alive: Instance,
        mut lock: ConversationLock,
    ) -> BoxFuture<'static, Result<ConversationLock>> {
        let (slot, agent) = (Arc::clone(self), Arc::clone(agent));
        run_to_end(async move {
            let opened = OpenConversation::open(Arc::clone(&agent), &slot, &keep_alive.inner.listeners).await?;
            let (view, runtime) = (opened.view(), Handle::current());
            let services = Arc::clone(&view.services);
            slot.status.lock().phase = Phase::Open { view, saving: Saving::Idle, runtime };
            *lock = Some(Box::new(opened));
            if services.states.have_changed() {
                // Set by a task of an extension after the opening stored the state.
                Arc::clone(&slot).store_later();
            }
            slot.touch(&agent);
            if let Some(expires) = lock.as_mut().and_then(|open| open.start_timer()) {
                slot.expire_at(expires);
            }
            Ok(lock)
        })
    }

    /// Closes the conversation if it is open. The closing runs to its end even if the caller is dropped.
    pub(crate) async fn close(&self, mut lock: ConversationLock) -> Result<()> {
        let Some(open) = self.take_open(&mut lock) else { return Ok(()) };
        self.status.lock().for_others = false;
        close(open, lock).await
    }

    /// Closes a conversation whose instance another process has taken over, so that it is opened again.
    fn close_lost(&self, mut lock: ConversationLock) -> BoxFuture<'static, Result<ConversationLock>> {
        let (id, open) = (self.id.clone(), self.take_open(&mut lock));
        run_to_end(async move {
            if let Some(open) = open
                && let Err(error) = open.close().await
            {
                tracing::warn!(instance = %id, "a lost conversation was not closed well: {}", error.report());
            }
            Ok(lock)
        })
    }

    /// Takes the conversation out of its lock, to close it.
    fn take_open(&self, lock: &mut ConversationLock) -> Option<Box<OpenConversation>> {
        let open = lock.take()?;
        // `open` holds the values of the phase, so that no extension is dropped under this lock.
        self.status.lock().phase = Phase::Closed;
        Some(open)
    }

    /// Closes the conversation after its last handle was dropped.
    pub(super) async fn close_unless_held(&self) -> Result<()> {
        let lock = self.lock().await;
        if self.handle().is_some() { Ok(()) } else { self.close(lock).await }
    }

    /// Replaces the generation that turns run with, after the turns that were queued earlier. It runs to its end even
    /// if the caller is dropped. Returns whether the conversation is open.
    pub(crate) async fn reload(self: &Arc<Self>, spec: &Arc<AgentSpec>) -> Result<bool> {
        self.reload_locked(self.lock().await, spec).await
    }

    /// As [`InstanceSlot::reload`], or between two steps of the turn that runs, if the extensions whose layers are
    /// around it stay.
    pub(crate) async fn reload_at_step(self: &Arc<Self>, spec: &Arc<AgentSpec>) -> Result<bool> {
        let Some(View { services, newest }) = self.view() else { return self.reload(spec).await };
        let (waits, mut outcome) = services.waiting_reload.enter(spec);
        services.waiting_reload.answer_requests(newest.get().effect_of(spec));
        drop(newest);
        let mut lock = pin!(self.lock());
        let ended = poll_fn(|context| match Pin::new(&mut outcome).poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Either::Outcome(outcome)),
            Poll::Pending => lock.as_mut().poll(context).map(Either::Lock),
        });
        let outcome = match ended.await {
            Either::Lock(lock) if waits.end() => return self.reload_locked(lock, spec).await,
            // The turn that took the reload was dropped meanwhile.
            Either::Lock(_) => outcome.await,
            Either::Outcome(outcome) => outcome,
        };
        outcome.map_err(reload_failed)?.map(|()| true)
    }

    async fn reload_locked(self: &Arc<Self>, mut lock: ConversationLock, spec: &Arc<AgentSpec>) -> Result<bool> {
        let (slot, spec) = (Arc::clone(self), Arc::clone(spec));
        run_to_end(async move {
            match &mut *lock {
                Some(open) => open.reload(&slot, spec).await.map(|()| true),
                None => Ok(false),
            }
        })
        .await
    }

    /// Marks that a turn or reload runs, which stores changed state when it ends.
    pub(super) fn enter_turn(&self) -> InTurn<'_> {
        self.set_saving(Saving::AtTurnEnd);
        InTurn(self)
    }

    /// Marks that the event of a turn is answered now, until the guard is dropped: [`InstanceSlot::cancel`] ends it.
    pub(super) fn run_event(&self, turn: &TurnInfo) -> RunsEvent<'_> {
        self.status.lock().running = Some(turn.input.id.clone());
        RunsEvent(self)
    }

    /// Returns the event that is answered now.
    pub(super) fn running(&self) -> Option<EventId> {
        self.status.lock().running.clone()
    }

    /// Waits until the turn that runs is cancelled.
    pub(super) fn cancelled(&self) -> Notified<'_> {
        self.cancelled.notified()
    }

    /// Cancels the turn that is open and does not run. Returns whether there is one.
    pub(super) async fn cancel_open(self: &Arc<Self>) -> Result<bool> {
        let mut lock = self.lock().await;
        let (Some(open), Some(agent)) = (lock.as_deref_mut(), self.agent.upgrade()) else { return Ok(false) };
        let Some(event) = open.interrupted() else { return Ok(false) };
        let cancelled = open.cancel(&event.id).await;
        self.turn_is_over(&agent, open);
        cancelled
    }

    /// Takes in that a turn of the open conversation is over.
    pub(super) fn turn_is_over(self: &Arc<Self>, agent: &AgentInner, open: &mut OpenConversation) {
        self.touch(agent);
        if open.has_been_decided() {
            agent.decided.notify_waiters();
        }
        if let Some(expires) = open.start_timer() {
            self.expire_at(expires);
        }
    }

    /// Rejects the calls that wait when their time is over, and goes on with the turn. The conversation does not stay
    /// open for that: a question that expires while it is closed is rejected when it is opened.
    // ASK-01
    fn expire_at(self: &Arc<Self>, expires: Timestamp) {
        let slot = Arc::downgrade(self);
        // By a clock that does not go back.
        let due = Instant::now().checked_add(expires.until());
        tokio::spawn(async move {
            match due {
                Some(due) => sleep_until(due).await,
                None => return,
            }
            let Some(slot) = slot.upgrade() else { return };
            let mut lock = slot.lock().await;
            let (Some(open), Some(agent)) = (lock.as_deref_mut(), slot.agent.upgrade()) else { return };
            let expired = open.expire(&slot, expires.max(Timestamp::now())).await;
            slot.turn_is_over(&agent, open);
            let outcome = match expired {
                Ok(Some((event, outcome))) => agent.background.tell(&slot.id, event, outcome).map(drop),
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                tracing::error!(instance = %slot.id, "a turn whose calls were not decided in time: {}", error.report());
            }
        });
    }

    /// Cancels the turn that answers `event`: the one that runs, or one that was interrupted. Returns whether there was
    /// one.
    pub(super) fn cancel<'a>(self: &'a Arc<Self>, event: &'a EventId) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            if let Some(runs) = self.cancel_running(event) {
                // Otherwise the turn that runs has closed the one that was interrupted.
                return Ok(runs);
            }
            let mut lock = self.lock().await;
            let (Some(open), Some(agent)) = (lock.as_deref_mut(), self.agent.upgrade()) else { return Ok(false) };
            let cancelled = open.cancel(event).await;
            self.turn_is_over(&agent, open);
            cancelled
        })
    }

    /// Cancels the turn that runs.
    pub(super) fn cancel_turn(&self) {
        self.cancelled.notify_waiters();
    }

    /// Cancels the turn that runs, if it answers `event`. Returns whether it does; `None` if no turn runs.
    pub(super) fn cancel_running(&self, event: &EventId) -> Option<bool> {
        let runs = self.status.lock().running.as_ref().map(|running| running == event);
        if runs == Some(true) {
            self.cancel_turn();
        }
        runs
    }

    fn set_saving(&self, new: Saving) {
        if let Phase::Open { saving, .. } = &mut self.status.lock().phase {
            *saving = new;
        }
    }

    /// Marks that a turn is promised, until the guard is dropped: the conversation is not idle.
    pub(super) fn promise_turn(self: &Arc<Self>) -> Promised {
        self.status.lock().promised += 1;
        Promised(Arc::clone(self))
    }

    /// Whether the conversation was opened for other agents.
    pub(crate) fn is_for_others(&self) -> bool {
        self.status.lock().for_others
    }

    /// Marks that other agents use the conversation: it stays open for a while without a handle.
    pub(crate) fn use_for_others(self: &Arc<Self>, agent: &Arc<AgentInner>) {
        self.status.lock().for_others = true;
        self.touch(agent);
    }

    /// Returns the time that the conversation may be idle before it closes. `None` means that it closes with its last
    /// handle.
    pub(crate) fn idle_after(&self) -> Option<Duration> {
        self.idle_after.or_else(|| self.is_for_others().then_some(IDLE_FOR_OTHERS))
    }

    /// Records that something happens, and adds the slot to the schedule of the idle task.
    pub(super) fn touch(self: &Arc<Self>, agent: &AgentInner) {
        let mut status = self.status.lock();
        if self.idle_after.is_none() && !status.for_others {
            return;
        }
        status.last_used = Instant::now();
        if !std::mem::replace(&mut status.watched, true) {
            drop(status);
            agent.idle.watch(Arc::clone(self));
        }
    }

    /// Records that the slot is not in the schedule of the idle task any more.
    pub(super) fn unwatch(&self) {
        self.status.lock().watched = false;
    }

    /// Returns the idleness of the conversation. Never waits.
    pub(super) fn idleness(&self) -> Idleness {
        let (limit, now) = (self.idle_after(), Instant::now());
        match Arc::clone(&self.conversation).try_lock_owned() {
            Ok(lock) if lock.is_none() || limit.is_none() => Idleness::Over(lock),
            Ok(lock) if !self.is_busy() => {
                let until = self.status.lock().last_used + limit.unwrap_or(IDLE_FOR_OTHERS);
                if until <= now { Idleness::Idle(lock) } else { Idleness::Until(until) }
            }
            _ => {
                self.status.lock().last_used = now;
                Idleness::Until(now + limit.unwrap_or(IDLE_FOR_OTHERS))
            }
        }
    }

    /// Whether something is under way that does not hold the conversation lock, or a handle keeps a conversation open
    /// that would close only because it was opened for other agents.
    fn is_busy(&self) -> bool {
        let status = self.status.lock();
        let Phase::Open { view, saving, .. } = &status.phase else { return false };
        let (services, busy) = (Arc::clone(&view.services), status.promised > 0 || *saving == Saving::Scheduled);
        drop(status);
        let held = self.idle_after.is_none() && self.handle().is_some();
        busy || held || services.are_busy()
    }

    /// Closes an idle conversation. One that cannot be stored stays open, so that nothing is lost.
    pub(super) async fn close_idle(self: Arc<Self>, mut lock: ConversationLock) {
        let Some(open) = &mut *lock else { return };
        let outcome = match open.store().await {
            Ok(()) => self.close(lock).await,
            Err(error) => {
                if let Some(agent) = self.agent.upgrade() {
                    self.touch(&agent);
                }
                Err(error)
            }
        };
        if let Err(error) = outcome {
            tracing::error!(instance = %self.id, "an idle conversation was not closed well: {}", error.report());
        }
    }

    pub(super) fn closed_error(&self) -> Error {
        Error::new(ErrorCode::INSTANCE_CLOSED, format!("the instance `{}` is closed", self.id))
            .suggest("open it again by `Agent::instance`")
    }
}

impl SlotStatus {
    /// Dropping the last handle takes the status lock: the caller drops the returned value outside of it.
    fn handle(&self) -> Option<Instance> {
        Instance::upgrade(&self.handle)
    }
}

impl InstanceUpcalls for InstanceSlot {
    // D-18
    fn store_later(self: Arc<Self>) {
        let runtime = match &mut self.status.lock().phase {
            Phase::Open { saving, runtime, .. } if *saving == Saving::Idle => {
                *saving = Saving::Scheduled;
                runtime.clone()
            }
            _ => return,
        };
        runtime.spawn(async move {
            if let Phase::Open { saving: saving @ Saving::Scheduled, .. } = &mut self.status.lock().phase {
                *saving = Saving::Idle;
            }
            if let Some(open) = &mut *self.conversation.lock().await
                && let Err(error) = open.store().await
            {
                tracing::error!(instance = %self.id, "state was not stored: {}", error.report());
            }
        });
    }
}

impl Drop for InstanceSlot {
    fn drop(&mut self) {
        if let Some(agent) = self.agent.upgrade() {
            agent.forget(&self.id.key);
        }
    }
}

/// While it lives, the end of a turn or reload stores changed state.
pub(super) struct InTurn<'a>(&'a InstanceSlot);

impl Drop for InTurn<'_> {
    fn drop(&mut self) {
        self.0.set_saving(Saving::Idle);
    }
}

/// While it lives, the event of a turn is answered.
pub(super) struct RunsEvent<'a>(&'a InstanceSlot);

impl Drop for RunsEvent<'_> {
    fn drop(&mut self) {
        self.0.status.lock().running = None;
    }
}

/// While it lives, the conversation is not idle.
pub(super) struct Promised(Arc<InstanceSlot>);

impl Drop for Promised {
    fn drop(&mut self) {
        self.0.status.lock().promised -= 1;
    }
}

/// Closes a conversation, and then drops its lock.
fn close(open: Box<OpenConversation>, lock: ConversationLock) -> BoxFuture<'static, Result<()>> {
    run_to_end(async move {
        let closed = open.close().await;
        drop(lock);
        closed
    })
}

/// Runs `work` in a task, so that it ends even if the caller is dropped.
fn run_to_end<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> BoxFuture<'static, Result<T>> {
    // A task copies its future several times, and this one is large.
    let work = Box::pin(work.in_current_span().with_current_subscriber());
    Box::pin(async { tokio::spawn(work).await.unwrap_or_else(|error| Err(task_failed(error))) })
}

/// Returns the error for a task that panicked, or that was cancelled because its runtime shuts down.
pub(crate) fn task_failed(error: JoinError) -> Error {
    match error.try_into_panic() {
        Ok(payload) => Error::panicked(&message(payload)),
        Err(cancelled) => Error::new(ErrorCode::EXT_PANIC, cancelled.to_string()),
    }
}
