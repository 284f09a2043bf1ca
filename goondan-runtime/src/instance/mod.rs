//! The handle of an instance: one conversation for callers, whether it is open or not.

mod background;
mod conversation;
mod deciding;
mod delegate;
mod events;
mod idle;
mod running;
mod shared;
mod slot;
mod waiting;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use goondan_core::{
    AgentEvent, AnswerFormat, BoxFuture, EventId, ExtensionName, InstanceKey, LayerInfo, Message, MiddlewareKind,
    ModelInfo, Result, ToolCatalog, TurnId, TurnResult,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bus::Listeners;
use crate::live::{Asker, Spent};
use crate::ports::store::EventDigest;
use crate::turn::{Back, Rewound, TurnStream};
use crate::updates::UpdateSender;
pub use background::{BackgroundTurn, BackgroundTurnUpdate, BackgroundTurns, BackgroundUpdate};
use conversation::View;
pub use events::InstanceEvents;
use running::checked;
pub(super) use shared::AgentInner;
use slot::{ConversationLock, OpenLock};
pub(super) use slot::{InstanceSlot, task_failed};

/// A handle to one conversation of an agent, returned by [`Agent::instance`](crate::Agent::instance). Clones are the
/// same instance.
///
/// Turns run one at a time, in the order in which they were queued; those of other instances run concurrently.
///
/// By default, the conversation closes in the background when the last clone is dropped, as [`Instance::close`] does.
/// An agent with [`idle_after`](crate::AgentBuilder::idle_after) closes it when it is idle instead, and opens it again
/// when a handle is used: history and state are read from the store, and extensions are made again.
///
/// ```
/// use goondan::Agent;
/// use goondan::model::{ScriptItem, ScriptedModel};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let model = ScriptedModel::new([ScriptItem::say("hi"), ScriptItem::say("still here")]);
/// let agent = Agent::builder("assistant").model(model).build()?;
/// let instance = agent.instance("user:42").await?;
/// instance.run("hello").await?;
/// assert_eq!(instance.run("are you there?").await?.text(), "still here");
/// assert_eq!(instance.messages().await?.len(), 4);
/// instance.close().await?;
/// # Ok::<(), goondan::Error>(())
/// # })?;
/// # Ok::<(), goondan::Error>(())
/// ```
// F-TURN
#[derive(Clone)]
pub struct Instance {
    inner: Arc<HandleInner>,
}

/// The state that the clones of a handle share. Dropping it closes the conversation, unless that closes when it is
/// idle.
pub(super) struct HandleInner {
    agent: Arc<AgentInner>,
    slot: Arc<InstanceSlot>,
    /// Set by [`Instance::close`], and never reset.
    closed: AtomicBool,
    /// The program's subscriptions.
    listeners: Arc<Listeners>,
    runtime: tokio::runtime::Handle,
}

/// The one that waits for the result of a turn: a stream, or the turn of another agent.
#[derive(Default)]
pub(super) struct Waiter {
    updates: Option<UpdateSender>,
    /// The place where the usage of the turn is added.
    spent: Option<Arc<Spent>>,
}

impl Waiter {
    fn of(updates: UpdateSender) -> Self {
        Self { updates: Some(updates), spent: None }
    }

    fn of_asker(asker: &Asker) -> Self {
        Self { updates: asker.updates.clone(), spent: asker.spent.clone() }
    }
}

impl Instance {
    fn new(agent: Arc<AgentInner>, slot: Arc<InstanceSlot>) -> Self {
        let runtime = tokio::runtime::Handle::current();
        let (closed, listeners) = (AtomicBool::new(false), Arc::default());
        Self { inner: Arc::new(HandleInner { agent, slot, closed, listeners, runtime }) }
    }

    fn downgrade(&self) -> Weak<HandleInner> {
        Arc::downgrade(&self.inner)
    }

    /// Returns the handle, unless it was dropped or closed.
    fn upgrade(inner: &Weak<HandleInner>) -> Option<Self> {
        inner.upgrade().filter(|inner| !inner.is_closed()).map(|inner| Self { inner })
    }

    /// Returns the key of the conversation.
    pub fn key(&self) -> &InstanceKey {
        &self.inner.slot.id.key
    }

    /// Returns the layers of one kind in this conversation, outermost first.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    pub async fn layers(&self, kind: MiddlewareKind) -> Result<Vec<LayerInfo>> {
        Ok(self.view().await?.newest.get().registered.layers(kind))
    }

    /// Returns all tools of this conversation: the catalog that a step starts with.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    // TOOL-02
    pub async fn tools(&self) -> Result<ToolCatalog> {
        Ok(self.view().await?.newest.get().registered.tools().catalog())
    }

    /// Returns facts about the model of the agent, such as its context window and its prices.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    pub async fn model_info(&self) -> Result<ModelInfo> {
        Ok(self.view().await?.newest.get().spec.model.info())
    }

    /// Returns the current state of each extension that has one, including extensions that the agent no longer has.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    pub async fn states(&self) -> Result<BTreeMap<ExtensionName, Value>> {
        Ok(self.view().await?.services.states.all())
    }

    /// Handles one input event in one turn. The turn is committed when this returns, even if it failed.
    ///
    /// An event is answered once. If an earlier turn has answered an event with this id, its result is returned
    /// ([`TurnResult::is_stored`]), or the error that it ended with, and nothing runs. If its turn was interrupted, by
    /// the end of the process or because the future was dropped, that turn goes on: the model is not asked again for an
    /// answer that is recorded, and a tool call that must not run twice does not. A text makes an event with an id of
    /// its own; [`AgentEvent::with_id`](goondan_core::AgentEvent::with_id) sets another.
    ///
    /// Dropping the future leaves the turn open. It goes on when the event is run again, and is closed without an
    /// answer before the next turn of another event, or by [`Instance::abandon`]. [`Instance::cancel`] ends it at once.
    ///
    /// # Errors
    /// `E_INPUT` when the text of the event is blank, `E_INPUT_FILE` when a file in it cannot be used or is of a type
    /// that the model does not take, `E_VALUE_DEPTH` when a value in it is nested too deeply: no turn runs. The error
    /// that failed the turn; its [`turn`](goondan_core::Error::turn) is how far the turn came. `E_TURN_CANCELLED`;
    /// `E_EVENT_REUSED` when an earlier event has its id and another input; `E_TURN_INTERRUPTED` when its turn was
    /// closed; `E_STORE_UNAVAILABLE` when the store cannot be reached now: the turn stays open, and goes on when the
    /// event is run again. `E_STORE_…` when the turn could not be stored. The errors of
    /// [`Agent::instance`](crate::Agent::instance) when the conversation was idle and cannot be opened; the next input
    /// tries again.
    // F-TURN, D-16, ONCE-01, RESUME-01
    pub async fn run(&self, event: impl Into<AgentEvent>) -> Result<TurnResult> {
        // Without a box, unlike the functions of `running`: allocating one of this size costs a turn 7 per cent.
        // Before it waits in the queue: a refused event is not dropped with this future.
        let event = checked(event.into())?;
        self.run_locked(self.inner.slot.lock().await, event, Waiter::default()).await
    }

    /// Handles one input event like [`Instance::run`], and returns its answer as a value of the type `T`.
    ///
    /// ```
    /// use goondan::Agent;
    /// use goondan::model::{ScriptItem, ScriptedModel};
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Debug, Deserialize, JsonSchema)]
    /// struct Weather {
    ///     city: String,
    ///     degrees: f64,
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// # let script = [ScriptItem::say("It is warm."), ScriptItem::say(r#"{ "city": "Lisbon", "degrees": 21.0 }"#)];
    /// # let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).build()?;
    /// let instance = agent.instance("user:42").await?;
    /// let weather: Weather = instance.run_as("How is the weather in Lisbon?").await?;
    /// assert_eq!(weather.city, "Lisbon");
    /// # Ok::<(), goondan::Error>(())
    /// # })?;
    /// # Ok::<(), goondan::Error>(())
    /// ```
    ///
    /// The schema comes from the type, and the model is asked again, twice at most, with the fault of its answer:
    /// [`AnswerFormat`] sets another number. Its earlier answers are neither in the conversation nor in the stream.
    /// Tools can be called meanwhile.
    ///
    /// # Errors
    /// As [`Instance::run`], and `E_ANSWER_SCHEMA` when the model gives no such value, with the last attempt in its
    /// details.
    // VALUE-01
    pub async fn run_as<T: DeserializeOwned + JsonSchema>(&self, event: impl Into<AgentEvent>) -> Result<T> {
        let mut event = event.into();
        event.answer.get_or_insert_with(|| Box::new(AnswerFormat::of::<T>()));
        self.run(event).await?.value()
    }

    /// Handles one input event like [`Instance::run`], and streams its updates.
    ///
    /// ```
    /// use goondan::Agent;
    /// use goondan::agent::TurnUpdate;
    /// use goondan::model::{ScriptItem, ScriptedModel};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi")])).build()?;
    /// let mut turn = agent.instance("user:42").await?.run_stream("hello");
    /// while let Some(update) = turn.next().await {
    ///     if let TurnUpdate::Text { text, .. } = update {
    ///         print!("{text}");
    ///     }
    /// }
    /// let result = turn.finish().await?;
    /// # assert_eq!(result.text(), "hi");
    /// # Ok::<(), goondan::Error>(())
    /// # })?;
    /// # Ok::<(), goondan::Error>(())
    /// ```
    pub fn run_stream(&self, event: impl Into<AgentEvent>) -> TurnStream {
        self.stream(event.into(), None)
    }

    /// Handles one input event like [`Instance::run`], or in the turn that runs: its input joins that turn at the next
    /// step, when every tool call has its result. The next request to the model has it as a message of the user, and
    /// the layers of that step are told by [`StepContext::joined_inputs`](goondan_core::StepContext::joined_inputs).
    ///
    /// The turn answers both events, and each of them once: the result for one that has joined is the result of the
    /// turn, as [stored](TurnResult::is_stored). If no turn runs, or the one that runs has no further step, the event
    /// has the next turn. It waits from this call on, until the future is dropped or a step takes it.
    ///
    /// ```
    /// use goondan::Agent;
    /// use goondan::model::{ScriptItem, ScriptedModel};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi")])).build()?;
    /// let result = agent.instance("user:42").await?.steer("hello").await?;
    /// assert_eq!(result.text(), "hi", "no turn ran");
    /// # Ok::<(), goondan::Error>(())
    /// # })?;
    /// # Ok::<(), goondan::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Instance::run`].
    // STEER-01, D-46
    pub fn steer(&self, event: impl Into<AgentEvent>) -> BoxFuture<'static, Result<TurnResult>> {
        self.steer_event(event.into())
    }

    /// Handles one input event like [`Instance::steer`], and streams the updates of its turn, if it has one of its
    /// own. If its input joins a turn that runs, the stream ends with that turn and has no updates: those are in the
    /// stream of that turn.
    // STEER-01, D-46
    pub fn steer_stream(&self, event: impl Into<AgentEvent>) -> TurnStream {
        self.steer_event_stream(event.into())
    }

    /// Cancels the turn that answers `event`: it ends now. The part of an answer that the model had said is kept, and
    /// the turn is committed with the outcome `cancelled`, and the caller that runs it gets `E_TURN_CANCELLED`.
    /// Returns false, and does nothing, if the event has no turn that runs or was interrupted.
    ///
    /// # Errors
    /// `E_STORE_…` when an interrupted turn could not be stored.
    // RESUME-01
    pub async fn cancel(&self, event: &EventId) -> Result<bool> {
        self.inner.slot.cancel(event).await
    }

    /// Returns the id of the event whose turn runs now, if one does. It does not wait, and knows nothing of other
    /// processes.
    pub fn running(&self) -> Option<EventId> {
        self.inner.slot.running()
    }

    /// Returns the event whose turn was interrupted, if there is one: [`Instance::run`] of it goes on with the turn. It
    /// is the event as it was run, or after the end of its process as the store has recorded it; then secrets are
    /// masked in it, and of its authentication only the principal is left. `None` too if the store has not recorded it.
    /// Waits for turns that run or were queued earlier.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    // RESUME-01
    pub async fn interrupted(&self) -> Result<Option<AgentEvent>> {
        Ok(self.open(self.inner.slot.lock().await).await?.interrupted())
    }

    /// Returns the digest of that event as it was when it was run, with nothing masked. An event with the same id asks
    /// for the same if its digest, [`EventDigest::of`], is equal. `None` too if the store does not know it.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    // ONCE-01
    pub async fn interrupted_digest(&self) -> Result<Option<EventDigest>> {
        Ok(self.open(self.inner.slot.lock().await).await?.interrupted_digest())
    }

    /// Closes a turn that was interrupted, without an answer, as the next turn of another event would. Does nothing if
    /// there is none. Waits for turns that run or were queued earlier.
    ///
    /// # Errors
    /// As [`Instance::messages`]; `E_STORE_…` when the turn could not be stored.
    // RESUME-01
    pub async fn abandon(&self) -> Result<()> {
        self.abandon_open().await
    }

    /// Takes the conversation back to the end of the turn `to`: the messages of later turns are removed, in a turn of
    /// its own. A turn that was interrupted is closed first. The acts of the turns stay done: files, and the state of
    /// extensions, which get the event `conversation.rewound`. The events of the turns stay answered: run again, they
    /// have the error `E_TURN_REWOUND`. Waits for turns that run or were queued earlier.
    ///
    /// Messages that layers have removed stay removed, and a message that
    /// [stands for others](goondan_core::Message::stands_for) stays: the conversation cannot be taken back to before
    /// the newest turn that one stands for.
    ///
    /// ```
    /// use goondan::Agent;
    /// use goondan::model::{ScriptItem, ScriptedModel};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let model = ScriptedModel::new([ScriptItem::say("yes"), ScriptItem::say("no")]);
    /// let instance = Agent::builder("assistant").model(model).build()?.instance("user:42").await?;
    /// let first = instance.run("one").await?.turn_id().clone();
    /// instance.run("two").await?;
    /// let rewound = instance.rewind(&first).await?;
    /// assert_eq!((rewound.turns.len(), rewound.messages[0].text().as_ref()), (1, "two"));
    /// assert_eq!(instance.messages().await?.len(), 2);
    /// # Ok::<(), goondan::Error>(())
    /// # })?;
    /// # Ok::<(), goondan::Error>(())
    /// ```
    ///
    /// # Errors
    /// `E_REWIND` when the conversation has no messages of that turn, or of one that a message stands for; it names the
    /// earliest turn that is possible. As [`Instance::messages`]; `E_STORE_…` when the turn could not be stored.
    // BACK-01
    pub async fn rewind(&self, to: &TurnId) -> Result<Rewound> {
        self.take_back(Back::To(to)).await
    }

    /// Takes the newest turn back, as [`Instance::rewind`] to the turn before it does. Nothing is taken back if the
    /// conversation has no turn.
    ///
    /// # Errors
    /// As [`Instance::rewind`].
    // BACK-01
    pub async fn undo(&self) -> Result<Rewound> {
        self.take_back(Back::One).await
    }

    /// Queues an input event after those that were queued before, without waiting for its turn. An error is logged;
    /// [`Agent::subscribe_turns`](crate::Agent::subscribe_turns) returns the results.
    pub fn send(&self, event: impl Into<AgentEvent>) {
        self.send_event(event.into());
    }

    /// Returns the messages of the conversation, oldest first. Waits for turns that run or were queued earlier.
    ///
    /// # Errors
    /// `E_INSTANCE_CLOSED` after [`Instance::close`]; the errors of [`Agent::instance`](crate::Agent::instance) when
    /// the conversation was idle and cannot be opened.
    pub async fn messages(&self) -> Result<Vec<Arc<Message>>> {
        Ok(self.open(self.inner.slot.lock().await).await?.messages().cloned().collect())
    }

    /// Closes the instance: waits for queued turns, cleans up the extensions, stores the rest, and
    /// releases the conversation in the store. A turn that was interrupted stays open. Later turns of any clone fail;
    /// [`Agent::instance`](crate::Agent::instance) opens the conversation again.
    ///
    /// # Errors
    /// `E_STORE_…` when something could not be stored.
    // LOAD-11
    pub async fn close(&self) -> Result<()> {
        let lock = self.inner.slot.lock().await;
        self.inner.closed.store(true, Ordering::Release);
        let closed = self.inner.slot.close(lock).await;
        self.inner.agent.decided.notify_waiters();
        self.inner.listeners.end();
        closed
    }

    /// Returns the bus of the conversation, for tests of extensions.
    #[cfg(feature = "testing")]
    pub(crate) async fn bus(&self) -> Result<crate::bus::Bus> {
        Ok(self.view().await?.services.bus.clone())
    }

    /// Opens the conversation unless it is open.
    async fn open(&self, lock: ConversationLock) -> Result<OpenLock> {
        let HandleInner { agent, slot, .. } = &*self.inner;
        if self.inner.is_closed() {
            return Err(slot.closed_error());
        }
        slot.open(agent, self.clone(), lock).await
    }

    /// Opens the conversation unless it is open.
    pub(super) async fn ensure_open(&self, lock: ConversationLock) -> Result<()> {
        self.open(lock).await.map(drop)
    }

    /// Returns the open conversation, without waiting in the queue unless the conversation must be opened.
    async fn view(&self) -> Result<View> {
        match self.inner.slot.view().filter(|_| !self.inner.is_closed()) {
            Some(view) => Ok(view),
            None => Ok(self.open(self.inner.slot.lock().await).await?.view()),
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instance({})", self.inner.slot.id)
    }
}

impl HandleInner {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

impl Drop for HandleInner {
    fn drop(&mut self) {
        if self.is_closed() || self.slot.idle_after().is_some() {
            return;
        }
        let slot = Arc::clone(&self.slot);
        self.runtime.spawn(async move {
            if let Err(error) = slot.close_unless_held().await {
                tracing::error!(instance = %slot.id, "the instance was not closed well: {}", error.report());
            }
        });
    }
}
