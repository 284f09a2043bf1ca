//! A bundle that runs: its agents, their open conversations, and the way out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use goondan_bundle::{Agents, Bundle};
use goondan_core::{Error, ErrorCode, Result};
use goondan_lock::Lock;
use goondan_runtime::{Agent, Instance, InstanceId, Observer, join};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use crate::instances::{HostedInstance, Instances};
use crate::source::Source;

/// A bundle that runs, made by [`Opening::open`](crate::Opening::open). Clones are the same host. It needs a tokio
/// runtime with timers. Call [`Host::drain`] at the end.
#[derive(Clone)]
pub struct Host {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) source: Source,
    /// Locked by a reload: one runs at a time.
    pub(crate) agents: Mutex<Agents>,
    /// For everyone who does not wait for a reload.
    pub(crate) current: watch::Sender<Arc<Current>>,
    pub(crate) instances: Arc<Instances>,
    /// Those of all agents, also of agents that a reload adds.
    observers: Lock<Vec<Arc<dyn Observer>>>,
}

/// The bundle as it was read last, and the agents that it has since.
pub(crate) struct Current {
    pub(crate) bundle: Arc<Bundle>,
    pub(crate) agents: Vec<Agent>,
}

/// The outcome of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum Drained {
    /// Every turn has ended, and every conversation is closed.
    Closed,
    /// Turns still run. They are cancelled when their callers or the runtime drop them; their records are kept.
    TimedOut,
}

impl Host {
    pub(crate) fn new(source: Source, bundle: Bundle, agents: Agents) -> Self {
        let current = watch::Sender::new(Arc::new(Current::new(bundle, &agents)));
        let (agents, instances, observers) = (Mutex::new(agents), Arc::default(), Lock::default());
        Self { inner: Arc::new(Inner { source, agents, current, instances, observers }) }
    }

    /// Returns the bundle as it was read last.
    pub fn bundle(&self) -> Arc<Bundle> {
        Arc::clone(&self.current().bundle)
    }

    /// Opens the conversation `key` of an agent, unless it is open. Reloads leave handles valid.
    ///
    /// # Errors
    /// `E_CONFIG_REF_NOT_FOUND` when the bundle has no such agent; `E_INSTANCE_CLOSED` after [`Host::drain`]; and as
    /// [`Agent::instance`].
    pub async fn instance(&self, agent: &str, key: &str) -> Result<HostedInstance> {
        self.inner.instances.check()?;
        let current = self.current();
        let name = &current.bundle.agent(agent)?.name;
        let agent = current.agents.iter().find(|agent| agent.name() == name).ok_or_else(|| not_built(name.as_str()))?;
        let instance = agent.instance(key).await?;
        let id = InstanceId { agent: name.clone(), key: instance.key().clone() };
        self.inner.instances.hold(id, instance)
    }

    /// Adds an observer of all conversations, also of agents that a reload adds:
    /// [`AgentBuilder::observer`](goondan_runtime::AgentBuilder::observer) says what it is told. It is told of the
    /// turns that begin later.
    // OBSERVE-01
    pub fn observe(&self, observer: impl Observer) {
        let observer: Arc<dyn Observer> = Arc::new(observer);
        // Under the lock, so that an agent that is being added has it once.
        let mut observers = self.inner.observers.lock();
        for agent in &self.current().agents {
            agent.observe(Arc::clone(&observer));
        }
        observers.push(observer);
    }

    /// Makes `new` the agents of the host, and lets the observers watch the agents that it adds.
    pub(crate) fn replace(&self, new: Arc<Current>) {
        let observers = self.inner.observers.lock();
        let old = self.current();
        for agent in new.agents.iter().filter(|agent| old.agents.iter().all(|old| old.name() != agent.name())) {
            observers.iter().for_each(|observer| agent.observe(Arc::clone(observer)));
        }
        self.inner.current.send_replace(new);
    }

    /// Opens no further conversation, waits up to `grace` for the turns that run or are queued, those in the background
    /// included, and closes all conversations, whose extensions clean up.
    ///
    /// # Errors
    /// The first error of a conversation that could not be closed. The others are closed nevertheless.
    // LOAD-11
    pub async fn drain(&self, grace: Duration) -> Result<Drained> {
        let instances = self.inner.instances.stop();
        let close = async {
            // At once, because a turn of one conversation may wait for a turn of another.
            let closed = join(instances.iter().map(Instance::close).collect()).await;
            closed.into_iter().collect::<Result<()>>().and(self.inner.agents.lock().await.close().await)
        };
        match timeout(grace, close).await {
            Ok(closed) => closed.map(|()| Drained::Closed),
            Err(_) => Ok(Drained::TimedOut),
        }
    }

    pub(crate) fn current(&self) -> Arc<Current> {
        Arc::clone(&self.inner.current.borrow())
    }
}

impl Current {
    pub(crate) fn new(bundle: Bundle, agents: &Agents) -> Self {
        Self { bundle: Arc::new(bundle), agents: agents.iter().cloned().collect() }
    }
}

fn not_built(name: &str) -> Error {
    Error::new(ErrorCode::CONFIG_REF_NOT_FOUND, format!("the agent `{name}` is being added by a reload"))
        .suggest("try again when the bundle has been reloaded")
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Host").field(&self.inner.source).finish()
    }
}
