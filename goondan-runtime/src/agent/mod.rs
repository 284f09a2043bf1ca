//! The agent: the builder, which checks a description; reloads; the router to agents of the same program.

mod builder;
mod circles;
mod local_router;
mod reload;
mod subscriptions;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use goondan_core::{AgentName, ErrorCode, InstanceKey, Result, TurnId};

use crate::instance::{AgentInner, Instance};
use crate::ports::router::ephemeral_prefix;
use crate::ports::store::{InstanceId, InstanceQuery, InstanceStatus};
pub use builder::AgentBuilder;
pub use local_router::LocalRouter;
pub use reload::{Change, ExtensionChange, Reloaded};

/// An agent: a model, its instructions, and its extensions. It has any number of conversations, its [`Instance`]s.
///
/// [`Agent::builder`] describes one. Clones are the same agent. Instances need a tokio runtime with timers enabled.
///
/// ```
/// use goondan::Agent;
/// use goondan::model::{ScriptItem, ScriptedModel};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi")])).build()?;
/// let turn = agent.instance("user:42").await?.run("hello").await?;
/// assert_eq!(turn.text(), "hi");
/// # Ok::<(), goondan::Error>(())
/// # })?;
/// # Ok::<(), goondan::Error>(())
/// ```
#[derive(Clone)]
pub struct Agent {
    inner: Arc<AgentInner>,
}

impl Agent {
    /// Returns a builder for an agent called `name`.
    pub fn builder(name: impl Into<String>) -> AgentBuilder {
        AgentBuilder::new(name.into())
    }

    /// Returns the agent's name.
    pub fn name(&self) -> &AgentName {
        &self.inner.name
    }

    /// Returns the conversation `key` of this agent. If it is not open, it is opened: its history is read, and every
    /// extension is registered in it.
    ///
    /// # Errors
    /// `E_CONFIG_INVALID_NAME` for a key that is empty or too long, `E_STORE_…` when the store cannot open it, and
    /// `E_EXT_INIT` when an extension cannot be initialized.
    // ENTRY-06, ENTRY-08
    pub async fn instance(&self, key: &str) -> Result<Instance> {
        let slot = self.inner.slot(InstanceKey::new(key)?);
        self.inner.open(&slot).await
    }

    /// Returns the conversation `key` on behalf of another agent: it stays open for a while without a handle.
    pub(crate) async fn instance_for_others(&self, key: InstanceKey) -> Result<Instance> {
        self.inner.open_for_others(key).await
    }

    /// Closes all conversations of this agent, as [`Instance::close`] does. A program with
    /// [`idle_after`](AgentBuilder::idle_after) calls it before it ends.
    ///
    /// # Errors
    /// The error of the first conversation that could not be closed. The others are closed nevertheless.
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

    /// Closes the conversations that were opened for other agents. A handle to one opens it again on use.
    pub(crate) async fn close_for_others(&self) -> Result<()> {
        let mut outcome = Ok(());
        for slot in self.inner.slots().into_iter().filter(|slot| slot.is_for_others()) {
            outcome = outcome.and(slot.close(slot.lock().await).await);
        }
        outcome
    }

    /// Deletes the conversations that the agent has had for requests of a turn alone, which is over. A failure is
    /// logged.
    // D-40
    pub(crate) async fn forget(&self, turn: &TurnId) {
        let prefix = ephemeral_prefix(turn);
        // Each key, and whether something is to be closed first.
        let open = self.inner.slots().into_iter().map(|slot| (slot.id.key.clone(), true));
        let mut keys: BTreeMap<_, _> = open.filter(|(key, _)| key.as_str().starts_with(&prefix)).collect();
        let query = InstanceQuery::new().agent(self.name().clone()).key_prefix(&*prefix);
        match self.inner.store().list(&query).await {
            Ok(page) => page.instances.into_iter().for_each(|stored| {
                keys.entry(stored.id.key).or_insert(stored.status != InstanceStatus::Idle);
            }),
            // Then nothing of before this process is known.
            Err(error) if *error.code() == ErrorCode::STORE_UNSUPPORTED => {}
            Err(error) => tracing::warn!(agent = %self.name(), %turn, "its conversations are not deleted: {error}"),
        }
        for (key, is_open) in keys {
            if let Err(error) = self.forget_one(&key, is_open).await {
                tracing::warn!(agent = %self.name(), %key, "a conversation was not deleted: {}", error.report());
            }
        }
    }

    /// Closes a turn that is open, with the turns that it has asked for, and deletes the conversation.
    async fn forget_one(&self, key: &InstanceKey, is_open: bool) -> Result<()> {
        if is_open {
            let instance = self.instance_for_others(key.clone()).await?;
            instance.abandon().await?;
            instance.close().await?;
        }
        let id = InstanceId { agent: self.name().clone(), key: key.clone() };
        match self.inner.store().delete(&id).await {
            Err(error) if *error.code() != ErrorCode::STORE_UNSUPPORTED => Err(error),
            _ => Ok(()),
        }
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

/// A weak reference to an agent.
pub(crate) struct WeakAgent(Weak<AgentInner>);

impl WeakAgent {
    pub(crate) fn upgrade(&self) -> Option<Agent> {
        Some(Agent { inner: self.0.upgrade()? })
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.0.strong_count() == 0
    }
}
