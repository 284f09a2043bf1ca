//! Owns the opened conversation of `goondan run`: from the bundle to the instance, and back again.

use std::sync::Arc;

use goondan::bundle::{AgentResource, Agents, Plugins};
use goondan::store::{Fsync, state_root};
use goondan::{AgentName, Bundle, Error, FileStore, Instance, InstanceId, InstanceKey, Result};

use crate::args::{RunArgs, Sync};

/// A conversation with all that it needs.
pub(crate) struct Opened {
    /// What the bundle is read from again.
    args: RunArgs,
    plugins: Plugins,
    store: Arc<FileStore>,
    agent: AgentName,
    agents: Agents,
    instance: Instance,
}

impl Opened {
    pub(crate) async fn open(args: &RunArgs) -> Result<Self> {
        let bundle = args.bundle.reader().load(&args.bundle.path)?;
        let agent = agent_of(&bundle, args.agent.as_deref())?.name.clone();
        let root = state_root(args.state_root.as_deref())?;
        let fsync = args.fsync.map_or_else(|| bundle.fsync(), Fsync::from);
        let store = Arc::new(FileStore::in_workspace(&root, bundle.workspace_name()?)?.fsync(fsync));
        let plugins = Plugins::new();
        let agents = bundle.build_with(Arc::clone(&store), &plugins).await?;
        let instance = instance(&agents, &agent, &args.instance).await?;
        Ok(Self { args: args.clone(), plugins, store, agent, agents, instance })
    }

    pub(crate) fn instance(&self) -> &Instance {
        &self.instance
    }

    pub(crate) fn id(&self) -> Result<InstanceId> {
        Ok(InstanceId { agent: self.agent.clone(), key: InstanceKey::new(&self.args.instance)? })
    }

    /// Where the conversation is kept.
    pub(crate) fn directory(&self) -> Result<std::path::PathBuf> {
        Ok(self.store.instance_dir(&self.id()?))
    }

    /// Reads the bundle again, and goes on with the same conversation as it is described now. What was opened stays if the
    /// bundle has faults.
    ///
    /// # Errors
    /// The faults; or that the conversation could not be opened again, after which it is closed and every turn says so.
    pub(crate) async fn reload(&mut self) -> Result<()> {
        let bundle = self.args.bundle.reader().load(&self.args.bundle.path)?;
        bundle.agent(self.agent.as_str())?;
        let agents = bundle.build_with(Arc::clone(&self.store), &self.plugins).await?;
        // Two cannot have a conversation open: the old one goes first.
        self.close().await?;
        match instance(&agents, &self.agent, &self.args.instance).await {
            Ok(instance) => {
                self.agents = agents;
                self.instance = instance;
                Ok(())
            }
            Err(error) => {
                self.instance = instance(&self.agents, &self.agent, &self.args.instance).await?;
                Err(error)
            }
        }
    }

    /// LOAD-11: extensions let go of what they hold.
    pub(crate) async fn close(&self) -> Result<()> {
        self.instance.close().await.and(self.agents.close().await)
    }
}

async fn instance(agents: &Agents, agent: &AgentName, key: &str) -> Result<Instance> {
    let agent = agents.get(agent.as_str()).ok_or_else(|| Error::msg("a built bundle has its agents"))?;
    agent.instance(key).await
}

impl From<Sync> for Fsync {
    fn from(when: Sync) -> Self {
        match when {
            Sync::Turn => Self::Turn,
            Sync::Always => Self::Always,
            Sync::Never => Self::Never,
        }
    }
}

/// The agent that the user means.
pub(crate) fn agent_of<'a>(bundle: &'a Bundle, name: Option<&str>) -> Result<&'a AgentResource> {
    match name {
        Some(name) => bundle.agent(name),
        None => bundle.entry_agent(),
    }
}
