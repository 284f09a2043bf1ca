//! Which agents of a bundle reach one another, and which guards cover them.
// GUARD-01

use goondan_core::{AgentName, ExtensionName};
use goondan_runtime::Covers;
use serde::Serialize;

/// Which agents of a bundle reach one another, and which guards cover them, as far as the extensions of the bundle are
/// known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Coverage {
    /// The agents, in the order of the files.
    pub agents: Vec<AgentCoverage>,
}

/// One agent of a [`Coverage`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AgentCoverage {
    /// The agent.
    pub agent: AgentName,
    /// The agents that it can ask itself. An extension that asks agents requires the capability `agents`.
    pub asks: Vec<AgentName>,
    /// Its extensions that guard, those of the swarm first.
    pub guards: Vec<Guard>,
}

/// A guard of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Guard {
    /// The extension.
    pub extension: ExtensionName,
    /// Whom it covers.
    pub covers: Covers,
}

impl Coverage {
    /// Returns the shortest ways from `agent` to all agents that it reaches, each with both ends.
    pub(crate) fn ways_from(&self, agent: &AgentName) -> Vec<Vec<&AgentName>> {
        let of = |name: &AgentName| self.agents.iter().find(|each| each.agent == *name);
        let Some(start) = of(agent) else { return Vec::new() };
        let mut ways = vec![vec![&start.agent]];
        let mut next = 0;
        while let Some(way) = ways.get(next).cloned() {
            next += 1;
            let asks = way.last().and_then(|last| of(last)).map(|last| &last.asks);
            for asked in asks.into_iter().flatten() {
                if !ways.iter().any(|known| known.last() == Some(&asked)) {
                    ways.push(way.iter().copied().chain([asked]).collect());
                }
            }
        }
        ways.split_off(1)
    }

    /// Returns the guards of an agent.
    pub(crate) fn guards_of(&self, agent: &AgentName) -> &[Guard] {
        self.agents.iter().find(|each| each.agent == *agent).map(|each| &*each.guards).unwrap_or_default()
    }
}
