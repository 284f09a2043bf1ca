//! Owns the agent process: what an agent is made of, its instances, and the turns that they run.

mod builder;
mod instance;
mod machine;
mod policy;
mod registration;
mod step;
mod tool_call;
mod turn;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

pub use builder::AgentBuilder;
pub use instance::Instance;
pub use policy::Policy;

use crate::error::Result;
use crate::model::Model;
use crate::name::{AgentName, InstanceKey};
use crate::store::Store;
use builder::ExtensionSpec;
use instance::InstanceInner;

/// An agent: a model, its instructions, and the extensions around it. It holds any number of conversations, its
/// [`Instance`]s. Clones are the same agent.
///
/// ```
/// use goondan_core::{Agent, ScriptItem, ScriptedModel};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
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
    model: Arc<dyn Model>,
    system: Option<String>,
    extensions: Vec<ExtensionSpec>,
    policy: Policy,
    store: Arc<dyn Store>,
    instances: Mutex<HashMap<InstanceKey, Slot>>,
}

/// The place of one instance: its lock lets one caller open it while others wait for the same handle.
type Slot = Arc<tokio::sync::Mutex<Weak<InstanceInner>>>;

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
        if let Some(open) = slot.upgrade() {
            return Ok(Instance::new(open));
        }
        let opened = Arc::new(InstanceInner::open(Arc::clone(&self.inner), key).await?);
        *slot = Arc::downgrade(&opened);
        Ok(Instance::new(opened))
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Agent({})", self.inner.name)
    }
}
