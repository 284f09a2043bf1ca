//! Owns an instance: one conversation of an agent, its queue, and the way of a turn from the queue to the store.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::OwnedMutexGuard;
use tracing::Instrument;

use super::AgentInner;
use super::attached::{drop_behind_border, go_away};
use super::description::{Description, Generation};
use super::live::Live;
use super::registration::Prepared;
use super::report::Reporter;
use super::services::Services;
use super::stream::{TurnStream, Updates};
use super::turn::TurnRun;
use super::workdir::Workdir;
use crate::context::host::TurnInfo;
use crate::conversation::Message;
use crate::error::{Error, ErrorCode, Result};
use crate::event::AgentEvent;
use crate::name::{ExtensionName, InstanceKey, TraceId, TurnId};
use crate::pipeline::{LayerInfo, MiddlewareKind, TurnResult};
use crate::state::States;
use crate::store::InstanceId;
use crate::tool::ToolCatalog;

/// How long the end of a turn waits for event handlers (D-18).
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// One conversation of an agent. Turns run one at a time, in the order in which they were asked for (F-TURN); other
/// instances do not wait. Clones are the same instance.
///
/// When the last clone is dropped the instance closes in the background, as by [`Instance::close`].
#[derive(Clone)]
pub struct Instance {
    guard: Arc<Guard>,
}

/// Closes the instance when its last handle is dropped.
pub(super) struct Guard {
    inner: Arc<InstanceInner>,
    runtime: tokio::runtime::Handle,
}

pub(super) struct InstanceInner {
    #[expect(dead_code, reason = "held, so that routers find an agent as long as it has a conversation open")]
    agent: Arc<AgentInner>,
    pub(super) services: Arc<Services>,
    /// What the next turn runs with. Exchanged only by whoever is first in the queue.
    generation: Mutex<Arc<Generation>>,
    pub(super) workdir: Workdir,
    /// The queue is the fairness of this lock: whoever asked first gets it first. `None` once the instance is closed.
    live: Arc<tokio::sync::Mutex<Option<Live>>>,
}

/// Who is first in the queue of an instance.
type Turnstile = OwnedMutexGuard<Option<Live>>;

impl Instance {
    pub(super) fn from_guard(guard: Arc<Guard>) -> Self {
        Self { guard }
    }

    /// The key of the conversation.
    pub fn key(&self) -> &InstanceKey {
        &self.guard.inner.services.id.key
    }

    /// The layers of one kind around this conversation, outermost first.
    pub fn layers(&self, kind: MiddlewareKind) -> Vec<LayerInfo> {
        self.guard.inner.generation().registered.layers(kind).to_vec()
    }

    /// All tools of this conversation, as a step shows them to the model unless a middleware changes that (TOOL-02).
    pub fn tools(&self) -> ToolCatalog {
        self.guard.inner.generation().registered.tools.catalog()
    }

    /// The state of each extension as it is now; those that are not configured now, but were, included. Extensions that
    /// never had one are left out.
    pub fn states(&self) -> BTreeMap<ExtensionName, Value> {
        self.guard.inner.services.states.all()
    }

    /// Handles one input event: one turn (F-TURN). Everything that it said is stored when this returns, also when it
    /// failed (D-16).
    ///
    /// Dropping the future cancels the turn; what it had said until then is kept, and closed before the next turn.
    ///
    /// # Errors
    /// The error that failed the turn, with how far the [`turn`](Error::turn) came; `E_STORE_…` when it could not be stored.
    pub async fn run(&self, event: impl Into<AgentEvent>) -> Result<TurnResult> {
        self.guard.inner.run(event.into(), None).await
    }

    /// Handles one input event like [`Instance::run`], and tells what happens meanwhile.
    ///
    /// ```
    /// use goondan_core::{Agent, ScriptItem, ScriptedModel, TurnUpdate};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi")])).build().await?;
    /// let mut turn = agent.instance("user:42").await?.run_stream("hello");
    /// while let Some(update) = turn.next().await {
    ///     if let TurnUpdate::Text(text) = update {
    ///         print!("{text}");
    ///     }
    /// }
    /// let result = turn.finish().await?;
    /// # assert_eq!(result.text(), "hi");
    /// # Ok::<(), goondan_core::Error>(())
    /// # })?;
    /// # Ok::<(), goondan_core::Error>(())
    /// ```
    pub fn run_stream(&self, event: impl Into<AgentEvent>) -> TurnStream {
        let (instance, event) = (self.clone(), event.into());
        TurnStream::new(|updates| Box::pin(async move { instance.guard.inner.run(event, Some(updates)).await }))
    }

    /// Puts an input event into the queue without waiting for its turn. It is handled after what was asked for before it,
    /// and before what is asked for after it. An error goes to the log.
    pub fn send(&self, event: impl Into<AgentEvent>) {
        let (instance, event) = (self.clone(), event.into());
        let mut queue = Box::pin(instance.guard.inner.queue());
        let first = match queue.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turnstile) => Some(turnstile),
            Poll::Pending => None,
        };
        tokio::spawn(async move {
            let turnstile = match first {
                Some(turnstile) => turnstile,
                None => queue.await,
            };
            let inner = &instance.guard.inner;
            if let Err(error) = inner.run_now(turnstile, event, None).await {
                tracing::error!(instance = %inner.services.id, "a sent event failed: {}", error.report());
            }
        });
    }

    /// The messages of the conversation, oldest first; none once it is closed. Waits for turns that run or were asked for
    /// earlier.
    pub async fn messages(&self) -> Vec<Arc<Message>> {
        let live = self.guard.inner.live.lock().await;
        live.as_ref().map(|live| live.conversation.messages().cloned().collect()).unwrap_or_default()
    }

    /// Closes the instance: waits for the turns that were asked for, lets the extensions clean up (LOAD-11), stores what
    /// is left, and gives the conversation free for others to open. Later turns of any clone are refused.
    ///
    /// # Errors
    /// `E_STORE_…` when something could not be stored.
    pub async fn close(&self) -> Result<()> {
        self.guard.inner.close().await
    }

    /// The bus of the conversation, for tests of extensions.
    #[cfg(feature = "testing")]
    pub(crate) fn bus(&self) -> &crate::event::Bus {
        &self.guard.inner.services.bus
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instance({})", self.guard.inner.services.id)
    }
}

impl Guard {
    pub(super) fn new(inner: Arc<InstanceInner>) -> Self {
        Self { inner, runtime: tokio::runtime::Handle::current() }
    }

    pub(super) fn inner(&self) -> &Arc<InstanceInner> {
        &self.inner
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let inner = Arc::clone(&self.inner);
        self.runtime.spawn(async move {
            if let Err(error) = inner.close().await {
                tracing::error!(instance = %inner.services.id, "the instance was not closed well: {}", error.report());
            }
        });
    }
}

impl InstanceInner {
    pub(super) async fn open(agent: Arc<AgentInner>, key: InstanceKey) -> Result<Arc<Self>> {
        let id = InstanceId { agent: agent.name.clone(), key };
        let opened = agent.store.open(&id).await?;
        let states = States::new(opened.state);
        let workdir = Workdir::new(opened.workdir);
        let mut live = Live::new(&id, opened.base, opened.interrupted, opened.journal)?;
        let services = Arc::new(Services::new(id, states, tokio::runtime::Handle::current()));
        live.close_turn(&services.states).await?;
        let description = agent.description();
        let registered = match Prepared::of(&description, &services, &[]).await {
            Ok(prepared) => prepared.take_effect(),
            Err(error) => {
                services.bus.close();
                return Err(error);
            }
        };
        let generation = Mutex::new(Arc::new(Generation { agent: description, registered }));
        let live = Arc::new(tokio::sync::Mutex::new(Some(live)));
        let instance = Arc::new(Self { agent, services, generation, workdir, live });
        instance.services.serve(Arc::downgrade(&instance));
        // D-18: what `#[init]` set is kept from now on.
        instance.store_state().await?;
        Ok(instance)
    }

    pub(super) fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.generation.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn run(&self, event: AgentEvent, updates: Option<Updates>) -> Result<TurnResult> {
        self.run_now(self.queue().await, event, updates).await
    }

    /// Waits in the queue; the place is taken by the first poll.
    fn queue(&self) -> impl Future<Output = Turnstile> + Send + use<> {
        Arc::clone(&self.live).lock_owned()
    }

    async fn run_now(&self, mut live: Turnstile, event: AgentEvent, updates: Option<Updates>) -> Result<TurnResult> {
        let id = &self.services.id;
        let live = live.as_mut().ok_or_else(|| closed(id))?;
        live.close_turn(&self.services.states).await?;
        let turn = Arc::new(self.turn_of(event));
        live.begin(&turn.turn)?;
        let in_turn = InTurn::start(&self.services);
        let reporter = Reporter::new(&self.services.bus, &turn, updates, live.keeps_runtime_events());
        let generation = self.generation();
        let mut run = TurnRun::new(self, &generation, live, &turn, reporter);
        let span = tracing::info_span!("turn", agent = %id.agent, instance = %id.key, turn = %run.info.turn);
        let outcome = run.run().instrument(span).await;
        let (so_far, told) = run.end();
        // D-18: what handlers set in answer to this turn's events belongs to this turn.
        self.services.bus.drain(DRAIN_LIMIT).await;
        live.note(&told);
        // D-11, D-16: a failed turn is folded, and its state stored, like any other.
        let mut stored = live.close_turn(&self.services.states).await;
        drop(in_turn);
        if stored.is_ok() {
            // What was set after the commit, while the turn still seemed to run.
            stored = live.store_state(&self.services.states).await;
        }
        if let (Err(error), Err(_)) = (&outcome, &stored) {
            tracing::error!(turn = %so_far.id, "the turn failed and could not be stored: {}", error.report());
        }
        stored.and(outcome).map_err(|error| error.in_turn(so_far))
    }

    fn turn_of(&self, input: AgentEvent) -> TurnInfo {
        TurnInfo {
            agent: self.services.id.agent.clone(),
            instance: self.services.id.key.clone(),
            turn: TurnId::random(),
            // F-TRACE: taken from the event, else made up once.
            trace: input.trace_id.clone().unwrap_or_else(TraceId::random),
            input,
        }
    }

    /// Stores state that was changed outside of turns.
    pub(super) async fn store_state(&self) -> Result<()> {
        match &mut *self.live.lock().await {
            Some(live) => live.store_state(&self.services.states).await,
            None => Ok(()),
        }
    }

    /// Whether the instance was closed. An instance whose turn runs is not.
    pub(super) fn is_closed(&self) -> bool {
        self.live.try_lock().is_ok_and(|live| live.is_none())
    }

    /// Exchanges what turns run with, between two of them: those that were asked for earlier run before. A caller that
    /// goes away meanwhile does not leave it half done. False when the instance was closed before.
    pub(super) async fn reload(self: &Arc<Self>, to: &Arc<Description>) -> Result<bool> {
        let turnstile = self.queue().await;
        let (this, to) = (Arc::clone(self), Arc::clone(to));
        let reload = tokio::spawn(async move { this.reload_now(turnstile, to).await });
        reload.await.map_err(|error| Error::new(ErrorCode::EXT_PANIC, error.to_string()))?
    }

    async fn reload_now(&self, mut live: Turnstile, to: Arc<Description>) -> Result<bool> {
        let Some(live) = live.as_mut() else { return Ok(false) };
        // From here on `store_when_idle` would wait for the lock that is held here.
        let in_turn = InTurn::start(&self.services);
        let old = self.generation();
        let prepared = Prepared::of(&to, &self.services, &old.registered.extensions).await;
        let outcome = match prepared {
            Ok(prepared) => {
                let new = Arc::new(Generation { agent: to, registered: prepared.take_effect() });
                *self.generation.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
                let stays = |attached: &_| new.registered.extensions.iter().any(|kept| Arc::ptr_eq(kept, attached));
                let gone = old.registered.extensions.iter().filter(|attached| !stays(attached)).map(Arc::clone);
                go_away(&gone.collect::<Vec<_>>(), &self.services).await;
                drop_behind_border(old).await;
                Ok(true)
            }
            Err(error) => Err(error),
        };
        let stored = live.store_state(&self.services.states).await;
        drop(in_turn);
        if let Err(error) = stored {
            // The next turn stores it, or fails for the same reason.
            tracing::error!(instance = %self.services.id, "state was not stored: {}", error.report());
        }
        outcome
    }

    pub(super) async fn close(&self) -> Result<()> {
        let mut place = self.live.lock().await;
        let Some(live) = &mut *place else { return Ok(()) };
        let turn = live.close_turn(&self.services.states).await;
        // From here on `store_when_idle` would wait for the lock that is held here.
        let in_turn = InTurn::start(&self.services);
        go_away(&self.generation().registered.extensions, &self.services).await;
        self.services.bus.close();
        let state = live.store_state(&self.services.states).await;
        drop(in_turn);
        *place = None;
        turn.and(state)
    }
}

fn closed(id: &InstanceId) -> Error {
    Error::new(ErrorCode::INSTANCE_CLOSED, format!("the instance `{id}` is closed"))
        .suggest("open it again by `Agent::instance`")
}

/// While it lives, the end of a turn will store changed state.
struct InTurn<'a>(&'a Services);

impl<'a> InTurn<'a> {
    fn start(services: &'a Services) -> Self {
        services.in_turn.store(true, Ordering::Release);
        Self(services)
    }
}

impl Drop for InTurn<'_> {
    fn drop(&mut self) {
        self.0.in_turn.store(false, Ordering::Release);
    }
}
