//! The agents that a router knows, for error messages.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use goondan_core::{AgentName, Error, ErrorCode, RequestTarget};
use goondan_lock::Lock;

/// The most missing targets that are remembered. Their names may come from a model.
const LIMIT: usize = 64;

/// Facts about the way from one agent to others. They belong to the agent and outlive reloads.
#[derive(Default)]
pub(crate) struct Reach {
    /// Whether a router was told of the agent. It may have none itself.
    added: AtomicBool,
    /// The targets whose notices were not delivered.
    missed: Lock<HashSet<String>>,
}

impl Reach {
    /// Records that a router delivers to the agent.
    pub(crate) fn set_added(&self) {
        self.added.store(true, Ordering::Relaxed);
    }

    /// Returns the error for a request of `agent`, which has no router.
    #[cold]
    pub(crate) fn no_router(&self, agent: &AgentName, target: &RequestTarget) -> Error {
        let (message, suggestion) = if self.added.load(Ordering::Relaxed) {
            (
                format!("`{agent}` cannot reach `{target}`: it was added to a router, but built without one"),
                "`add` makes an agent reachable; to let it reach others, call `.router(router.clone())` before `.build()`",
            )
        } else {
            (
                format!("`{agent}` cannot reach `{target}`: the program has given it no router"),
                "make a `LocalRouter`, pass it to `.router(…)` of each agent, and `add` the agents to it",
            )
        };
        Error::new(ErrorCode::AGENT_NOT_FOUND, message).suggest(suggestion)
    }

    /// Logs that a notice of `agent` was not delivered, once for each target.
    #[cold]
    pub(crate) fn missed(&self, agent: &AgentName, target: &RequestTarget, why: &Error) {
        let target = target.to_string();
        let mut missed = self.missed.lock();
        if missed.len() < LIMIT && missed.insert(target.clone()) {
            drop(missed);
            tracing::warn!(%agent, target, "a notice was not delivered: {}", why.report());
        }
    }
}
