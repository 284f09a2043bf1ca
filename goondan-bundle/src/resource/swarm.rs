//! The kind `Swarm`: agents that work together, and the one of them that receives input.

use std::sync::Arc;

use goondan_core::ErrorCode;
use goondan_file_store::Fsync;

use super::{AgentResource, Policy};
use crate::kind::Kind;
use crate::read::{Cursor, Document, MapReader, Names, Resource};
use crate::schema::{MEMBER, SWARM};

/// Agents that work together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SwarmResource {
    /// `metadata.name`.
    pub name: String,
    /// `spec.instanceKey`: the name of its workspace, if it differs from the name of the swarm.
    // F-STORE
    pub instance_key: Option<String>,
    /// Its agents, in the order of the file.
    pub agents: Vec<Arc<AgentResource>>,
    /// The agent that receives input: one of [`agents`](Self::agents).
    pub entry_agent: Arc<AgentResource>,
    /// `spec.fsync`: when its conversations are synced to the disk, if it is written.
    pub fsync: Option<Fsync>,
    /// The limits for its agents where they set none themselves.
    // D-22
    pub policy: Policy,
}

impl Resource for SwarmResource {
    const KIND: Kind = Kind::Swarm;

    fn name(&self) -> &str {
        &self.name
    }
}

impl SwarmResource {
    pub(crate) fn read(document: &Document<'_>, names: &Names<'_>, agents: &[Arc<AgentResource>]) -> Option<Self> {
        let spec = MapReader::new(document.spec.as_ref()?, &SWARM)?;
        let instance_key = spec.get("instanceKey").map(|key| read_instance_key(&key));
        let fsync = spec.get("fsync").and_then(|fsync| read_fsync(&fsync));
        let members = spec.require("agents").and_then(|list| read_members(&list, names, agents));
        let entry = spec.require("entryAgent").and_then(|entry| Some((names.resolve(&entry, agents)?, entry)));
        let policy = spec.get("policy").map_or_else(|| Some(Policy::default()), |policy| Policy::read(&policy));
        let (agents, (entry_agent, cursor)) = (members?, entry?);
        if !agents.iter().any(|agent| agent.name == entry_agent.name) {
            cursor.error(
                ErrorCode::CONFIG_SCHEMA,
                format!("{} must be one of `spec.agents`, which does not hold `{}`", cursor.name(), entry_agent.name),
                format!("add `{{ ref: \"Agent/{}\" }}` to `spec.agents`", entry_agent.name),
            );
        }
        let instance_key = instance_key.unwrap_or_default();
        Some(Self { name: document.name()?.to_owned(), instance_key, agents, entry_agent, fsync, policy: policy? })
    }
}

fn read_instance_key(cursor: &Cursor<'_>) -> Option<String> {
    let text = cursor.text()?;
    if text.trim().is_empty() {
        cursor.expected("text that is not empty");
    }
    Some(text.to_owned())
}

fn read_fsync(cursor: &Cursor<'_>) -> Option<Fsync> {
    let levels = [Fsync::Turn, Fsync::Always, Fsync::Never];
    let word = cursor.choice(&levels.map(Fsync::as_str))?;
    levels.into_iter().find(|level| level.as_str() == word)
}

/// The agents of the list; `None` if one of them cannot be resolved, so that no check of the whole list follows.
fn read_members(
    list: &Cursor<'_>,
    names: &Names<'_>,
    agents: &[Arc<AgentResource>],
) -> Option<Vec<Arc<AgentResource>>> {
    let items = list.items()?;
    if items.is_empty() {
        list.error(
            ErrorCode::CONFIG_SCHEMA,
            format!("{} must name at least one agent", list.name()),
            "add `{ ref: \"Agent/<name>\" }`",
        );
        return None;
    }
    let mut members: Vec<Arc<AgentResource>> = Vec::new();
    for item in names.list::<AgentResource>(list, &MEMBER) {
        let Some(reference) = item.require("ref") else { continue };
        let Some(agent) = names.resolve(&reference, agents) else { continue };
        if members.iter().any(|earlier| earlier.name == agent.name) {
            let message = format!("the agent `{}` is listed twice", agent.name);
            reference.error(ErrorCode::CONFIG_SCHEMA, message, "keep one of the two");
            continue;
        }
        members.push(agent);
    }
    (members.len() == items.len()).then_some(members)
}
