//! The handle of an instance: what callers do with one conversation, whether it is open or not.

mod conversation;
mod idle;
mod shared;
mod slot;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use serde_json::Value;

use super::turn::{TurnStream, Updates};
use crate::conversation::Message;
use crate::error::Result;
use crate::event::AgentEvent;
use crate::name::{ExtensionName, InstanceKey};
use crate::pipeline::{LayerInfo, MiddlewareKind, TurnResult};
use crate::tool::ToolCatalog;
pub(super) use shared::AgentInner;
pub(super) use slot::InstanceSlot;
use slot::{ConversationLock, OpenLock, View};

/// One conversation of an agent. Turns run one at a time, in the order in which they were asked for (F-TURN); other
/// instances do not wait. Clones are the same instance.
///
/// An agent with [`idle_after`](crate::AgentBuilder::idle_after) closes the conversation behind its handles when nothing
/// happens in it, and opens it again when a handle is used: history and state are there as before, extensions are made anew.
///
/// Without that, the instance closes in the background when the last clone is dropped, as by [`Instance::close`].
#[derive(Clone)]
pub struct Instance {
    inner: Arc<HandleInner>,
}

/// What the clones of a handle share. Its drop closes the conversation, unless that closes when it is idle.
pub(super) struct HandleInner {
    agent: Arc<AgentInner>,
    slot: Arc<InstanceSlot>,
    /// Set for good by [`Instance::close`].
    closed: AtomicBool,
    runtime: tokio::runtime::Handle,
}

impl Instance {
    fn new(agent: Arc<AgentInner>, slot: Arc<InstanceSlot>) -> Self {
        let runtime = tokio::runtime::Handle::current();
        Self { inner: Arc::new(HandleInner { agent, slot, closed: AtomicBool::new(false), runtime }) }
    }

    fn downgrade(&self) -> Weak<HandleInner> {
        Arc::downgrade(&self.inner)
    }

    /// Returns the handle, unless it was dropped or closed.
    fn upgrade(inner: &Weak<HandleInner>) -> Option<Self> {
        inner.upgrade().filter(|inner| !inner.is_closed()).map(|inner| Self { inner })
    }

    /// The key of the conversation.
    pub fn key(&self) -> &InstanceKey {
        &self.inner.slot.id.key
    }

    /// The layers of one kind around this conversation, outermost first.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    pub async fn layers(&self, kind: MiddlewareKind) -> Result<Vec<LayerInfo>> {
        Ok(self.view().await?.generation.registered.layers(kind).to_vec())
    }

    /// All tools of this conversation, as a step shows them to the model unless a middleware changes that (TOOL-02).
    ///
    /// # Errors
    /// As [`Instance::messages`].
    pub async fn tools(&self) -> Result<ToolCatalog> {
        Ok(self.view().await?.generation.registered.tools.catalog())
    }

    /// The state of each extension as it is now; those that are not configured now, but were, included. Extensions that
    /// never had one are left out.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    pub async fn states(&self) -> Result<BTreeMap<ExtensionName, Value>> {
        Ok(self.view().await?.services.states.all())
    }

    /// Handles one input event: one turn (F-TURN). Everything that it said is stored when this returns, also when it
    /// failed (D-16).
    ///
    /// Dropping the future cancels the turn; what it had said until then is kept, and closed before the next turn.
    ///
    /// # Errors
    /// The error that failed the turn, with how far the [`turn`](Error::turn) came; `E_STORE_…` when it could not be stored;
    /// what [`Agent::instance`](crate::Agent::instance) says when the conversation was idle and cannot be opened: the next
    /// input tries again.
    pub async fn run(&self, event: impl Into<AgentEvent>) -> Result<TurnResult> {
        self.run_locked(self.inner.slot.lock().await, event.into(), None).await
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
        // The turn begins when the stream is first polled: until then the conversation must not become idle.
        let promised = instance.inner.slot.promise_turn();
        TurnStream::new(|updates| {
            Box::pin(async move {
                let _promised = promised;
                instance.run_locked(instance.inner.slot.lock().await, event, Some(updates)).await
            })
        })
    }

    /// Queues an input event without waiting for its turn. It is handled after the events that were queued before. An error
    /// is logged.
    pub fn send(&self, event: impl Into<AgentEvent>) {
        let (instance, event) = (self.clone(), event.into());
        // The first poll takes the place in the queue.
        let mut lock = Box::pin(instance.inner.slot.lock());
        let locked = match lock.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(locked) => Some(locked),
            Poll::Pending => None,
        };
        tokio::spawn(async move {
            let locked = match locked {
                Some(locked) => locked,
                None => lock.await,
            };
            if let Err(error) = instance.run_locked(locked, event, None).await {
                tracing::error!(instance = %instance.inner.slot.id, "a sent event failed: {}", error.report());
            }
        });
    }

    /// The messages of the conversation, oldest first. Waits for turns that run or were asked for earlier.
    ///
    /// # Errors
    /// `E_INSTANCE_CLOSED` after [`Instance::close`]; what [`Agent::instance`](crate::Agent::instance) says when the
    /// conversation was idle and cannot be opened.
    pub async fn messages(&self) -> Result<Vec<Arc<Message>>> {
        Ok(self.open(self.inner.slot.lock().await).await?.messages().cloned().collect())
    }

    /// Closes the instance: waits for the turns that were asked for, lets the extensions clean up (LOAD-11), stores what
    /// is left, and gives the conversation free for others to open. Later turns of any clone are refused;
    /// [`Agent::instance`](crate::Agent::instance) opens it anew.
    ///
    /// # Errors
    /// `E_STORE_…` when something could not be stored.
    pub async fn close(&self) -> Result<()> {
        let lock = self.inner.slot.lock().await;
        self.inner.closed.store(true, Ordering::Release);
        self.inner.slot.close(lock).await
    }

    /// The bus of the conversation, for tests of extensions.
    #[cfg(feature = "testing")]
    pub(crate) async fn bus(&self) -> Result<crate::event::Bus> {
        Ok(self.view().await?.services.bus.clone())
    }

    async fn run_locked(
        &self,
        lock: ConversationLock,
        event: AgentEvent,
        updates: Option<Updates>,
    ) -> Result<TurnResult> {
        let HandleInner { agent, slot, .. } = &*self.inner;
        let mut conversation = self.open(lock).await?;
        let outcome = conversation.run(slot, event, updates).await;
        // Under the lock: the idle task must not look before.
        slot.touch(agent);
        outcome
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

    /// Returns what is open, without waiting in the queue unless the conversation must be opened.
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
