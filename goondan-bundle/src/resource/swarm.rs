//! Owns the kind `Swarm`: which agents work together, and who of them is spoken to.

use std::sync::Arc;

use goondan_core::ErrorCode;
use goondan_core::store::Fsync;

use super::{AgentResource, Policy};
use crate::document::{Document, Kind};
use crate::field::Field;
use crate::reference::{Names, Resource, items};
use crate::shape::{MEMBER, SWARM};

/// Agents that work together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SwarmResource {
    /// `metadata.name`.
    pub name: String,
    /// `spec.instanceKey`: the name of its workspace, if that is not the name of the swarm (F-STORE).
    pub instance_key: Option<String>,
    /// Its agents, in the order of the file.
    pub agents: Vec<Arc<AgentResource>>,
    /// The one of its agents that input goes to.
    pub entry_agent: Arc<AgentResource>,
    /// `spec.fsync`: when its conversations are synced to the disk, if it says so.
    pub fsync: Option<Fsync>,
    /// Limits for its agents that have none of their own (D-22).
    pub policy: Policy,
}

impl Resource for SwarmResource {
    const KIND: Kind = Kind::Swarm;

    fn name(&self) -> &str {
        &self.name
    }
}

impl SwarmResource {
    pub(crate) fn read(document: &Document<'_>, names: &Names<'_>, read: &[Arc<AgentResource>]) -> Option<Self> {
        let spec = document.spec.as_ref()?.table(&SWARM)?;
        let instance_key = spec.get("instanceKey").map(|field| read_instance_key(&field));
        let fsync = spec.get("fsync").and_then(|field| read_fsync(&field));
        let list = spec.need("agents");
        let agents = list.and_then(|list| read_agents(&list, names, read));
        let entry = spec.need("entryAgent");
        let entry = entry.and_then(|field| Some((names.resolve(&field, read)?, field)));
        let policy = spec.get("policy").map_or_else(|| Some(Policy::default()), |field| Policy::read(&field));
        let (agents, (entry_agent, field)) = (agents?, entry?);
        if !agents.iter().any(|agent| agent.name == entry_agent.name) {
            field.refuse(
                ErrorCode::CONFIG_SCHEMA,
                format!("{} must be one of `spec.agents`, which does not hold `{}`", field.name(), entry_agent.name),
                format!("add `{{ ref: \"Agent/{}\" }}` to `spec.agents`", entry_agent.name),
            );
        }
        let instance_key = instance_key.unwrap_or_default();
        Some(Self { name: document.name()?.to_owned(), instance_key, agents, entry_agent, fsync, policy: policy? })
    }
}

fn read_instance_key(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    if text.trim().is_empty() {
        field.expected("text that is not empty");
    }
    Some(text.to_owned())
}

fn read_fsync(field: &Field<'_>) -> Option<Fsync> {
    let levels = [Fsync::Turn, Fsync::Always, Fsync::Never];
    let word = field.word(&levels.map(Fsync::as_str))?;
    levels.into_iter().find(|level| level.as_str() == word)
}

/// The agents of the list; `None` if one of them is not known, so that nothing more is said about the list.
fn read_agents(list: &Field<'_>, names: &Names<'_>, read: &[Arc<AgentResource>]) -> Option<Vec<Arc<AgentResource>>> {
    let fields = list.items()?;
    if fields.is_empty() {
        list.refuse(
            ErrorCode::CONFIG_SCHEMA,
            format!("{} must name at least one agent", list.name()),
            "add `{ ref: \"Agent/<name>\" }`",
        );
        return None;
    }
    let mut agents: Vec<Arc<AgentResource>> = Vec::new();
    for item in items(list, &MEMBER) {
        let Some(field) = item.need("ref") else { continue };
        let Some(agent) = names.resolve(&field, read) else { continue };
        if agents.iter().any(|earlier| earlier.name == agent.name) {
            let message = format!("the agent `{}` is listed twice", agent.name);
            field.refuse(ErrorCode::CONFIG_SCHEMA, message, "keep one of the two");
            continue;
        }
        agents.push(agent);
    }
    (agents.len() == fields.len()).then_some(agents)
}
