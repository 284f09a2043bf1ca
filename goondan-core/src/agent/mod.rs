//! Owns the agent process: what an agent is made of, its instances, and the turns that they run.

mod answer;
mod attached;
mod builder;
mod description;
mod idle;
mod instance;
mod limit;
mod live;
mod local_router;
mod machine;
mod open;
mod policy;
mod registration;
mod reload;
mod report;
mod services;
mod slot;
mod step;
mod stream;
mod tool_call;
mod turn;
mod watchdog;
mod workdir;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

pub use builder::AgentBuilder;
pub use instance::Instance;
pub use local_router::LocalRouter;
pub use policy::Policy;
pub use reload::{Change, ExtensionChange, Reloaded};
pub use stream::{TurnStream, TurnUpdate};

use crate::error::Result;
use crate::name::{AgentName, InstanceKey};
use crate::store::{InstanceId, Store};
use description::Description;
use idle::Idle;
use slot::Slot;

/// An agent: a model, its instructions, and the extensions around it. It holds any number of conversations, its
/// [`Instance`]s. Clones are the same agent. Its instances run on a tokio runtime whose timers are enabled.
///
/// ```
/// use goondan_core::{Agent, ScriptItem, ScriptedModel};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi")])).build().await?;
/// let turn = agent.instance("user:42").await?.run("hello").await?;
/// assert_eq!(turn.text(), "hi");
/// # Ok::<(), goondan_core::Error>(())
/// # })?;
/// # Ok::<(), goondan_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Agent {
    inner: Arc<AgentInner>,
}

/// What all instances of an agent share.
pub(crate) struct AgentInner {
    name: AgentName,
    /// What instances that are opened from now on are made of.
    description: Mutex<Arc<Description>>,
    /// One reload at a time.
    reloading: tokio::sync::Mutex<()>,
    store: Arc<dyn Store>,
    /// When an instance that nobody uses is closed behind its handles.
    idle_after: Option<Duration>,
    idle: Idle,
    /// Those that somebody holds, or that are open.
    slots: Mutex<HashMap<InstanceKey, Weak<Slot>>>,
}

impl Agent {
    /// Starts to describe an agent.
    pub fn builder(name: impl Into<String>) -> AgentBuilder {
        AgentBuilder::new(name.into())
    }

    /// The agent's name.
    pub fn name(&self) -> &AgentName {
        &self.inner.name
    }

    /// The conversation `key` of this agent. It is opened if it is not: then its history is read and every extension is
    /// registered for it (ENTRY-08).
    ///
    /// # Errors
    /// `E_CONFIG_INVALID_NAME` for a key that is empty or too long, `E_STORE_…` when the store cannot open it, and
    /// `E_EXT_INIT` when an extension cannot be initialized (ENTRY-06).
    pub async fn instance(&self, key: &str) -> Result<Instance> {
        let slot = self.inner.slot(InstanceKey::new(key)?);
        self.open(&slot).await
    }

    /// The conversation `key`, on behalf of another agent: it stays open for a while when nobody holds it.
    pub(crate) async fn instance_for_others(&self, key: InstanceKey) -> Result<Instance> {
        let slot = self.inner.slot(key);
        let instance = self.open(&slot).await?;
        slot.use_for_others(&self.inner);
        Ok(instance)
    }

    async fn open(&self, slot: &Arc<Slot>) -> Result<Instance> {
        if let Some(held) = slot.held().filter(|_| slot.now().is_some()) {
            return Ok(held);
        }
        let mut place = slot.queue().await;
        if slot.idle_after().is_none() && slot.held().is_none() {
            // The last handle is gone, but the conversation is not closed yet.
            slot.close(place).await?;
            place = slot.queue().await;
        }
        let held = slot.hold(&self.inner);
        slot.open(&self.inner, place).await?;
        Ok(held)
    }

    /// Closes all conversations of this agent, as by [`Instance::close`]: the end of a program that leaves the closing to
    /// [`idle_after`](AgentBuilder::idle_after).
    ///
    /// # Errors
    /// The first error of a conversation that could not be closed; the others are closed all the same.
    pub async fn close(&self) -> Result<()> {
        let mut outcome = Ok(());
        for slot in self.inner.slots() {
            let closed = match slot.held() {
                Some(instance) => instance.close().await,
                None => slot.close(slot.queue().await).await,
            };
            outcome = outcome.and(closed);
        }
        outcome
    }

    /// Closes what is open for other agents. Those who hold such a conversation open it again when they use it.
    pub(crate) async fn close_for_others(&self) -> Result<()> {
        let mut outcome = Ok(());
        for slot in self.inner.slots().into_iter().filter(|slot| slot.is_for_others()) {
            outcome = outcome.and(slot.close(slot.queue().await).await);
        }
        outcome
    }

    pub(crate) fn downgrade(&self) -> WeakAgent {
        WeakAgent(Arc::downgrade(&self.inner))
    }
}

impl AgentInner {
    fn description(&self) -> Arc<Description> {
        Arc::clone(&self.description.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The place of the instance `key`.
    fn slot(self: &Arc<Self>, key: InstanceKey) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(&key).and_then(Weak::upgrade) {
            return slot;
        }
        let slot = Arc::new(Slot::new(InstanceId { agent: self.name.clone(), key: key.clone() }, self));
        slots.insert(key, Arc::downgrade(&slot));
        slot
    }

    fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).values().filter_map(Weak::upgrade).collect()
    }

    /// Forgets the place of an instance that nobody needs any more, unless there is another one by now.
    fn forget(&self, key: &InstanceKey) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.get(key).is_some_and(|slot| slot.strong_count() == 0) {
            slots.remove(key);
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Agent({})", self.inner.name)
    }
}

/// An agent that is not kept alive.
pub(crate) struct WeakAgent(Weak<AgentInner>);

impl WeakAgent {
    pub(crate) fn upgrade(&self) -> Option<Agent> {
        Some(Agent { inner: self.0.upgrade()? })
    }
}
