//! Owns the handle of an instance: what callers ask of one conversation, whether it is open or not.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use serde_json::Value;

use super::AgentInner;
use super::open::OpenInstance;
use super::slot::{Slot, Turnstile};
use super::stream::{TurnStream, Updates};
use crate::conversation::Message;
use crate::error::{Error, ErrorCode, Result};
use crate::event::AgentEvent;
use crate::name::{ExtensionName, InstanceKey};
use crate::pipeline::{LayerInfo, MiddlewareKind, TurnResult};
use crate::tool::ToolCatalog;

/// One conversation of an agent. Turns run one at a time, in the order in which they were asked for (F-TURN); other
/// instances do not wait. Clones are the same instance.
///
/// An agent with [`idle_after`](crate::AgentBuilder::idle_after) closes the conversation behind its handles when nothing
/// happens in it, and opens it again when a handle is used: history and state are there as before, extensions are made anew.
///
/// Without that, the instance closes in the background when the last clone is dropped, as by [`Instance::close`].
#[derive(Clone)]
pub struct Instance {
    guard: Arc<Guard>,
}

/// What the clones of a handle share.
pub(super) struct Guard {
    agent: Arc<AgentInner>,
    slot: Arc<Slot>,
    /// By [`Instance::close`], for good.
    closed: AtomicBool,
    runtime: tokio::runtime::Handle,
}

impl Instance {
    pub(super) fn from_guard(guard: Arc<Guard>) -> Self {
        Self { guard }
    }

    /// The key of the conversation.
    pub fn key(&self) -> &InstanceKey {
        &self.guard.slot.id.key
    }

    /// The layers of one kind around this conversation, outermost first.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    pub async fn layers(&self, kind: MiddlewareKind) -> Result<Vec<LayerInfo>> {
        Ok(self.guard.look().await?.generation().registered.layers(kind).to_vec())
    }

    /// All tools of this conversation, as a step shows them to the model unless a middleware changes that (TOOL-02).
    ///
    /// # Errors
    /// As [`Instance::messages`].
    pub async fn tools(&self) -> Result<ToolCatalog> {
        Ok(self.guard.look().await?.generation().registered.tools.catalog())
    }

    /// The state of each extension as it is now; those that are not configured now, but were, included. Extensions that
    /// never had one are left out.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    pub async fn states(&self) -> Result<BTreeMap<ExtensionName, Value>> {
        Ok(self.guard.look().await?.services.states.all())
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
        self.guard.run(event.into(), None).await
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
        // The turn begins when somebody looks at the stream: until then the conversation must not become idle.
        let in_use = instance.guard.slot.in_use();
        TurnStream::new(|updates| {
            Box::pin(async move {
                let _in_use = in_use;
                instance.guard.run(event, Some(updates)).await
            })
        })
    }

    /// Puts an input event into the queue without waiting for its turn. It is handled after what was asked for before it,
    /// and before what is asked for after it. An error goes to the log.
    pub fn send(&self, event: impl Into<AgentEvent>) {
        let (instance, event) = (self.clone(), event.into());
        let mut queue = Box::pin(instance.guard.slot.queue());
        let first = match queue.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turnstile) => Some(turnstile),
            Poll::Pending => None,
        };
        tokio::spawn(async move {
            let turnstile = match first {
                Some(turnstile) => turnstile,
                None => queue.await,
            };
            if let Err(error) = instance.guard.run_now(turnstile, event, None).await {
                tracing::error!(instance = %instance.guard.slot.id, "a sent event failed: {}", error.report());
            }
        });
    }

    /// The messages of the conversation, oldest first. Waits for turns that run or were asked for earlier.
    ///
    /// # Errors
    /// `E_INSTANCE_CLOSED` after [`Instance::close`]; what [`Agent::instance`](crate::Agent::instance) says when the
    /// conversation was idle and cannot be opened.
    pub async fn messages(&self) -> Result<Vec<Arc<Message>>> {
        let place = self.guard.open(self.guard.slot.queue().await).await?;
        Ok(place.iter().flat_map(|opened| opened.live.conversation.messages()).cloned().collect())
    }

    /// Closes the instance: waits for the turns that were asked for, lets the extensions clean up (LOAD-11), stores what
    /// is left, and gives the conversation free for others to open. Later turns of any clone are refused;
    /// [`Agent::instance`](crate::Agent::instance) opens it anew.
    ///
    /// # Errors
    /// `E_STORE_…` when something could not be stored.
    pub async fn close(&self) -> Result<()> {
        let place = self.guard.slot.queue().await;
        self.guard.closed.store(true, Ordering::Release);
        self.guard.slot.close(place).await
    }

    /// The bus of the conversation, for tests of extensions.
    #[cfg(feature = "testing")]
    pub(crate) async fn bus(&self) -> Result<crate::event::Bus> {
        Ok(self.guard.look().await?.services.bus.clone())
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instance({})", self.guard.slot.id)
    }
}

impl Guard {
    pub(super) fn new(agent: Arc<AgentInner>, slot: Arc<Slot>) -> Self {
        Self { agent, slot, closed: AtomicBool::new(false), runtime: tokio::runtime::Handle::current() }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    async fn run(&self, event: AgentEvent, updates: Option<Updates>) -> Result<TurnResult> {
        self.run_now(self.slot.queue().await, event, updates).await
    }

    async fn run_now(&self, place: Turnstile, event: AgentEvent, updates: Option<Updates>) -> Result<TurnResult> {
        let mut place = self.open(place).await?;
        let opened = place.as_mut().ok_or_else(|| self.refusal())?;
        let outcome = opened.run(event, updates).await;
        self.slot.touch(&self.agent);
        outcome
    }

    /// Makes sure that the conversation is open.
    async fn open(&self, place: Turnstile) -> Result<Turnstile> {
        if self.is_closed() {
            return Err(self.refusal());
        }
        self.slot.open(&self.agent, place).await
    }

    /// The open conversation, without a place in its queue unless it must be opened.
    async fn look(&self) -> Result<Arc<OpenInstance>> {
        if let Some(open) = self.slot.now().filter(|_| !self.is_closed()) {
            return Ok(open);
        }
        let place = self.open(self.slot.queue().await).await?;
        place.as_ref().map(|opened| Arc::clone(&opened.instance)).ok_or_else(|| self.refusal())
    }

    fn refusal(&self) -> Error {
        Error::new(ErrorCode::INSTANCE_CLOSED, format!("the instance `{}` is closed", self.slot.id))
            .suggest("open it again by `Agent::instance`")
    }
}

impl Drop for Guard {
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
