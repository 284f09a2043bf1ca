//! Owns the agent process: what an agent is made of, its instances, and the turns that they run.

mod answer;
mod attached;
mod builder;
mod description;
mod instance;
mod limit;
mod live;
mod machine;
mod policy;
mod registration;
mod reload;
mod report;
mod services;
mod step;
mod stream;
mod tool_call;
mod turn;
mod watchdog;
mod workdir;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

pub use builder::AgentBuilder;
pub use instance::Instance;
pub use policy::Policy;
pub use reload::{Change, ExtensionChange, Reloaded};
pub use stream::{TurnStream, TurnUpdate};

use crate::error::Result;
use crate::name::{AgentName, InstanceKey};
use crate::store::Store;
use description::Description;
use instance::{Guard, InstanceInner};

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
    instances: Mutex<HashMap<InstanceKey, Slot>>,
}

/// The place of one instance: its lock lets one caller open it while others wait for the same handle.
type Slot = Arc<tokio::sync::Mutex<Opened>>;

/// What is known of an instance that was opened.
#[derive(Default)]
struct Opened {
    /// The handle that callers share.
    guard: Weak<Guard>,
    /// The instance, which outlives its handles while it closes.
    inner: Weak<InstanceInner>,
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

    /// The conversation `key` of this agent. It is opened if no handle to it is alive: then its history is read and every
    /// extension is registered for it (ENTRY-08).
    ///
    /// # Errors
    /// `E_CONFIG_INVALID_NAME` for a key that is empty or too long, `E_STORE_…` when the store cannot open it, and
    /// `E_EXT_INIT` when an extension cannot be initialized (ENTRY-06).
    pub async fn instance(&self, key: &str) -> Result<Instance> {
        let key = InstanceKey::new(key)?;
        let slot = {
            let mut instances = self.inner.instances.lock().unwrap_or_else(PoisonError::into_inner);
            Slot::clone(instances.entry(key.clone()).or_default())
        };
        let mut slot = slot.lock().await;
        if let Some(open) = slot.guard.upgrade()
            && !open.inner().is_closed()
        {
            return Ok(Instance::from_guard(open));
        }
        if let Some(closing) = slot.inner.upgrade() {
            // The last handle is gone, but the conversation is not free yet.
            closing.close().await?;
        }
        let inner = InstanceInner::open(Arc::clone(&self.inner), key).await?;
        slot.inner = Arc::downgrade(&inner);
        let guard = Arc::new(Guard::new(inner));
        slot.guard = Arc::downgrade(&guard);
        Ok(Instance::from_guard(guard))
    }

    /// The instances that are open, or are still closing.
    async fn open_instances(&self) -> Vec<Arc<InstanceInner>> {
        let slots: Vec<_> = {
            let instances = self.inner.instances.lock().unwrap_or_else(PoisonError::into_inner);
            instances.values().map(Slot::clone).collect()
        };
        let mut open = Vec::new();
        for slot in slots {
            // Waits for an instance that is about to be opened.
            open.extend(slot.lock().await.inner.upgrade());
        }
        open
    }

    pub(crate) fn downgrade(&self) -> WeakAgent {
        WeakAgent(Arc::downgrade(&self.inner))
    }
}

impl AgentInner {
    fn description(&self) -> Arc<Description> {
        Arc::clone(&self.description.lock().unwrap_or_else(PoisonError::into_inner))
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
