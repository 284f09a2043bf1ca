//! Owns the opened conversation of `goondan run`: from the bundle to the instance, and back again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan::bundle::{Agents, Entry, Plugins, Provider};
use goondan::store::{Fsync, state_root};
use goondan::{
    AgentName, Bundle, Error, ExtensionChange, FileStore, Instance, InstanceId, InstanceKey, Reloaded, Result,
};

use crate::args::{FsyncArg, RunArgs};
use crate::commands::bundle;
use crate::output;
use crate::output::diagnostics::Refusal;

/// A conversation with all that it needs.
pub(crate) struct Opened {
    /// What the bundle is read from again.
    args: RunArgs,
    plugins: Plugins,
    store: Arc<FileStore>,
    agent: AgentName,
    agents: Agents,
    instance: Instance,
    files: Vec<PathBuf>,
}

impl Opened {
    pub(crate) async fn open(args: &RunArgs) -> Result<Self, Refusal> {
        let plugins = Plugins::new();
        let bundle = bundle::read(&args.bundle, &plugins)?;
        bundle.check_values()?;
        let agent = bundle::agent(&bundle, args.agent.as_deref())?.name.clone();
        let root = state_root(args.state_root.as_deref())?;
        let fsync = args.fsync.map_or_else(|| bundle.fsync(), Fsync::from);
        let store = Arc::new(FileStore::in_workspace(&root, bundle.workspace_name()?)?.fsync(fsync));
        let agents = bundle.build_with(Arc::clone(&store), &plugins).await?;
        let instance = instance(&agents, &agent, &args.instance).await?;
        Ok(Self { args: args.clone(), plugins, store, agent, agents, instance, files: files(&bundle) })
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

    /// The files that it is made of: those of the bundle, the scripts of its models, its libraries.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    /// Reads the bundle again, and goes on with the same conversation as it is described now. Everything stays as it is
    /// when the bundle has faults. An agent whose extensions cannot be initialized stays what it was, and is told of; it is
    /// an error when it is the one of this conversation.
    pub(crate) async fn reload(&mut self) -> Result<Vec<ExtensionChange>, Refusal> {
        let bundle = bundle::read(&self.args.bundle, &self.plugins)?;
        bundle.check_values()?;
        bundle.agent(self.agent.as_str())?;
        let outcomes = self.agents.reload(&bundle, Some(&self.plugins)).await?;
        self.files = files(&bundle);
        let (mut changes, mut own) = (Vec::new(), Ok(()));
        for (agent, outcome) in outcomes {
            match outcome {
                Ok(Reloaded { changes: some, refused, .. }) => {
                    changes.extend(some);
                    refused.iter().for_each(|(_, error)| output::report(error));
                }
                Err(error) if agent == self.agent => own = Err(error),
                Err(error) => {
                    output::eprint(&format!("the agent `{agent}` was not reloaded\n"));
                    output::report(&error);
                }
            }
        }
        Ok(own.map(|()| changes)?)
    }

    /// Reloads, and says what came of it in words.
    pub(crate) async fn reload_and_tell(&mut self, tell: impl Fn(&str)) {
        match self.reload().await {
            Ok(changes) if changes.is_empty() => tell("reloaded"),
            Ok(changes) => {
                let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
                tell(&format!("reloaded: {}", changes.join(", ")));
            }
            Err(refusal) => {
                refusal.tell();
                tell("not reloaded; the conversation goes on as it was");
            }
        }
    }

    /// LOAD-11: extensions let go of what they hold.
    pub(crate) async fn close(&self) -> Result<()> {
        self.instance.close().await.and(self.agents.close().await)
    }
}

fn files(bundle: &Bundle) -> Vec<PathBuf> {
    let scripts = bundle.models().filter_map(|model| match &model.provider {
        Provider::Scripted { script, .. } => Some(script.as_path()),
        _ => None,
    });
    let libraries = bundle.extensions().filter_map(|extension| match &extension.entry {
        Entry::Library(library) => Some(library.file.as_path()),
        _ => None,
    });
    bundle.files().chain(scripts).chain(libraries).map(Path::to_path_buf).collect()
}

async fn instance(agents: &Agents, agent: &AgentName, key: &str) -> Result<Instance> {
    let agent = agents.get(agent.as_str()).ok_or_else(|| Error::msg("a built bundle has its agents"))?;
    agent.instance(key).await
}

impl From<FsyncArg> for Fsync {
    fn from(when: FsyncArg) -> Self {
        match when {
            FsyncArg::Turn => Self::Turn,
            FsyncArg::Always => Self::Always,
            FsyncArg::Never => Self::Never,
        }
    }
}
