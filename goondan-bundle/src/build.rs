//! Builds the agents that a bundle describes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use goondan_core::{AgentName, Error, ErrorCode, ExtensionDescriptor, Result};
use goondan_runtime::schema::{Schema, config_value};
use goondan_runtime::{Agent, AgentBuilder, LocalRouter, MemoryStore, Reloaded, Store, join};
use serde_json::Value;

use crate::bundle::Bundle;
use crate::check::describe;
use crate::diagnostic::Diagnostics;
use crate::libraries::{Libraries, LibraryEntry};
use crate::own_files::OwnFiles;
use crate::read::FetchedConfig;
use crate::resource::{AgentResource, Entry, ExtensionRef};

/// The agents of a bundle, made by [`Bundle::build`]. They share a store, and can send requests to one another.
pub struct Agents {
    agents: BTreeMap<AgentName, Agent>,
    router: LocalRouter,
    store: Arc<dyn Store>,
    purpose: Purpose,
}

/// The purpose of building agents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Run,
    /// To show the registrations of extensions.
    Inspect,
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.agents.values()).finish()
    }
}

impl Agents {
    /// Returns the agent called `name`.
    pub fn get(&self, name: &str) -> Option<&Agent> {
        self.agents.get(name)
    }

    /// Returns all agents, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// Replaces the agents by those of `bundle`: agents with the same name are changed by [`Agent::reload`], new ones
    /// are added and the others are removed. The store stays the same. If the bundle cannot be built, nothing changes.
    ///
    /// Returns the outcome for each agent that existed before, by name. [`Agent::reload`] can refuse to change an
    /// agent, which then stays as it was, while the others are changed. A removed agent is in the map only if closing
    /// its instances failed.
    ///
    /// # Errors
    /// As [`Bundle::build_with`]; without `libraries`, as [`Bundle::build`].
    pub async fn reload(
        &mut self,
        bundle: &Bundle,
        libraries: Option<&dyn Libraries>,
    ) -> Result<BTreeMap<AgentName, Result<Reloaded>>> {
        self.reload_by(bundle, libraries, async |agent, to| agent.reload(to).await).await
    }

    /// As [`Agents::reload`], by [`Agent::reload_at_next_step`]: turns that run continue with their next step on the
    /// new agents.
    ///
    /// A program that reloads when an extension asks for it awaits this beside its turns:
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use goondan::bundle::Agents;
    /// use goondan::{Agent, Bundle, Result};
    ///
    /// async fn reload_on_request(agents: &mut Agents, directory: &Path) -> Result<()> {
    ///     let Some(first) = agents.iter().next() else { return Ok(()) };
    ///     let requests = first.reload_requests()?;
    ///     for agent in agents.iter().skip(1) {
    ///         requests.follow(agent)?;
    ///     }
    ///     let reload = async || agents.reload_at_next_step(&Bundle::load(directory)?, None).await;
    ///     requests.serve(reload, |outcome| println!("{outcome:?}")).await;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Agents::reload`].
    pub async fn reload_at_next_step(
        &mut self,
        bundle: &Bundle,
        libraries: Option<&dyn Libraries>,
    ) -> Result<BTreeMap<AgentName, Result<Reloaded>>> {
        self.reload_by(bundle, libraries, async |agent, to| agent.reload_at_next_step(to).await).await
    }

    async fn reload_by(
        &mut self,
        bundle: &Bundle,
        libraries: Option<&dyn Libraries>,
        reload: impl AsyncFn(&Agent, &Agent) -> Result<Reloaded>,
    ) -> Result<BTreeMap<AgentName, Result<Reloaded>>> {
        let built = bundle.build_agents(&self.store, &self.router, libraries, self.purpose).await?;
        let gone: Vec<_> = self.agents.keys().filter(|name| !built.contains_key(*name)).cloned().collect();
        let (known, new): (Vec<_>, Vec<_>) = built.into_iter().partition(|(name, _)| self.agents.contains_key(name));
        // Before the reloads, because a turn that runs may ask them in its next step.
        for (name, agent) in new {
            self.router.add(&agent);
            self.agents.insert(name, agent);
        }
        // At once, because a turn of one agent may wait for a turn of another.
        let reloads =
            known.iter().map(async |(name, to)| Some((name.clone(), reload(self.agents.get(name)?, to).await)));
        let mut outcomes: BTreeMap<_, _> = join(reloads.collect()).await.into_iter().flatten().collect();
        for name in gone {
            self.agents.remove(&name);
            if let Err(error) = self.router.remove(&name).await {
                outcomes.insert(name, Err(error));
            }
        }
        Ok(outcomes)
    }

    /// Closes the instances that the agents opened for requests to one another.
    ///
    /// # Errors
    /// See [`LocalRouter::close`].
    pub async fn close(&self) -> Result<()> {
        self.router.close().await
    }
}

impl Bundle {
    /// Builds all agents of the bundle over one store, with the extensions that are linked into this program. For
    /// extensions in libraries, use [`Bundle::build_with`].
    ///
    /// # Errors
    /// `E_CONFIG_VALUE_NOT_FOUND` for the first value that is missing in the environment, the errors of
    /// [`AgentBuilder::build`] and of the providers of models, and `E_EXT_LOAD` for an extension in a library.
    pub async fn build(&self, store: impl Store) -> Result<Agents> {
        self.build_from(Arc::new(store), None, Purpose::Run).await
    }

    /// As [`Bundle::build`], also with extensions in libraries, which `libraries` loads. The code of a library runs
    /// with all rights of the program.
    ///
    /// # Errors
    /// As [`Bundle::build`], and the errors of [`Libraries::load`], each with the place of the library in the bundle.
    pub async fn build_with(&self, store: impl Store, libraries: &dyn Libraries) -> Result<Agents> {
        self.build_from(Arc::new(store), Some(libraries), Purpose::Run).await
    }

    /// As [`Bundle::build_with`], for a program that runs no turn but shows the registrations of extensions:
    /// [`InitContext::inspect`](goondan_core::InitContext::inspect) is true. Conversations are in memory.
    ///
    /// # Errors
    /// As [`Bundle::build_with`].
    pub async fn build_to_inspect(&self, libraries: &dyn Libraries) -> Result<Agents> {
        let store = Arc::new(MemoryStore::new().with_directories());
        self.build_from(store, Some(libraries), Purpose::Inspect).await
    }

    async fn build_from(
        &self,
        store: Arc<dyn Store>,
        libraries: Option<&dyn Libraries>,
        purpose: Purpose,
    ) -> Result<Agents> {
        self.check_values().map_err(Diagnostics::into_error)?;
        let router = LocalRouter::new();
        let agents = self.build_agents(&store, &router, libraries, purpose).await?;
        for agent in agents.values() {
            router.add(agent);
        }
        Ok(Agents { agents, router, store, purpose })
    }

    /// The agents, before they are added to the router.
    async fn build_agents(
        &self,
        store: &Arc<dyn Store>,
        router: &LocalRouter,
        libraries: Option<&dyn Libraries>,
        purpose: Purpose,
    ) -> Result<BTreeMap<AgentName, Agent>> {
        let (mut agents, mut files) = (BTreeMap::new(), OwnFiles::new(self));
        let builders = self.agents().map(|resource| Ok((resource, self.builder_of(resource, libraries, &mut files)?)));
        let builders: Vec<_> = builders.collect::<Result<_>>()?;
        let files = Arc::new(files.list());
        for (resource, builder) in builders {
            let builder = builder.store(Arc::clone(store)).router(router.clone()).bundle_files(Arc::clone(&files));
            let builder = builder.secret_variables(self.secret_variables());
            let builder = if purpose == Purpose::Inspect { builder.inspect() } else { builder };
            let agent = builder.build().map_err(|error| placed(error, resource, libraries))?;
            agents.insert(resource.name.clone(), agent);
        }
        Ok(agents)
    }

    /// Also adds the files that commands of the agent name to `files`.
    fn builder_of(
        &self,
        agent: &AgentResource,
        libraries: Option<&dyn Libraries>,
        files: &mut OwnFiles<'_>,
    ) -> Result<AgentBuilder> {
        // Each agent gets models of its own, so that a script is played from its beginning.
        let (own, secrets) = agent.model.build(self.root())?;
        let mut builder = Agent::builder(agent.name.as_str()).model(Arc::clone(&own)).keep_secrets(secrets);
        builder = builder.bundle_root(self.root());
        // API-11: a step middleware can switch to other models by name, and back.
        builder = builder.named_model(agent.model.name.as_str(), own);
        for other in self.models_of(agent).skip(1) {
            let (model, secrets) = other.build(self.root())?;
            builder = builder.named_model(other.name.as_str(), model).keep_secrets(secrets);
        }
        if let Some(system) = &agent.system {
            builder = builder.system(system.as_str());
        }
        if let Some(answer) = &agent.answer {
            builder = builder.answer(answer.clone());
        }
        builder = builder.policy(self.policy_of(agent).complete());
        for used in &agent.extensions {
            let name = used.target.name.as_str();
            let FetchedConfig { config, secrets } = used.fetch_config().map_err(Diagnostics::into_error)?;
            builder = builder.keep_secrets(secrets);
            builder = match &used.target.entry {
                Entry::Linked(entry) => {
                    files.add_commands(used, || used.target.entry.linked_schema());
                    builder.linked_extension(name, entry.as_str(), config)
                }
                Entry::Library(library) => {
                    let descriptor = load(library, libraries)?;
                    files.add_commands(used, || Some((descriptor.config_schema)()));
                    builder.described_extension(name, descriptor, config)
                }
            };
            builder = builder.on_error(name, used.on_error).covers(name, used.covers);
        }
        Ok(builder)
    }
}

impl Entry {
    /// Returns the schema of the config; `None` for an extension that is not linked into this program. A library is
    /// loaded for it.
    ///
    /// # Errors
    /// The errors of [`Libraries::load`], with the place of the library in the bundle.
    pub fn config_schema(&self, libraries: Option<&dyn Libraries>) -> Result<Option<Value>> {
        match self {
            Self::Linked(_) => Ok(self.linked_schema()),
            Self::Library(library) => Ok(Some((load(library, libraries)?.config_schema)())),
        }
    }
}

fn load(library: &LibraryEntry, libraries: Option<&dyn Libraries>) -> Result<&'static ExtensionDescriptor> {
    let loaded = match libraries {
        Some(libraries) => libraries.load(library),
        None => Err(Error::new(ErrorCode::EXT_LOAD, "this program loads no libraries")
            .suggest("link the extension into the program, and write `linked:<name>`")),
    };
    loaded.map_err(|error| {
        // LOAD-09: the error names the extension, the code and the cause; and the place in the bundle.
        let message = format!("{}: the extension `{}`: {}", library.at, library.name, error.message());
        let placed = Error::new(error.code().clone(), message);
        let placed = placed.suggest(error.suggestion().unwrap_or("build the library again").to_owned());
        match error.source() {
            Some(cause) => placed.caused_by(cause.to_string()),
            None => placed,
        }
    })
}

/// Adds the place to an error about the config of an extension: the schema of a library, and the values from the
/// environment, are not known before.
fn placed(error: Error, agent: &AgentResource, libraries: Option<&dyn Libraries>) -> Error {
    let named = |used: &&ExtensionRef| error.extension() == Some(&used.target.name);
    let used = agent.extensions.iter().find(named).filter(|_| *error.code() == ErrorCode::EXT_CONFIG);
    used.and_then(|used| config_error(used, libraries)).unwrap_or(error)
}

/// The error for the violations of the schema of an extension by the config of its use.
fn config_error(used: &ExtensionRef, libraries: Option<&dyn Libraries>) -> Option<Error> {
    let written = used.target.entry.config_schema(libraries).ok()??;
    // The error quotes values, which are masked as long as these are.
    let FetchedConfig { config, secrets: _secrets } = used.fetch_config().ok()?;
    let config = config_value(&written, config);
    let errors = Schema::derived(&written).ok()?.violations(&config).into_iter().map(|violation| {
        let (message, remedy) = describe(&violation, &used.target);
        let keys = violation.keys();
        used.places_of(&keys).error(ErrorCode::EXT_CONFIG, &keys, message, remedy)
    });
    Diagnostics::new(errors.collect()).map(Diagnostics::into_error)
}
