//! Checks that the agents which an agent reaches have its guards.
// GUARD-01

use std::collections::BTreeSet;

use goondan_core::{AgentName, ErrorCode, ExtensionName};
use goondan_runtime::Covers;

use super::extensions::Extensions;
use crate::coverage::{AgentCoverage, Coverage, Guard};
use crate::diagnostic::Diagnostic;
use crate::resource::{AgentResource, ExtensionRef, Resources, ToCheck};

/// The capability of the extensions that ask agents.
const AGENTS: &str = "agents";

/// Returns which agents reach one another, and their guards, as far as extensions are known.
pub(super) fn coverage(resources: &Resources, extensions: &Extensions<'_>) -> Coverage {
    let all = &resources.agents;
    let of = |agent: &AgentResource| {
        let uses = &agent.extensions;
        let asks = uses.iter().any(|used| extensions.requires(&used.target, AGENTS));
        let others = all.iter().map(|other| &other.name).filter(|other| asks && **other != agent.name);
        let guards = uses.iter().filter(|used| extensions.guards(&used.target));
        let guards = guards.map(|used| Guard { extension: used.target.name.clone(), covers: used.covers });
        AgentCoverage { agent: agent.name.clone(), asks: others.cloned().collect(), guards: guards.collect() }
    };
    Coverage { agents: all.iter().map(|agent| of(agent)).collect() }
}

/// Reports each agent that does not have a guard which covers it. Returns a warning for each guard of an agent that
/// others, which the agent reaches, do not have.
pub(super) fn check(coverage: &Coverage, resources: &Resources, to_check: &ToCheck<'_>) -> Vec<Diagnostic> {
    let (mut warnings, mut reported) = (Vec::new(), BTreeSet::new());
    let agents = to_check.agents.iter().filter_map(|listed| Some((listed, agent(resources, listed.name.as_deref()?)?)));
    for (listed, agent) in agents {
        let guards = coverage.guards_of(&agent.name);
        let ways = if guards.is_empty() { Vec::new() } else { coverage.ways_from(&agent.name) };
        for guard in guards {
            let Some(each) = listed.uses.iter().find(|each| each.used.target.name == guard.extension) else { continue };
            let lacks = |way: &&Vec<&AgentName>| way.last().is_some_and(|last| lacks(resources, last, &each.used));
            let mut gaps = ways.iter().filter(lacks);
            if guard.covers == Covers::Agent {
                let gaps: Vec<_> = gaps.map(|way| way_of(way)).collect();
                if !gaps.is_empty() {
                    let (message, remedy) = own_guard(&agent.name, &guard.extension, &gaps);
                    let at = &each.reference;
                    let warning = Diagnostic::warning(at.sink().file(), at.place(), message, remedy);
                    warnings.push(warning.with_path(at.path()));
                }
                continue;
            }
            // Each agent of a swarm has its guards, and one way to an agent without them is enough.
            gaps.by_ref().filter(|way| reported.insert((guard.extension.clone(), way.last().copied()))).for_each(
                |way| {
                    let (message, remedy) = gap(guard, way);
                    each.reference.error(ErrorCode::GUARD_GAP, message, remedy);
                },
            );
        }
    }
    warnings
}

fn agent<'a>(resources: &'a Resources, name: &str) -> Option<&'a AgentResource> {
    resources.agents.iter().find(|agent| agent.name.as_str() == name).map(|agent| &**agent)
}

/// Returns whether an agent lacks this guard, or has it with other settings.
fn lacks(resources: &Resources, name: &AgentName, guard: &ExtensionRef) -> bool {
    let Some(agent) = agent(resources, name.as_str()) else { return false };
    let same = |used: &&ExtensionRef| used.target.name == guard.target.name;
    agent.extensions.iter().find(same).is_none_or(|used| used.shown_config() != guard.shown_config())
}

fn way_of(way: &[&AgentName]) -> String {
    way.iter().map(|agent| agent.as_str()).collect::<Vec<_>>().join(" -> ")
}

fn own_guard(agent: &AgentName, guard: &ExtensionName, gaps: &[String]) -> (String, String) {
    let message = format!(
        "the guard `{guard}` of `{agent}` does not guard what others do for it: they do not have it with the same \
         settings: {}",
        gaps.join(", ")
    );
    (
        message,
        format!("list `{guard}` in `spec.extensions` of the swarm, or write `covers: reachable` and add it to them"),
    )
}

fn gap(guard: &Guard, way: &[&AgentName]) -> (String, String) {
    let Guard { extension: guard, covers } = guard;
    let (whose, target) = (if *covers == Covers::Swarm { " of the swarm" } else { "" }, way.last());
    let target = target.map(|agent| agent.as_str()).unwrap_or_default();
    let message = format!(
        "the guard `{guard}`{whose} does not cover `{target}`, which does not have it with the same settings: {}",
        way_of(way)
    );
    let remedy = match covers {
        Covers::Swarm => format!("add `{{ ref: \"Agent/{target}\" }}` to the `agents` of the swarm"),
        _ => format!("add `{{ ref: \"Extension/{guard}\" }}` to the `extensions` of `{target}`"),
    };
    (message, remedy)
}
