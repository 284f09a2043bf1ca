//! Owns the way from a bundle to the agents that it describes.

use std::collections::BTreeMap;
use std::sync::Arc;

use goondan_core::{Agent, AgentBuilder, AgentName, LocalRouter, Result, ScriptItem, ScriptedModel, Store};

use crate::bundle::config;
use crate::{AgentResource, Bundle, Entry, Faults, ModelResource, Provider, read_yaml};

/// The agents of a bundle, built: they share a store and reach one another.
#[derive(Debug)]
pub struct Agents {
    agents: BTreeMap<AgentName, Agent>,
    router: LocalRouter,
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

    /// Closes what the agents opened on behalf of one another.
    ///
    /// # Errors
    /// See [`LocalRouter::close`].
    pub async fn close(&self) -> Result<()> {
        self.router.close().await
    }
}

impl Bundle {
    /// Builds all agents of the bundle over one store.
    ///
    /// # Errors
    /// `E_CONFIG_VALUE_NOT_FOUND` for the first value that is not where the bundle takes it from; what
    /// [`AgentBuilder::build`] says of an agent, and what [`read_yaml`] says of the script of a model.
    pub async fn build(&self, store: impl Store) -> Result<Agents> {
        self.check_values().map_err(Faults::into_error)?;
        let store: Arc<dyn Store> = Arc::new(store);
        let router = LocalRouter::new();
        let scripts = self.models().map(|model| Ok((model.name.as_str(), script(model)?))).collect::<Result<_>>()?;
        let mut agents = BTreeMap::new();
        for resource in self.agents() {
            let agent =
                self.builder_of(resource, &scripts)?.store(Arc::clone(&store)).router(router.clone()).build().await?;
            router.add(&agent);
            agents.insert(resource.name.clone(), agent);
        }
        Ok(Agents { agents, router })
    }

    fn builder_of(&self, agent: &AgentResource, scripts: &Scripts<'_>) -> Result<AgentBuilder> {
        let own = self.model_of(agent);
        let mut builder = Agent::builder(agent.name.as_str()).model(model(own, scripts));
        // API-11: a step middleware may ask for any other model of the bundle by name.
        for other in self.models().filter(|other| other.name != own.name) {
            builder = builder.named_model(other.name.as_str(), model(other, scripts));
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
            let Entry::Linked(entry) = &used.target.entry;
            let config = config(used).map_err(Faults::into_error)?;
            builder = builder.linked(used.target.name.as_str(), entry.as_str(), config);
        }
        Ok(builder)
    }
}

/// The scripts of the models, by the name of the model: each is read once, and every agent plays it from its beginning.
type Scripts<'a> = BTreeMap<&'a str, Vec<ScriptItem>>;

fn script(model: &ModelResource) -> Result<Vec<ScriptItem>> {
    let Provider::Scripted { script, .. } = &model.provider;
    read_yaml(script)
}

fn model(resource: &ModelResource, scripts: &Scripts<'_>) -> ScriptedModel {
    let Provider::Scripted { record, .. } = &resource.provider;
    let script = scripts.get(resource.name.as_str()).cloned().unwrap_or_default();
    let model = ScriptedModel::new(script);
    match record {
        Some(record) => model.record(record),
        None => model,
    }
}
