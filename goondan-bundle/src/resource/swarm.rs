//! The kind `Swarm`: agents that work together, and the one of them that receives input.

use std::sync::Arc;

use goondan_core::ErrorCode;
use goondan_file_store::Fsync;
use goondan_runtime::Covers;

use super::{AgentResource, AgentUses, ExtensionRef, ExtensionResource, Policy, ToCheck};
use crate::kind::Kind;
use crate::read::{Cursor, Document, MapReader, Names, Resource};
use crate::schema::{MEMBER, SWARM, SWARM_USE};

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
    /// The extensions that all its agents have. They are the first of [`AgentResource::extensions`] too.
    // D-43
    pub extensions: Vec<ExtensionRef>,
}

impl Resource for SwarmResource {
    const KIND: Kind = Kind::Swarm;

    fn name(&self) -> &str {
        &self.name
    }
}

impl SwarmResource {
    pub(crate) fn read<'a>(
        document: &Document<'a>,
        names: &Names<'_>,
        extensions: &[Arc<ExtensionResource>],
        agents: &[Arc<AgentResource>],
        to_check: &mut ToCheck<'a>,
    ) -> Option<Self> {
        let spec = MapReader::new(document.spec.as_ref()?, &SWARM)?;
        let instance_key = spec.get("instanceKey").map(|key| read_instance_key(&key));
        let fsync = spec.get("fsync").and_then(|fsync| read_fsync(&fsync));
        let members = spec.require("agents").and_then(|list| read_members(&list, names, agents));
        let entry = spec.require("entryAgent").and_then(|entry| Some((names.resolve(&entry, agents)?, entry)));
        let policy = spec.get("policy").map_or_else(|| Some(Policy::default()), |policy| Policy::read(&policy));
        let listed = spec.get("extensions").map(|list| AgentUses::read(&list, names, extensions, &SWARM_USE));
        let mut listed = listed.unwrap_or_else(AgentUses::none);
        listed.uses.iter_mut().for_each(|each| each.used.covers = Covers::Swarm);
        let extensions = listed.uses.iter().map(|each| each.used.clone()).collect();
        to_check.of_swarm = listed;
        let (agents, (entry_agent, cursor)) = (members?, entry?);
        if !agents.iter().any(|agent| agent.name == entry_agent.name) {
            cursor.error(
                ErrorCode::CONFIG_SCHEMA,
                format!("{} must be one of `spec.agents`, which does not hold `{}`", cursor.name(), entry_agent.name),
                format!("add `{{ ref: \"Agent/{}\" }}` to `spec.agents`", entry_agent.name),
            );
        }
        let instance_key = instance_key.unwrap_or_default();
        let (name, policy) = (document.name()?.to_owned(), policy?);
        Some(Self { name, instance_key, agents, entry_agent, fsync, policy, extensions })
    }

    /// Gives the agents of the swarm its extensions, in front of their own. `agents` are all of the bundle.
    // D-43
    pub(super) fn give_extensions(&mut self, agents: &mut [Arc<AgentResource>], to_check: &mut ToCheck<'_>) {
        for member in self.agents.iter_mut().chain([&mut self.entry_agent]) {
            let Some(agent) = agents.iter_mut().find(|agent| agent.name == member.name) else { continue };
            if Arc::ptr_eq(agent, member) {
                let ToCheck { agents: listed, of_swarm, .. } = &mut *to_check;
                let listed = listed.iter_mut().find(|listed| listed.name.as_deref() == Some(agent.name.as_str()));
                listed.into_iter().for_each(|listed| listed.add_in_front(of_swarm));
                Arc::make_mut(agent).extensions.splice(0..0, self.extensions.iter().cloned());
            }
            *member = Arc::clone(agent);
        }
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
