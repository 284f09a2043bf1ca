//! Owns the bundle: everything that its files declare, and the questions that are asked of it.

mod files;
mod hints;
mod load;
mod reader;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::store::Fsync;
use goondan_core::{Error, ErrorCode, ExtensionName, Result};
use serde_json::Value;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::field::meant;
use crate::nearest::{nearest, one_of};
use crate::resource::{AgentResource, Entry, ExtensionRef, ExtensionResource, ModelResource, Policy, SwarmResource};
pub use reader::Reader;

/// Agents, and what they need, read from YAML. Every reference in it leads somewhere.
///
/// ```no_run
/// let bundle = goondan_bundle::Bundle::load("examples/quickstart")?;
/// let agent = bundle.entry_agent()?;
/// println!("{} asks the model {}", agent.name, bundle.model_of(agent).name);
/// # Ok::<(), goondan_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bundle {
    /// What was named: a file or a directory.
    path: PathBuf,
    files: Vec<PathBuf>,
    root: PathBuf,
    models: Vec<Arc<ModelResource>>,
    extensions: Vec<Arc<ExtensionResource>>,
    agents: Vec<Arc<AgentResource>>,
    swarm: Option<Arc<SwarmResource>>,
    warnings: Vec<Diagnostic>,
}

impl Bundle {
    /// The files that declare something, in the order in which they are read.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    /// The directory that the paths in the bundle are relative to (LOAD-04).
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The models, in the order of the files.
    pub fn models(&self) -> impl ExactSizeIterator<Item = &ModelResource> {
        self.models.iter().map(|model| &**model)
    }

    /// The extensions, in the order of the files.
    pub fn extensions(&self) -> impl ExactSizeIterator<Item = &ExtensionResource> {
        self.extensions.iter().map(|extension| &**extension)
    }

    /// The agents, in the order of the files.
    pub fn agents(&self) -> impl ExactSizeIterator<Item = &AgentResource> {
        self.agents.iter().map(|agent| &**agent)
    }

    /// The swarm, if there is one.
    pub fn swarm(&self) -> Option<&SwarmResource> {
        self.swarm.as_deref()
    }

    /// What is legal, but probably not meant, in the order of the files and their lines.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The agent of this name.
    ///
    /// # Errors
    /// `E_CONFIG_REF_NOT_FOUND` when there is none; the message lists those that there are.
    pub fn agent(&self, name: &str) -> Result<&AgentResource> {
        self.agents().find(|agent| agent.name == *name).ok_or_else(|| {
            let guess = nearest(name, self.agent_names());
            let message = format!(
                "{}: the bundle has no Agent `{name}`; its agents: {}{}",
                self.path.display(),
                one_of(self.agent_names()),
                meant(guess)
            );
            let remedy = guess.map_or("name one of its agents".to_owned(), |guess| format!("name `{guess}`"));
            Error::new(ErrorCode::CONFIG_REF_NOT_FOUND, message).suggest(remedy)
        })
    }

    /// The agent that input goes to: the swarm's `entryAgent`, else the only agent.
    ///
    /// # Errors
    /// `E_CONFIG_SCHEMA_INVALID` when there is no swarm and not exactly one agent; the message lists the agents.
    pub fn entry_agent(&self) -> Result<&AgentResource> {
        if let Some(swarm) = &self.swarm {
            return Ok(&swarm.entry_agent);
        }
        match &self.agents[..] {
            [only] => Ok(only),
            [] => Err(self.no_entry("the bundle has no Agent", "add a document with `kind: Agent`")),
            _ => Err(self.no_entry(
                &format!("nothing says which agent input goes to: {}", one_of(self.agent_names())),
                "name the agent, or add a document with `kind: Swarm` and an `entryAgent`",
            )),
        }
    }

    fn no_entry(&self, why: &str, remedy: &'static str) -> Error {
        Error::new(ErrorCode::CONFIG_SCHEMA, format!("{}: {why}", self.path.display())).suggest(remedy)
    }

    fn agent_names(&self) -> impl Iterator<Item = &str> {
        self.agents().map(|agent| agent.name.as_str())
    }

    /// The model that an agent asks.
    pub fn model_of<'a>(&self, agent: &'a AgentResource) -> &'a ModelResource {
        &agent.model
    }

    /// What wraps an agent, in the order in which it is loaded (LOAD-01): the name, the code, and the settings of the
    /// extension with those of the agent laid over them, key by key (F-REF). Values that come from elsewhere stand in them
    /// as they are written.
    pub fn extensions_of<'a>(
        &self,
        agent: &'a AgentResource,
    ) -> impl ExactSizeIterator<Item = (&'a ExtensionName, &'a Entry, Value)> + use<'a> {
        agent.extensions.iter().map(|used| (&used.target.name, &used.target.entry, used.merged_config()))
    }

    /// Whether all values are there that its agents take from elsewhere; [`Bundle::build`] needs them.
    ///
    /// # Errors
    /// Those that are not, each with its place: `E_CONFIG_VALUE_NOT_FOUND`.
    pub fn check_values(&self) -> Result<(), Diagnostics> {
        let uses = self.agents().flat_map(|agent| &agent.extensions);
        let mut faults = Vec::new();
        for fault in uses.filter_map(|used| config(used).err()).flatten() {
            // Several agents can use one extension.
            if !faults.contains(&fault) {
                faults.push(fault);
            }
        }
        faults.sort_by_key(|fault| (self.files.iter().position(|file| *file == fault.file), fault.place));
        Diagnostics::new(faults).map_or(Ok(()), Err)
    }

    /// The limits of an agent: its own, else its swarm's (D-22). What neither sets is for the runtime to say.
    pub fn policy_of(&self, agent: &AgentResource) -> Policy {
        let member = |swarm: &&SwarmResource| swarm.agents.iter().any(|member| member.name == agent.name);
        agent.policy.or(self.swarm().filter(member).map(|swarm| swarm.policy).unwrap_or_default())
    }

    /// When its conversations are synced to the disk: what the swarm says, else at the end of each turn.
    pub fn fsync(&self) -> Fsync {
        self.swarm().and_then(|swarm| swarm.fsync).unwrap_or_default()
    }

    /// The name of the bundle's workspace: the swarm's `instanceKey`, else its name, else the entry agent's name
    /// (F-STORE). It is as written, and not yet fit for a directory.
    ///
    /// # Errors
    /// As [`Bundle::entry_agent`], when there is no swarm.
    pub fn workspace_name(&self) -> Result<&str> {
        match self.swarm() {
            Some(swarm) => Ok(swarm.instance_key.as_deref().unwrap_or(&swarm.name)),
            None => Ok(self.entry_agent()?.name.as_str()),
        }
    }
}

/// The settings with which an agent uses an extension, with all values in them; or which are not there.
pub(crate) fn config(used: &ExtensionRef) -> Result<Value, Diagnostics> {
    let mut config = used.merged_config();
    let faults = used.merged_sources().filter_map(|value| value.put_into(&mut config)).collect();
    Diagnostics::new(faults).map_or(Ok(config), Err)
}
