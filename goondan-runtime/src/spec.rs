//! The checked description of an agent: everything that a reload can replace.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use goondan_core::{
    AgentEvent, AgentName, BundleFiles, Error, ErrorCode, ExtensionDescriptor, ExtensionName, OnError, Result, Secret,
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::policy::Policy;
use crate::awaited::AwaitedValue;
use crate::ports::model::Model;
use crate::ports::router::Router;
use crate::registry::SharedTools;

/// The checked description of an agent. [`AgentBuilder::build`](super::AgentBuilder::build) makes it.
pub(super) struct AgentSpec {
    pub(super) model: Arc<dyn Model>,
    /// The models that a step middleware may choose, by name.
    pub(super) models: BTreeMap<String, Arc<dyn Model>>,
    pub(super) system: Option<String>,
    pub(super) extensions: Vec<Arc<ExtensionSpec>>,
    pub(super) policy: Policy,
    /// The value that it answers with, unless an event expects another one.
    // VALUE-01
    pub(super) answer: Option<Arc<AwaitedValue>>,
    pub(super) tools: Arc<SharedTools>,
    /// The initial metadata of every turn.
    // CTX-10
    pub(super) hints: Map<String, Value>,
    pub(super) router: Option<Arc<dyn Router>>,
    /// The facts about the program that `#[init]` receives.
    pub(super) opening: Opening,
    /// Masked as long as this exists. The last field: all that has them is dropped before.
    pub(super) _secrets: Vec<Secret>,
}

/// The facts that an agent's program adds to the conversations that it opens.
#[derive(Clone, Debug, Default)]
pub(super) struct Opening {
    /// Absolute.
    pub(super) bundle_root: Option<Arc<Path>>,
    /// The files that no tool should write.
    pub(super) bundle_files: Arc<BundleFiles>,
    /// The environment variables that hold secrets, sorted.
    pub(super) secret_variables: Arc<[String]>,
    /// They are opened only to show the registrations of extensions.
    pub(super) inspect: bool,
}

impl AgentSpec {
    /// Returns the model called `name`.
    ///
    /// # Errors
    /// `E_MODEL_NOT_FOUND`.
    pub(super) fn named_model(&self, name: &str) -> Result<&dyn Model> {
        self.models.get(name).map(|model| &**model).ok_or_else(|| {
            let known: Vec<_> = self.models.keys().map(String::as_str).collect();
            Error::new(ErrorCode::MODEL_NOT_FOUND, format!("the agent has no model `{name}`"))
                .suggest(format!("choose one of its models: {}", known.join(", ")))
        })
    }
}

/// An extension that was found, with a config that fits its schema.
pub(super) struct ExtensionSpec {
    pub(super) name: ExtensionName,
    pub(super) descriptor: &'static ExtensionDescriptor,
    pub(super) config: Value,
    pub(super) on_error: OnError,
    pub(super) covers: Covers,
}

/// Whom an extension that guards covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Covers {
    /// The agent that has it.
    #[default]
    Agent,
    /// Also the agents that this one asks, and those that they ask: a request to an agent without the extension is
    /// refused with `E_GUARD_GAP`.
    Reachable,
    /// The agents of a swarm. Moreover, its layers lie outside of all layers of others, whatever their priorities.
    Swarm,
}

impl ExtensionSpec {
    /// Returns whether the extension guards more than its agent.
    fn covers_others(&self) -> bool {
        self.descriptor.guard && self.covers != Covers::Agent
    }

    /// Returns whether its layers guard the swarm.
    pub(super) fn guards_swarm(&self) -> bool {
        self.descriptor.guard && self.covers == Covers::Swarm
    }
}

impl AgentSpec {
    /// Adds the guards that cover the agents it asks to those that cover the agent.
    // GUARD-01
    pub(super) fn add_guards(&self, guards: &mut Vec<ExtensionName>) {
        for extension in self.extensions.iter().filter(|extension| extension.covers_others()) {
            if !guards.contains(&extension.name) {
                guards.push(extension.name.clone());
            }
        }
    }

    /// Checks that the agent has the guards that cover an event.
    ///
    /// # Errors
    /// `E_GUARD_GAP`.
    // GUARD-01
    pub(super) fn check_guards(&self, agent: &AgentName, event: &AgentEvent) -> Result<()> {
        let has = |guard: &&ExtensionName| {
            self.extensions.iter().any(|extension| extension.name == **guard && extension.descriptor.guard)
        };
        match event.guards.iter().find(|guard| !has(guard)) {
            None => Ok(()),
            Some(missing) => Err(guard_gap(agent, event, missing)),
        }
    }
}

#[cold]
fn guard_gap(agent: &AgentName, event: &AgentEvent, missing: &ExtensionName) -> Error {
    let way: Vec<_> = event.callers.iter().chain([agent]).map(AgentName::as_str).collect();
    let message =
        format!("the agent `{agent}` does not have the guard `{missing}` of those who ask it: {}", way.join(" -> "));
    Error::new(ErrorCode::GUARD_GAP, message)
        .suggest(format!("add `{missing}` to `{agent}`, or to `spec.extensions` of the swarm that has both"))
}

/// Equal specs describe the same extension: the same name, code, config and policy. Code is compared by the address of
/// the descriptor, because a library that was loaded again has another one even if it declares the same.
// LEGACY-RECONCILE-02
impl PartialEq for ExtensionSpec {
    fn eq(&self, other: &Self) -> bool {
        let same_code = std::ptr::eq(self.descriptor, other.descriptor);
        let same_use = self.on_error == other.on_error && self.covers == other.covers;
        self.name == other.name && same_code && self.config == other.config && same_use
    }
}
