//! A bundle: the resources that its files declare, and questions about them.

mod files;
mod load;
mod reader;
pub use reader::Reader;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::{Error, ErrorCode, ExtensionName, Result};
use goondan_file_store::Fsync;
use serde_json::Value;

use crate::coverage::Coverage;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::nearest::{did_you_mean, nearest, one_of};
use crate::resource::{AgentResource, Entry, ExtensionResource, ModelResource, Policy, ServerResource, SwarmResource};

/// Agents and their parts, read from YAML. Every reference in it is resolved.
///
/// ```no_run
/// let bundle = goondan::Bundle::load("examples/quickstart")?;
/// let agent = bundle.entry_agent()?;
/// println!("{} calls the model {}", agent.name, bundle.model_of(agent).name);
/// # Ok::<(), goondan::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The file or directory that the caller named, for messages.
    path: PathBuf,
    files: Vec<PathBuf>,
    root: PathBuf,
    models: Vec<Arc<ModelResource>>,
    extensions: Vec<Arc<ExtensionResource>>,
    agents: Vec<Arc<AgentResource>>,
    swarm: Option<Arc<SwarmResource>>,
    server: Option<Arc<ServerResource>>,
    coverage: Coverage,
    warnings: Vec<Diagnostic>,
}

impl Bundle {
    /// Returns the files that declare something, in the order in which they are read.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.files.iter().map(PathBuf::as_path)
    }

    /// Returns the files whose changes change the agents: those that declare something, those that models read, and
    /// libraries.
    pub fn sources(&self) -> impl Iterator<Item = &Path> {
        let read_by_models = self.models().flat_map(|model| &model.files).map(PathBuf::as_path);
        let libraries = self.extensions().filter_map(|extension| match &extension.entry {
            Entry::Library(library) => Some(library.file.as_path()),
            Entry::Linked(_) => None,
        });
        self.files().chain(read_by_models).chain(libraries)
    }

    /// Returns which agents reach one another, and which guards cover them. Nothing is known of it in a bundle that was
    /// read without the extensions of the program.
    // GUARD-01
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Returns whether the documents of a directory are read, and not of one file.
    pub(crate) fn is_directory(&self) -> bool {
        self.path.is_dir()
    }

    /// Returns the directory that the paths in the bundle are relative to.
    // LOAD-04
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the models, in the order of the files.
    pub fn models(&self) -> impl ExactSizeIterator<Item = &ModelResource> {
        self.models.iter().map(|model| &**model)
    }

    /// Returns the extensions, in the order of the files.
    pub fn extensions(&self) -> impl ExactSizeIterator<Item = &ExtensionResource> {
        self.extensions.iter().map(|extension| &**extension)
    }

    /// Returns the agents, in the order of the files.
    pub fn agents(&self) -> impl ExactSizeIterator<Item = &AgentResource> {
        self.agents.iter().map(|agent| &**agent)
    }

    /// Returns the swarm, if there is one.
    pub fn swarm(&self) -> Option<&SwarmResource> {
        self.swarm.as_deref()
    }

    /// Returns how the agents are served, if it is written.
    // SERVE-03
    pub fn server(&self) -> Option<&ServerResource> {
        self.server.as_deref()
    }

    /// Returns the warnings about the bundle, in the order of the files and their lines.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Returns the agent with this name.
    ///
    /// # Errors
    /// `E_CONFIG_REF_NOT_FOUND` when there is no such agent; the message lists the agents.
    pub fn agent(&self, name: &str) -> Result<&AgentResource> {
        self.agents().find(|agent| agent.name == *name).ok_or_else(|| {
            let guess = nearest(name, self.agent_names());
            let message = format!(
                "{}: the bundle has no Agent `{name}`; its agents: {}{}",
                self.path.display(),
                one_of(self.agent_names()),
                did_you_mean(guess)
            );
            let remedy = guess.map_or("name one of its agents".to_owned(), |guess| format!("name `{guess}`"));
            Error::new(ErrorCode::CONFIG_REF_NOT_FOUND, message).suggest(remedy)
        })
    }

    /// Returns the agent that receives input: the `entryAgent` of the swarm, or the only agent if there is no swarm.
    ///
    /// # Errors
    /// `E_CONFIG_SCHEMA_INVALID` when there is no swarm, and not exactly one agent; the message lists the agents.
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

    /// Returns the model of an agent.
    pub fn model_of<'a>(&self, agent: &'a AgentResource) -> &'a ModelResource {
        &agent.model
    }

    /// Returns the models that an agent can ask, each once: its own comes first, and those follow that a middleware can
    /// choose by name.
    // API-11
    pub fn models_of<'a>(&'a self, agent: &'a AgentResource) -> impl Iterator<Item = &'a ModelResource> {
        let choice = agent.models.as_ref().unwrap_or(&self.models);
        let others = choice.iter().filter(|other| other.name != agent.model.name);
        std::iter::once(&agent.model).chain(others).map(|model| &**model)
    }

    /// Returns the extensions of an agent in the order in which they are loaded, each with its name, its entry, and the
    /// settings of the extension, replaced key by key by those of the agent. Values from the environment are kept as
    /// they are written.
    // LOAD-01, F-REF
    pub fn extensions_of<'a>(
        &self,
        agent: &'a AgentResource,
    ) -> impl ExactSizeIterator<Item = (&'a ExtensionName, &'a Entry, Value)> + use<'a> {
        agent.extensions.iter().map(|used| (&used.target.name, &used.target.entry, used.merged_config()))
    }

    /// Checks that the values that its agents take from the environment exist. [`Bundle::build`] needs them.
    ///
    /// # Errors
    /// `E_CONFIG_VALUE_NOT_FOUND` for each missing value, with its place.
    pub fn check_values(&self) -> Result<(), Diagnostics> {
        let of_extensions = self.agents().flat_map(|agent| &agent.extensions).map(|used| used.fetch_config().err());
        let of_models = self.agents().flat_map(|agent| self.models_of(agent)).map(|model| model.fetch_config().err());
        let mut errors = Vec::new();
        for error in of_extensions.chain(of_models).flatten().flatten() {
            // Several agents can use one extension or model.
            if !errors.contains(&error) {
                errors.push(error);
            }
        }
        errors.sort_by_key(|error| (self.files.iter().position(|file| *file == error.file), error.place));
        Diagnostics::new(errors).map_or(Ok(()), Err)
    }

    /// Returns the names of the environment variables that it reads as secrets, sorted. Processes that its agents start
    /// do not get these.
    // ENV-01
    pub fn secret_variables(&self) -> Vec<&str> {
        let of_models = self.models.iter().flat_map(|model| &model.sources);
        let of_extensions = self.extensions.iter().flat_map(|extension| &extension.sources);
        let of_uses = self.agents().flat_map(|agent| &agent.extensions).flat_map(|used| &used.sources);
        let secrets = of_models.chain(of_extensions).chain(of_uses).filter(|value| value.secret);
        let names: BTreeSet<_> = secrets.map(|value| value.source.variable()).collect();
        names.into_iter().collect()
    }

    /// Returns the limits of an agent: its own, completed by those of its swarm. A limit that neither sets is `None`;
    /// the runtime has defaults.
    // D-22
    pub fn policy_of(&self, agent: &AgentResource) -> Policy {
        let member = |swarm: &&SwarmResource| swarm.agents.iter().any(|member| member.name == agent.name);
        agent.policy.or(self.swarm().filter(member).map(|swarm| swarm.policy).unwrap_or_default())
    }

    /// Returns when conversations are synced to the disk: the `fsync` of the swarm, or at the end of each turn.
    pub fn fsync(&self) -> Fsync {
        self.swarm().and_then(|swarm| swarm.fsync).unwrap_or_default()
    }

    /// Returns the name of the bundle's workspace: the `instanceKey` of the swarm, which defaults to the name of the
    /// swarm. Without a swarm it is the name of the entry agent. It is returned as written, and may not be fit for a
    /// directory.
    ///
    /// # Errors
    /// As [`Bundle::entry_agent`], when there is no swarm.
    // F-STORE
    pub fn workspace_name(&self) -> Result<&str> {
        match self.swarm() {
            Some(swarm) => Ok(swarm.instance_key.as_deref().unwrap_or(&swarm.name)),
            None => Ok(self.entry_agent()?.name.as_str()),
        }
    }
}
