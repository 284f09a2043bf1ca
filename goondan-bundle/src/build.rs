//! Owns the way from a bundle to the agents that it describes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use goondan_core::{
    Agent, AgentBuilder, AgentName, Error, ErrorCode, ExtensionDescriptor, LocalRouter, Reloaded, Result,
    ScriptedModel, Store,
};

use crate::bundle::config;
use crate::{AgentResource, Bundle, Diagnostics, Entry, Libraries, LibraryEntry, ModelResource, Provider};

/// The agents of a bundle, built: they share a store and reach one another.
pub struct Agents {
    agents: BTreeMap<AgentName, Agent>,
    router: LocalRouter,
    store: Arc<dyn Store>,
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.agents.values()).finish()
    }
}

impl Agents {
    /// The agent called `name`.
    pub fn get(&self, name: &str) -> Option<&Agent> {
        self.agents.get(name)
    }

    /// All agents, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// Makes these the agents of `bundle`: each one becomes what it is there, as by [`Agent::reload`], new ones come and
    /// others go. Nothing changes when the bundle cannot be built. The store stays the same.
    ///
    /// Gives what became of each agent that was there before, by name: [`Agent::reload`] may refuse to change one, which then
    /// stays what it was, while the others go on; and of one that is gone, an error in closing what it had open.
    ///
    /// # Errors
    /// As [`Bundle::build_with`], or without `libraries` as [`Bundle::build`].
    pub async fn reload(
        &mut self,
        bundle: &Bundle,
        libraries: Option<&dyn Libraries>,
    ) -> Result<BTreeMap<AgentName, Result<Reloaded>>> {
        let built = bundle.build_agents(&self.store, &self.router, libraries).await?;
        let gone: Vec<_> = self.agents.keys().filter(|name| !built.contains_key(*name)).cloned().collect();
        let mut outcomes = BTreeMap::new();
        for (name, agent) in built {
            if let Some(known) = self.agents.get(&name) {
                outcomes.insert(name, known.reload(&agent).await);
            } else {
                self.router.add(&agent);
                self.agents.insert(name, agent);
            }
        }
        for name in gone {
            self.agents.remove(&name);
            if let Err(error) = self.router.remove(&name).await {
                outcomes.insert(name, Err(error));
            }
        }
        Ok(outcomes)
    }

    /// Closes what the agents opened on behalf of one another.
    ///
    /// # Errors
    /// See [`LocalRouter::close`].
    pub async fn close(&self) -> Result<()> {
        self.router.close().await
    }
}

impl Bundle {
    /// Builds all agents of the bundle over one store, out of extensions of this program. [`Bundle::build_with`] takes those
    /// of libraries, too.
    ///
    /// # Errors
    /// `E_CONFIG_VALUE_NOT_FOUND` for the first value that is not where the bundle takes it from; what
    /// [`AgentBuilder::build`] says of an agent; `E_EXT_LOAD` for an extension in a library.
    pub async fn build(&self, store: impl Store) -> Result<Agents> {
        self.build_from(Arc::new(store), None).await
    }

    /// As [`Bundle::build`], with extensions that `libraries` loads. The code of a library has all rights of the program.
    ///
    /// # Errors
    /// As [`Bundle::build`]; for a library what [`Libraries::load`] says, with its place in the bundle.
    pub async fn build_with(&self, store: impl Store, libraries: &dyn Libraries) -> Result<Agents> {
        self.build_from(Arc::new(store), Some(libraries)).await
    }

    async fn build_from(&self, store: Arc<dyn Store>, libraries: Option<&dyn Libraries>) -> Result<Agents> {
        self.check_values().map_err(Diagnostics::into_error)?;
        let router = LocalRouter::new();
        let agents = self.build_agents(&store, &router, libraries).await?;
        for agent in agents.values() {
            router.add(agent);
        }
        Ok(Agents { agents, router, store })
    }

    /// The agents, which nobody can reach yet.
    async fn build_agents(
        &self,
        store: &Arc<dyn Store>,
        router: &LocalRouter,
        libraries: Option<&dyn Libraries>,
    ) -> Result<BTreeMap<AgentName, Agent>> {
        let mut agents = BTreeMap::new();
        for resource in self.agents() {
            let agent =
                self.builder_of(resource, libraries)?.store(Arc::clone(store)).router(router.clone()).build().await?;
            agents.insert(resource.name.clone(), agent);
        }
        Ok(agents)
    }

    fn builder_of(&self, agent: &AgentResource, libraries: Option<&dyn Libraries>) -> Result<AgentBuilder> {
        let own = self.model_of(agent);
        let mut builder = Agent::builder(agent.name.as_str()).model(model(own));
        // API-11: a step middleware may ask for any other model of the bundle by name.
        for other in self.models().filter(|other| other.name != own.name) {
            builder = builder.named_model(other.name.as_str(), model(other));
        }
        if let Some(system) = &agent.system {
            builder = builder.system(system.as_str());
        }
        let limits = self.policy_of(agent);
        if let Some(steps) = limits.max_steps_per_turn {
            builder = builder.max_steps_per_turn(steps);
        }
        if let Some(timeout) = limits.tool_timeout {
            builder = builder.tool_timeout(timeout);
        }
        for used in &agent.extensions {
            let (name, config) = (used.target.name.as_str(), config(used).map_err(Diagnostics::into_error)?);
            builder = match &used.target.entry {
                Entry::Linked(entry) => builder.linked(name, entry.as_str(), config),
                Entry::Library(library) => builder.described(name, load(library, libraries)?, config),
            };
        }
        Ok(builder)
    }
}

fn load(library: &LibraryEntry, libraries: Option<&dyn Libraries>) -> Result<&'static ExtensionDescriptor> {
    let loaded = match libraries {
        Some(libraries) => libraries.load(library),
        None => Err(Error::new(ErrorCode::EXT_LOAD, "this program loads no libraries")
            .suggest("link the extension into the program, and write `linked:<name>`")),
    };
    loaded.map_err(|error| {
        // LOAD-09: the extension, the code and the cause; and where the bundle names it.
        let message = format!("{}: the extension `{}`: {}", library.at, library.name, error.message());
        let placed = Error::new(error.code().clone(), message);
        let placed = placed.suggest(error.suggestion().unwrap_or("build the library again").to_owned());
        match error.source() {
            Some(cause) => placed.caused_by(cause.to_string()),
            None => placed,
        }
    })
}

/// Every agent plays the script of a model from its beginning.
fn model(resource: &ModelResource) -> ScriptedModel {
    let Provider::Scripted { items, record, .. } = &resource.provider;
    let model = ScriptedModel::new(items.iter().cloned());
    match record {
        Some(record) => model.record(record),
        None => model,
    }
}
