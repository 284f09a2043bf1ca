//! Owns the way from a bundle to the agents that it describes.

use goondan_core::{Agent, AgentBuilder, Result, ScriptItem, ScriptedModel};

use crate::{AgentResource, Bundle, Entry, Provider, read_yaml};

impl Bundle {
    /// The agent called `name`, or the entry agent, ready to be given a store and built.
    ///
    /// # Errors
    /// `E_CONFIG_REF_NOT_FOUND` when there is no such agent, and what [`read_yaml`] says of the model's script.
    pub fn agent_builder(&self, name: Option<&str>) -> Result<AgentBuilder> {
        let agent = match name {
            Some(name) => self.agent(name)?,
            None => self.entry_agent()?,
        };
        let mut builder = Agent::builder(agent.name.as_str()).model(self.model(agent)?);
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
        for (name, entry, config) in self.extensions_of(agent) {
            let Entry::Linked(entry) = entry;
            builder = builder.linked(name.as_str(), entry.as_str(), config);
        }
        Ok(builder)
    }

    fn model(&self, agent: &AgentResource) -> Result<ScriptedModel> {
        let Provider::Scripted { script, record } = &self.model_of(agent).provider;
        let items: Vec<ScriptItem> = read_yaml(script)?;
        let model = ScriptedModel::new(items);
        Ok(match record {
            Some(record) => model.record(record),
            None => model,
        })
    }
}
