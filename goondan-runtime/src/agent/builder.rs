//! The builder of agents: collects a description, and checks it before anything runs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use goondan_core::host::depth::{self, TooDeep, Unchecked};
use goondan_core::{
    API_VERSION, AgentName, AnswerFormat, BundleFiles, Error, ErrorCode, Extension, ExtensionDescriptor, ExtensionName,
    OnError, Result, Secret, linked,
};
use serde_json::Value;

use super::Agent;
use crate::awaited::AwaitedValue;
use crate::instance::AgentInner;
use crate::memory_store::MemoryStore;
use crate::policy::Policy;
use crate::ports::model::Model;
use crate::ports::observer::Observer;
use crate::ports::router::Router;
use crate::ports::store::Store;
use crate::schema::{Schema, config_value, summary};
use crate::spec::{AgentSpec, Covers, ExtensionSpec, Opening};
use crate::turn::Observers;

/// The capabilities that every host offers.
const BUILT_IN: [&str; 6] = ["pipeline", "tools", "state", "events", "logger", "agents"];

/// Describes an agent; returned by [`Agent::builder`]. Only the model is required. Nothing is checked before
/// [`AgentBuilder::build`].
///
/// ```
/// use std::num::NonZeroU32;
///
/// use goondan::model::{ScriptItem, ScriptedModel};
/// use goondan::prelude::*;
/// use goondan::store::MemoryStore;
/// use goondan::{Agent, json};
///
/// # struct Greeting;
/// #[goondan::extension(name = "greeting")]
/// impl Greeting {
///     // …
/// #   #[init]
/// #   fn new() -> Self {
/// #       Self
/// #   }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let agent = Agent::builder("assistant")
///     .model(ScriptedModel::new([ScriptItem::say("hi")]))
///     .system("Answer briefly.")
///     .extension::<Greeting>(json!({}))
///     .store(MemoryStore::new())
///     .max_steps_per_turn(NonZeroU32::new(8).unwrap())
///     .build()?;
/// assert_eq!(agent.instance("user:42").await?.run("hello").await?.text(), "hi");
/// # Ok::<(), Error>(())
/// # })?;
/// # Ok::<(), Error>(())
/// ```
#[must_use = "an agent is made by `build`"]
pub struct AgentBuilder {
    name: String,
    model: Option<Arc<dyn Model>>,
    models: BTreeMap<String, Arc<dyn Model>>,
    system: Option<String>,
    extensions: Vec<RequestedExtension>,
    /// By the name of the extension.
    on_error: BTreeMap<String, OnError>,
    covers: BTreeMap<String, Covers>,
    policy: Policy,
    answer: Option<AnswerFormat>,
    hints: Unchecked,
    capabilities: BTreeSet<String>,
    router: Option<Arc<dyn Router>>,
    store: Arc<dyn Store>,
    idle_after: Option<Duration>,
    observers: Observers,
    opening: Opening,
    secrets: Vec<Secret>,
}

/// An extension as it was passed to the builder.
struct RequestedExtension {
    /// Its name in the agent; defaults to the name in the descriptor.
    name: Option<String>,
    source: ExtensionSource,
    config: Result<Value, TooDeep>,
}

/// Where the code of an extension comes from.
enum ExtensionSource {
    Descriptor(&'static ExtensionDescriptor),
    /// The name of an extension that is linked into this program.
    Linked(String),
}

impl AgentBuilder {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            model: None,
            models: BTreeMap::new(),
            system: None,
            extensions: Vec::new(),
            on_error: BTreeMap::new(),
            covers: BTreeMap::new(),
            policy: Policy::default(),
            answer: None,
            hints: Unchecked::default(),
            capabilities: BUILT_IN.iter().map(|name| (*name).to_owned()).collect(),
            router: None,
            store: Arc::new(MemoryStore::new()),
            idle_after: None,
            observers: Observers::default(),
            opening: Opening::default(),
            secrets: Vec::new(),
        }
    }

    /// Sets the model that answers.
    pub fn model(mut self, model: impl Model) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Adds a model that a step middleware can choose by `name`: see
    /// [`StepContext::set_model`](goondan_core::StepContext::set_model).
    // API-11
    pub fn named_model(mut self, name: impl Into<String>, model: impl Model) -> Self {
        self.models.insert(name.into(), Arc::new(model));
        self
    }

    /// Sets the instructions of the agent. They are a field of every model request, and never a message.
    // D-19
    pub fn system(mut self, system: impl Into<String>) -> Self {
        self.system = Some(system.into());
        self
    }

    /// Adds the extension `E`. Extensions are registered in the order in which they are added.
    // ENTRY-02, ORDER-04
    pub fn extension<E: Extension>(mut self, config: Value) -> Self {
        self.extensions.push(RequestedExtension {
            name: None,
            source: ExtensionSource::Descriptor(E::DESCRIPTOR),
            config: depth::checked(config),
        });
        self
    }

    /// Adds the extension `entry` that is linked into this program, under the name `name`, to which its state belongs.
    // STATE-03
    pub fn linked_extension(mut self, name: impl Into<String>, entry: impl Into<String>, config: Value) -> Self {
        self.extensions.push(RequestedExtension {
            name: Some(name.into()),
            source: ExtensionSource::Linked(entry.into()),
            config: depth::checked(config),
        });
        self
    }

    /// Adds the extension of `descriptor`, such as one of a library, under the name `name`, to which its state belongs.
    // STATE-03
    pub fn described_extension(
        mut self,
        name: impl Into<String>,
        descriptor: &'static ExtensionDescriptor,
        config: Value,
    ) -> Self {
        self.extensions.push(RequestedExtension {
            name: Some(name.into()),
            source: ExtensionSource::Descriptor(descriptor),
            config: depth::checked(config),
        });
        self
    }

    /// Sets the effect of a failure of the layers of `extension`, which is the name of an added extension. Defaults to
    /// [`OnError::Abort`]; with [`OnError::Skip`], the run goes on without a layer that failed.
    ///
    /// ```
    /// use goondan::middleware::OnError;
    /// use goondan::model::{ScriptItem, ScriptedModel};
    /// use goondan::prelude::*;
    /// use goondan::{Agent, json};
    ///
    /// struct Broken;
    ///
    /// #[goondan::extension(name = "broken")]
    /// impl Broken {
    ///     #[init]
    ///     fn new() -> Self {
    ///         Self
    ///     }
    ///
    ///     #[middleware(turn)]
    ///     async fn fail(&self, _: &mut TurnContext<'_>, _: Next<'_, Turn>) -> Result<TurnResult> {
    ///         Err(Error::msg("no connection"))
    ///     }
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi")]));
    /// let agent = agent.extension::<Broken>(json!({})).on_error("broken", OnError::Skip).build()?;
    /// assert_eq!(agent.instance("user:42").await?.run("hello").await?.text(), "hi");
    /// # Ok::<(), Error>(())
    /// # })?;
    /// # Ok::<(), Error>(())
    /// ```
    // FAIL-01
    pub fn on_error(mut self, extension: impl Into<String>, on_error: OnError) -> Self {
        self.on_error.insert(extension.into(), on_error);
        self
    }

    /// Sets whom an extension that guards covers: its agent, unless this says more.
    // GUARD-01
    pub fn covers(mut self, extension: impl Into<String>, covers: Covers) -> Self {
        self.covers.insert(extension.into(), covers);
        self
    }

    /// Sets the store of the conversations. Defaults to a [`MemoryStore`].
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Closes a conversation in which nothing happened for `time`, and opens it again with the next input. Its handles
    /// stay valid, and without a handle it stays open for the same time. Closing is the same as by
    /// [`Instance::close`](super::Instance::close): extensions are cleaned up, history and extensions are dropped from
    /// memory, files and locks are released. Opening reads everything from the store, so only what extensions keep
    /// outside of their state is lost.
    ///
    /// A conversation is not idle while a turn runs or is queued, a [`TurnStream`](crate::TurnStream) exists, event
    /// handlers run, or answers of other agents are awaited or not yet read. Tasks that an extension spawned do not
    /// count; its cleanup should end them. The tokio runtime must outlive open conversations:
    /// [`Agent::close`](super::Agent::close) closes those that are left.
    ///
    /// By default, a conversation is open as long as a handle to it exists, and one that a
    /// [`LocalRouter`](crate::LocalRouter) opened for other agents is closed after 5 idle minutes.
    ///
    /// ```
    /// use std::time::Duration;
    /// use goondan::Agent;
    /// use goondan::model::{ScriptItem, ScriptedModel};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let model = ScriptedModel::new([ScriptItem::say("hi").repeat()]);
    /// let agent = Agent::builder("assistant").model(model).idle_after(Duration::from_secs(600)).build()?;
    /// // For each request: the conversation is still open if the previous request was recent.
    /// agent.instance("user:42").await?.run("hello").await?;
    /// agent.instance("user:42").await?.run("hello again").await?;
    /// // At the end of the program.
    /// agent.close().await?;
    /// # Ok::<(), goondan::Error>(())
    /// # })?;
    /// # Ok::<(), goondan::Error>(())
    /// ```
    pub fn idle_after(mut self, time: Duration) -> Self {
        self.idle_after = Some(time);
        self
    }

    /// Adds an observer of all conversations. Observers are told in the order in which they are added. They belong to
    /// the agent: a reload leaves them as they are.
    // OBSERVE-01
    pub fn observer(self, observer: impl Observer) -> Self {
        self.observers.add(observer);
        self
    }

    /// Sets the router to other agents. By default there is none. Add the agent to the router once it is built.
    pub fn router(mut self, router: impl Router) -> Self {
        self.router = Some(Arc::new(router));
        self
    }

    /// Sets the directory at which relative paths in the configs of extensions start. Bundles set it.
    pub fn bundle_root(mut self, root: impl AsRef<Path>) -> Self {
        let root = root.as_ref();
        // Fails for an empty path and without a current directory; the path then stays as it was given.
        self.opening.bundle_root = Some(std::path::absolute(root).as_deref().unwrap_or(root).into());
        self
    }

    /// Sets the files that the agent is made of, which extensions do not write for a model:
    /// [`InitContext::bundle_files`](goondan_core::InitContext::bundle_files). Bundles set them.
    // TREE-01
    pub fn bundle_files(mut self, files: impl Into<Arc<BundleFiles>>) -> Self {
        self.opening.bundle_files = files.into();
        self
    }

    /// Sets the names of the environment variables that hold secrets, which extensions keep from the processes that
    /// they start: [`InitContext::secret_variables`](goondan_core::InitContext::secret_variables). Bundles set them.
    // ENV-01
    pub fn secret_variables<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        self.opening.secret_variables = names.into_iter().collect();
        self
    }

    /// Tells extensions that conversations are opened only to show their registrations:
    /// [`InitContext::inspect`](goondan_core::InitContext::inspect).
    pub fn inspect(mut self) -> Self {
        self.opening.inspect = true;
        self
    }

    /// Sets the limits of turns.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the value that the agent answers with, unless an event expects another one: see
    /// [`AgentEvent::expecting`](goondan_core::AgentEvent::expecting).
    // VALUE-01
    pub fn answer(mut self, format: AnswerFormat) -> Self {
        self.answer = Some(format);
        self
    }

    /// Sets how many steps a turn may have. Defaults to 32.
    // D-22
    pub fn max_steps_per_turn(mut self, steps: NonZeroU32) -> Self {
        self.policy.max_steps_per_turn = steps;
        self
    }

    /// Sets how long the handler of a tool call may take. Defaults to 120 s.
    // TIME-01
    pub fn tool_timeout(mut self, timeout: Duration) -> Self {
        self.policy.tool_timeout = timeout;
        self
    }

    /// Adds a value to the initial metadata of every turn, which extensions can read.
    // CTX-10
    pub fn hint(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.hints.insert(key.into(), value.into());
        self
    }

    /// Keeps `secrets` masked as long as the agent exists: those in the configs of its extensions and models.
    pub fn keep_secrets(mut self, secrets: impl IntoIterator<Item = Secret>) -> Self {
        self.secrets.extend(secrets);
        self
    }

    /// Adds a capability that this program offers to extensions that require it by name. Every program offers
    /// `pipeline`, `tools`, `state`, `events`, `logger` and `agents`.
    // COMPAT-03
    pub fn capability(mut self, name: impl Into<String>) -> Self {
        self.capabilities.insert(name.into());
        self
    }

    /// Checks the description, and returns the agent: names, extensions, the versions that they were built for, and
    /// their configs. No code of an extension runs before [`Agent::instance`].
    ///
    /// # Errors
    /// `E_CONFIG_…` for the agent itself; `E_EXT_LOAD` for an extension that is not linked, `E_EXT_COMPAT` for one
    /// that was built for another version of the contract or requires a missing capability, `E_SCHEMA_INVALID` for a
    /// tool or a config that no object can fit, or an answer whose schema is none, `E_EXT_CONFIG` for a config that
    /// violates its schema or is nested too deeply, `E_EXT_GUARD` for an extension that guards and whose failures are
    /// to be skipped; `E_VALUE_DEPTH` for a hint, or the schema of an answer, that is nested too deeply.
    // LOAD-10
    pub fn build(self) -> Result<Agent> {
        let name = AgentName::new(&self.name)?;
        let hints = self.hints.into_checked().map_err(|error| error.refuse("a hint"))?;
        let answer = self.answer.map(AnswerFormat::checked).transpose()?;
        let model = self.model.ok_or_else(|| {
            Error::new(ErrorCode::CONFIG_SCHEMA, format!("the agent `{name}` has no model"))
                .suggest("call `.model(…)` before `.build()`")
        })?;
        let check = |requested: RequestedExtension| {
            let mut checked = requested.check(&self.capabilities, &self.on_error)?;
            if let Some(covers) = self.covers.get(checked.name.as_str()) {
                checked.covers = *covers;
            }
            check_covers(&checked)?;
            Ok(Arc::new(checked))
        };
        let extensions = self.extensions.into_iter().map(check);
        let extensions = extensions.collect::<Result<Vec<_>>>()?;
        let mut seen = HashSet::new();
        if let Some(twice) = extensions.iter().find(|extension| !seen.insert(&extension.name)) {
            let message = format!("the agent `{name}` has two extensions called `{}`", twice.name);
            return Err(Error::new(ErrorCode::CONFIG_DUPLICATE_NAME, message)
                .suggest("give one of them another name: state and order go by it"));
        }
        let added =
            |(_, wanted): &(&str, &String)| !extensions.iter().any(|extension| extension.name.as_str() == *wanted);
        let named = self.on_error.keys().map(|name| ("on_error", name));
        let named = named.chain(self.covers.keys().map(|name| ("covers", name)));
        if let Some((setting, unknown)) = named.into_iter().find(added) {
            let names: Vec<_> = extensions.iter().map(|extension| extension.name.as_str()).collect();
            let message = format!("`{setting}` names `{unknown}`, and the agent `{name}` has no such extension");
            let known =
                if names.is_empty() { "it has none".to_owned() } else { format!("it has: {}", names.join(", ")) };
            return Err(Error::new(ErrorCode::CONFIG_REF_NOT_FOUND, message).suggest(known));
        }
        let spec = AgentSpec {
            model,
            models: self.models,
            system: self.system,
            extensions,
            policy: self.policy,
            answer: answer.as_ref().map(AwaitedValue::new).transpose()?.map(Arc::new),
            tools: Arc::default(),
            hints,
            router: self.router,
            opening: self.opening,
            _secrets: self.secrets,
        };
        let mut agent = AgentInner::new(name, spec, self.store, self.idle_after);
        agent.observers = Arc::new(self.observers);
        Ok(Agent { inner: Arc::new(agent) })
    }
}

impl RequestedExtension {
    fn check(self, capabilities: &BTreeSet<String>, on_error: &BTreeMap<String, OnError>) -> Result<ExtensionSpec> {
        let descriptor = match &self.source {
            ExtensionSource::Descriptor(descriptor) => descriptor,
            ExtensionSource::Linked(name) => find_linked(name)?,
        };
        let name = ExtensionName::new(self.name.as_deref().unwrap_or(descriptor.name))?;
        check_compatibility(descriptor, capabilities).map_err(|error| error.at(&name, "load"))?;
        let on_error = on_error.get(name.as_str()).copied().unwrap_or_default();
        descriptor.check_on_error(on_error).map_err(|error| error.at(&name, "load"))?;
        crate::schema::check_descriptor(descriptor).map_err(|error| error.at(&name, "load"))?;
        let written = (descriptor.config_schema)();
        let schema = Schema::derived(&written).map_err(|error| error.at(&name, "config schema"))?;
        let config =
            self.config.map_err(|error| error.into_error(ErrorCode::EXT_CONFIG, "the config").at(&name, "config"))?;
        let config = config_value(&written, config);
        let violations = schema.violations(&config);
        if !violations.is_empty() {
            return Err(Error::new(
                ErrorCode::EXT_CONFIG,
                format!("the config does not fit: {}", summary(&violations)),
            )
            .suggest("the paths are places in the extension's `config`; see its documentation for what they take")
            .at(&name, "config"));
        }
        Ok(ExtensionSpec { name, descriptor, config, on_error, covers: Covers::default() })
    }
}

/// Checks that an extension which covers the agents that this one asks guards.
fn check_covers(extension: &ExtensionSpec) -> Result<()> {
    if extension.covers != Covers::Reachable || extension.descriptor.guard {
        return Ok(());
    }
    let error = Error::new(ErrorCode::EXT_GUARD, "the extension does not guard, so it cannot cover other agents")
        .suggest("write `#[goondan::extension(name = \"…\", guard)]`, or leave `covers` out");
    Err(error.at(&extension.name, "load"))
}

/// Checks the version of the contract and the capabilities, before any code of the extension runs (LOAD-10).
fn check_compatibility(descriptor: &ExtensionDescriptor, capabilities: &BTreeSet<String>) -> Result<()> {
    if descriptor.api_version != API_VERSION {
        let message = format!("built for `{}`; this host speaks `{API_VERSION}`", descriptor.api_version);
        return Err(Error::new(ErrorCode::EXT_COMPAT, message)
            .suggest("build the extension and the host with the same major version of goondan"));
    }
    let missing: Vec<_> = descriptor.requires.iter().filter(|name| !capabilities.contains(**name)).copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    // COMPAT-02: the error names the missing one.
    let offered: Vec<_> = capabilities.iter().map(String::as_str).collect();
    let message = format!("needs `{}`, which this host does not offer", missing.join("`, `"));
    Err(Error::new(ErrorCode::EXT_COMPAT, message).suggest(format!(
        "the host offers: {}; a program that offers more says so by `AgentBuilder::capability`",
        offered.join(", ")
    )))
}

/// Returns the extension called `entry` that is linked into this program.
fn find_linked(entry: &str) -> Result<&'static ExtensionDescriptor> {
    let all = linked();
    let mut found = all.iter().filter(|descriptor| descriptor.name == entry);
    match (found.next(), found.next()) {
        (Some(descriptor), None) => Ok(descriptor),
        (Some(one), Some(other)) => {
            let message =
                format!("two crates, `{}` and `{}`, link an extension called `{entry}`", one.package, other.package);
            Err(Error::new(ErrorCode::EXT_LOAD, message).suggest("rename one of them, or link only one of the crates"))
        }
        (None, _) => {
            let names: Vec<_> = all.iter().map(|descriptor| descriptor.name).collect();
            let message = format!("no extension called `{entry}` is linked into this program");
            let known =
                if names.is_empty() { "none is".to_owned() } else { format!("linked are: {}", names.join(", ")) };
            Err(Error::new(ErrorCode::EXT_LOAD, message).suggest(format!(
                "{known}; a crate that nothing names is left out by the linker: depend on it and write `use {} as _;`",
                entry.replace('-', "_")
            )))
        }
    }
}
