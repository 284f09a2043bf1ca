//! The agent: what it is made of, its instances, and the turns that they run.
//!
//! `builder` checks a description and makes an [`Agent`] from it; `spec` is the checked description. `instance` holds one
//! conversation, open or not; `attach` registers extensions in it; `turn` runs one turn of it. Each imports only what is
//! named after it in `instance`, `turn`, `attach`, `spec`.

mod attach;
mod builder;
mod instance;
mod local_router;
mod policy;
mod reload;
mod spec;
mod turn;

use std::fmt;
use std::sync::{Arc, Weak};

pub use builder::AgentBuilder;
pub use instance::Instance;
pub use local_router::LocalRouter;
pub use policy::Policy;
pub use reload::{Change, ExtensionChange, Reloaded};
pub use turn::{TurnStream, TurnUpdate};

use crate::error::Result;
use crate::name::{AgentName, InstanceKey};
use instance::{AgentInner, InstanceSlot};

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

    async fn open(&self, slot: &Arc<InstanceSlot>) -> Result<Instance> {
        if let Some(instance) = slot.handle().filter(|_| slot.is_open()) {
            return Ok(instance);
        }
        let mut lock = slot.lock().await;
        if slot.idle_after().is_none() && slot.handle().is_none() {
            // The last handle was dropped, but the conversation is not closed yet.
            slot.close(lock).await?;
            lock = slot.lock().await;
        }
        let instance = slot.make_handle(&self.inner);
        instance.ensure_open(lock).await?;
        Ok(instance)
    }

    /// Closes all conversations of this agent, as by [`Instance::close`]: the end of a program that leaves the closing to
    /// [`idle_after`](AgentBuilder::idle_after).
    ///
    /// # Errors
    /// The first error of a conversation that could not be closed; the others are closed all the same.
    pub async fn close(&self) -> Result<()> {
        let mut outcome = Ok(());
        for slot in self.inner.slots() {
            let closed = match slot.handle() {
                Some(instance) => instance.close().await,
                None => slot.close(slot.lock().await).await,
            };
            outcome = outcome.and(closed);
        }
        outcome
    }

    /// Closes what is open for other agents. Those who hold such a conversation open it again when they use it.
    pub(crate) async fn close_for_others(&self) -> Result<()> {
        let mut outcome = Ok(());
        for slot in self.inner.slots().into_iter().filter(|slot| slot.is_for_others()) {
            outcome = outcome.and(slot.close(slot.lock().await).await);
        }
        outcome
    }

    pub(crate) fn downgrade(&self) -> WeakAgent {
        WeakAgent(Arc::downgrade(&self.inner))
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
