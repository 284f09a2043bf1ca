//! The instances that a store keeps, as it lists them.

use goondan_core::{AgentName, Timestamp};
use serde::Serialize;

use super::InstanceId;
use super::instance_id::directory_start;

/// An instance that a store keeps, and its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StoredInstance {
    /// The instance.
    #[serde(flatten)]
    pub id: InstanceId,
    /// When it was first opened.
    pub created_at: Timestamp,
    /// When one of its turns last began or ended.
    pub updated_at: Timestamp,
    /// Its activity.
    pub status: InstanceStatus,
}

impl StoredInstance {
    /// The instance `id`, which is idle.
    pub fn new(id: InstanceId, created_at: Timestamp, updated_at: Timestamp) -> Self {
        Self { id, created_at, updated_at, status: InstanceStatus::Idle }
    }
}

/// The activity of a stored instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum InstanceStatus {
    /// It is not open, and no turn is.
    Idle,
    /// A turn was interrupted: it goes on when its event is run again, and the next turn of another event closes it.
    Interrupted,
    /// A turn waits for decisions.
    Suspended,
    /// A process has it open. Of files only Linux tells; elsewhere, an instance that is open counts as idle or, while
    /// it runs a turn, as interrupted.
    Open,
    /// Its records cannot be read. Opening it says why.
    Unreadable,
}

impl InstanceStatus {
    /// Returns the status in one word, such as `idle`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Interrupted => "interrupted",
            Self::Suspended => "suspended",
            Self::Open => "open",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Which instances a store lists, by agent and key.
///
/// ```
/// use goondan::name::AgentName;
/// use goondan::store::{InstanceQuery, InstanceStatus, MemoryStore, Store};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = MemoryStore::new();
/// let query = InstanceQuery::new().agent(AgentName::new("assistant")?).key_prefix("user:");
/// let interrupted = store.list(&query.status(InstanceStatus::Interrupted).limit(10)).await?;
/// assert!(interrupted.instances.is_empty() && interrupted.next.is_none());
/// # Ok::<(), goondan::Error>(())
/// # })?;
/// # Ok::<(), goondan::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct InstanceQuery {
    /// Those of one agent, else of all.
    pub agent: Option<AgentName>,
    /// Those whose key starts with this.
    pub key_prefix: String,
    /// Those that do one thing.
    pub status: Option<InstanceStatus>,
    /// Those that come after this one, the last of the page before.
    pub after: Option<InstanceId>,
    /// At most so many, else all.
    pub limit: Option<usize>,
}

impl InstanceQuery {
    /// All instances.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the agent.
    #[must_use]
    pub fn agent(mut self, agent: AgentName) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Sets how keys start.
    #[must_use]
    pub fn key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.key_prefix = prefix.into();
        self
    }

    /// Sets the status of the instances.
    #[must_use]
    pub fn status(mut self, status: InstanceStatus) -> Self {
        self.status = Some(status);
        self
    }

    /// Sets the instance after which the page begins.
    #[must_use]
    pub fn after(mut self, instance: InstanceId) -> Self {
        self.after = Some(instance);
        self
    }

    /// Sets how many there are in a page at most; 0 counts as 1.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit.max(1));
        self
    }

    /// Returns how the [names](InstanceId::directory_name) of the directories begin of all instances of this query, so
    /// that a store with many directories reads no others. Empty if the query is for all agents.
    ///
    /// ```
    /// use goondan::name::AgentName;
    /// use goondan::store::InstanceQuery;
    ///
    /// let query = InstanceQuery::new().agent(AgentName::new("assistant")?).key_prefix("user 1");
    /// assert_eq!(query.directory_start(), "assistant:user%201");
    /// # Ok::<(), goondan::Error>(())
    /// ```
    pub fn directory_start(&self) -> String {
        let start = |agent: &AgentName| directory_start(&format!("{agent}:{}", self.key_prefix));
        self.agent.as_ref().map(start).unwrap_or_default()
    }

    /// Returns the page of this query from all instances of a store, which are in any order. `status` returns whether
    /// one is doing, and is asked only where that matters.
    pub fn page(
        &self,
        instances: impl IntoIterator<Item = StoredInstance>,
        mut status: impl FnMut(&InstanceId) -> InstanceStatus,
    ) -> InstancePage {
        let is_in = |InstanceId { agent, key }: &InstanceId| {
            self.agent.as_ref().is_none_or(|wanted| wanted == agent) && key.as_str().starts_with(&self.key_prefix)
        };
        let is_later = |id: &InstanceId| self.after.as_ref().is_none_or(|after| id > after);
        let mut found: Vec<_> = instances.into_iter().filter(|found| is_in(&found.id) && is_later(&found.id)).collect();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        let told = found.into_iter().map(|mut instance| {
            instance.status = status(&instance.id);
            instance
        });
        let mut told = told.filter(|instance| self.status.is_none_or(|wanted| wanted == instance.status));
        let instances: Vec<_> = told.by_ref().take(self.limit.unwrap_or(usize::MAX)).collect();
        let next = told.next().and(instances.last()).map(|last| last.id.clone());
        InstancePage { instances, next }
    }
}

/// A page of the instances that a store lists.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstancePage {
    /// The instances, by agent and key.
    pub instances: Vec<StoredInstance>,
    /// The instance after which the next page begins; `None` on the last page.
    pub next: Option<InstanceId>,
}
