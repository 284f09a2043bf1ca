//! Owns the place of an instance among those of its agent: its queue, and whether the conversation behind it is open.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use tracing::Instrument;
use tracing::instrument::WithSubscriber;

use super::AgentInner;
use super::description::Description;
use super::instance::{Guard, Instance};
use super::open::{OpenInstance, Opened};
use super::services::Services;
use crate::error::{Error, ErrorCode, Result};
use crate::store::InstanceId;

/// How long a conversation that was opened for other agents stays open when nothing happens in it, unless its agent says
/// otherwise: long enough that agents who talk to one another do not open it for each word.
const FOR_OTHERS: Duration = Duration::from_secs(300);

/// The place of one instance. It is there as long as somebody holds the instance, or until it was idle.
pub(super) struct Slot {
    pub(super) id: InstanceId,
    agent: Weak<AgentInner>,
    /// The queue is the fairness of this lock: whoever asked first gets it first. `None` while nothing is open.
    place: Arc<tokio::sync::Mutex<Option<Box<Opened>>>>,
    /// What is open, for those who only look. Exchanged only by whoever is first in the queue.
    now: Mutex<Option<Arc<OpenInstance>>>,
    /// The handle that callers share.
    handle: Mutex<Weak<Guard>>,
    /// As the agent says.
    idle_after: Option<Duration>,
    /// Whether other agents use what is open.
    for_others: AtomicBool,
    /// When something last happened, if anybody wants to know.
    used: Mutex<Instant>,
    /// What is not in the queue yet, but will be.
    in_use: AtomicUsize,
    /// Whether somebody will look whether it is idle.
    watched: AtomicBool,
}

/// Who is first in the queue of an instance.
pub(super) type Turnstile = OwnedMutexGuard<Option<Box<Opened>>>;

/// What a look at a conversation says that may be idle.
pub(super) enum Idleness {
    /// Nothing is open, or nobody wants it closed.
    Over(Turnstile),
    /// It is not idle before that.
    Until(Instant),
    /// It is idle, and nobody can come in between.
    Idle(Turnstile),
}

/// While it lives, the instance is not idle.
pub(super) struct InUse(Arc<Slot>);

impl Slot {
    pub(super) fn new(id: InstanceId, agent: &Arc<AgentInner>) -> Self {
        Self {
            id,
            idle_after: agent.idle_after,
            agent: Arc::downgrade(agent),
            place: Arc::default(),
            now: Mutex::default(),
            handle: Mutex::default(),
            for_others: AtomicBool::new(false),
            used: Mutex::new(Instant::now()),
            in_use: AtomicUsize::new(0),
            watched: AtomicBool::new(false),
        }
    }

    /// Waits in the queue; the place is taken by the first poll.
    pub(super) fn queue(&self) -> impl Future<Output = Turnstile> + Send + use<> {
        Arc::clone(&self.place).lock_owned()
    }

    /// What is open now, without waiting for anybody.
    pub(super) fn now(&self) -> Option<Arc<OpenInstance>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_now(&self, open: Option<Arc<OpenInstance>>) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = open;
    }

    /// The handle that callers hold, if one does.
    pub(super) fn held(&self) -> Option<Instance> {
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        handle.upgrade().filter(|guard| !guard.is_closed()).map(Instance::from_guard)
    }

    /// A handle; the one that callers hold already, if one does.
    pub(super) fn hold(self: &Arc<Self>, agent: &Arc<AgentInner>) -> Instance {
        let mut handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = handle.upgrade().filter(|guard| !guard.is_closed()).unwrap_or_else(|| {
            let guard = Arc::new(Guard::new(Arc::clone(agent), Arc::clone(self)));
            *handle = Arc::downgrade(&guard);
            guard
        });
        Instance::from_guard(guard)
    }

    pub(super) fn in_use(self: &Arc<Self>) -> InUse {
        self.in_use.fetch_add(1, Ordering::AcqRel);
        InUse(Arc::clone(self))
    }

    /// Opens the conversation, unless it is open. A caller that goes away meanwhile leaves it open, not half open; when
    /// nobody else holds it, it is closed then.
    pub(super) async fn open(self: &Arc<Self>, agent: &Arc<AgentInner>, mut place: Turnstile) -> Result<Turnstile> {
        if place.is_some() {
            return Ok(place);
        }
        let (slot, agent, held) = (Arc::clone(self), Arc::clone(agent), self.hold(agent));
        to_its_end(async move {
            let _held = held;
            let opened = Opened::open(Arc::clone(&agent), &slot).await?;
            slot.set_now(Some(Arc::clone(&opened.instance)));
            *place = Some(Box::new(opened));
            slot.touch(&agent);
            Ok(place)
        })
        .await
    }

    /// Closes what is open. It is done whether the caller waits for it or goes away.
    pub(super) async fn close(&self, mut place: Turnstile) -> Result<()> {
        let Some(opened) = place.take() else { return Ok(()) };
        self.set_now(None);
        self.for_others.store(false, Ordering::Release);
        to_its_end(async move {
            let closed = opened.close().await;
            drop(place);
            closed
        })
        .await
    }

    /// Closes what is open, as when the last handle is gone.
    pub(super) async fn close_unless_held(&self) -> Result<()> {
        let place = self.queue().await;
        if self.held().is_some() { Ok(()) } else { self.close(place).await }
    }

    /// Exchanges what turns run with, between two of them: those that were asked for earlier run before. A caller that
    /// goes away meanwhile does not leave it half done. False when nothing is open.
    pub(super) async fn reload(&self, to: &Arc<Description>) -> Result<bool> {
        let (mut place, to) = (self.queue().await, Arc::clone(to));
        to_its_end(async move {
            match &mut *place {
                Some(opened) => opened.reload(to).await.map(|()| true),
                None => Ok(false),
            }
        })
        .await
    }

    /// Stores the state that was changed outside of turns, of the opening that `services` belong to.
    pub(super) async fn store_state(&self, services: &Arc<Services>) -> Result<()> {
        match &mut *self.place.lock().await {
            Some(opened) if Arc::ptr_eq(&opened.instance.services, services) => {
                opened.live.store_state(&services.states).await
            }
            _ => Ok(()),
        }
    }

    /// Whether other agents use what is open.
    pub(super) fn is_for_others(&self) -> bool {
        self.for_others.load(Ordering::Acquire)
    }

    /// Notes that other agents use what is open: it stays open for a while when nobody holds it.
    pub(super) fn use_for_others(self: &Arc<Self>, agent: &Arc<AgentInner>) {
        self.for_others.store(true, Ordering::Release);
        self.touch(agent);
    }

    /// How long it may be idle before it is closed; without an answer it is closed when nobody holds it any more.
    pub(super) fn idle_after(&self) -> Option<Duration> {
        self.idle_after.or_else(|| self.is_for_others().then_some(FOR_OTHERS))
    }

    /// Notes that something happens, if it is of interest.
    pub(super) fn touch(self: &Arc<Self>, agent: &AgentInner) {
        if self.idle_after().is_none() {
            return;
        }
        self.set_used(Instant::now());
        if !self.watched.swap(true, Ordering::AcqRel) {
            agent.idle.watch(Arc::clone(self));
        }
    }

    fn set_used(&self, now: Instant) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Nobody will look any more whether it is idle.
    pub(super) fn unwatch(&self) {
        self.watched.store(false, Ordering::Release);
    }

    /// Whether it is idle. Never waits.
    pub(super) fn idleness(&self) -> Idleness {
        let (limit, now) = (self.idle_after(), Instant::now());
        match Arc::clone(&self.place).try_lock_owned() {
            Ok(place) if place.is_none() || limit.is_none() => Idleness::Over(place),
            Ok(place) if !self.is_busy(&place) => {
                let until = self.used() + limit.unwrap_or(FOR_OTHERS);
                if until <= now { Idleness::Idle(place) } else { Idleness::Until(until) }
            }
            _ => {
                self.set_used(now);
                Idleness::Until(now + limit.unwrap_or(FOR_OTHERS))
            }
        }
    }

    /// Closes what is idle. What cannot be stored stays open, so that nothing is lost.
    pub(super) async fn close_idle(self: Arc<Self>, mut place: Turnstile) {
        let Some(opened) = &mut *place else { return };
        let outcome = match opened.settle().await {
            Ok(()) => self.close(place).await,
            Err(error) => {
                self.touch(&opened.instance.agent);
                Err(error)
            }
        };
        if let Err(error) = outcome {
            tracing::error!(instance = %self.id, "an idle conversation was not closed well: {}", error.report());
        }
    }

    fn used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something is under way that does not stand in the queue; or somebody here holds what only others let be
    /// closed.
    fn is_busy(&self, place: &Turnstile) -> bool {
        let held = self.idle_after.is_none() && self.held().is_some();
        held || self.in_use.load(Ordering::Acquire) > 0 || place.as_ref().is_some_and(|opened| opened.is_busy())
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.in_use.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(agent) = self.agent.upgrade() {
            agent.forget(&self.id.key);
        }
    }
}

/// Does `work` to its end, also when the caller goes away meanwhile.
async fn to_its_end<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let work = tokio::spawn(work.in_current_span().with_current_subscriber());
    work.await.map_err(|error| Error::new(ErrorCode::EXT_PANIC, error.to_string()))?
}
