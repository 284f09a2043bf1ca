//! The router between the agents of one program.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use goondan_core::{AgentName, BoxFuture, Error, ErrorCode, Result, TurnId};
use goondan_lock::Lock;
use tokio::task::JoinHandle;

use super::circles::Circles;
use super::{Agent, WeakAgent};
use crate::instance::{Instance, task_failed};
use crate::ports::router::{AgentCall, AgentReply, Router, not_found};

/// Routes requests and events between the agents of one program. Clones are the same router.
///
/// It does not keep agents alive. An instance that it opens is closed by [`LocalRouter::close`], or when it was idle
/// for the time that its agent sets with [`idle_after`](crate::AgentBuilder::idle_after), 5 minutes by default.
///
/// ```
/// use goondan::Agent;
/// use goondan::agent::LocalRouter;
/// use goondan::model::{ScriptItem, ScriptedModel};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let router = LocalRouter::new();
/// let model = ScriptedModel::new([ScriptItem::say("hi").repeat()]);
/// let agent = Agent::builder("assistant").model(model).router(router.clone()).build()?;
/// // Extensions of other agents with this router can now send requests to `assistant` through `ctx.agents()`.
/// router.add(&agent);
/// # Ok::<(), goondan::Error>(())
/// # })?;
/// # Ok::<(), goondan::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct LocalRouter {
    agents: Arc<Lock<HashMap<AgentName, WeakAgent>>>,
    circles: Circles,
}

impl LocalRouter {
    /// A router without agents.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `agent` reachable by its name, as long as the program keeps it. To reach others, the agent needs the
    /// router itself: see [`AgentBuilder::router`](crate::AgentBuilder::router).
    pub fn add(&self, agent: &Agent) {
        agent.inner.reach.set_added();
        self.agents.lock().insert(agent.name().clone(), agent.downgrade());
    }

    /// Makes the agent called `name` unreachable, and closes those of its instances that were opened on behalf of other
    /// agents.
    ///
    /// # Errors
    /// As [`LocalRouter::close`].
    pub async fn remove(&self, name: &AgentName) -> Result<()> {
        let agent = self.agents.lock().remove(name).and_then(|agent| agent.upgrade());
        match agent {
            Some(agent) => agent.close_for_others().await,
            None => Ok(()),
        }
    }

    /// Closes the instances that were opened on behalf of other agents. Handles to such an instance stay valid: using
    /// one opens the instance again.
    ///
    /// # Errors
    /// The error of the first instance that could not be closed. The others are closed nevertheless.
    pub async fn close(&self) -> Result<()> {
        let agents: Vec<_> = self.agents.lock().values().filter_map(WeakAgent::upgrade).collect();
        let mut outcome = Ok(());
        for agent in agents {
            outcome = outcome.and(agent.close_for_others().await);
        }
        outcome
    }

    fn find(&self, name: &AgentName) -> Result<Agent> {
        let agent = self.agents.lock().get(name).map(WeakAgent::upgrade);
        match agent {
            Some(Some(agent)) => Ok(agent),
            Some(None) => Err(dropped(name)),
            None => Err(not_found(name, &self.agents())),
        }
    }

    /// Returns the instance that a call is for, opened if it is not.
    async fn instance(&self, call: &AgentCall) -> Result<Instance> {
        let agent = self.find(&call.target)?;
        // The turn checks that too, whatever its router is; here, a notice is refused before it is accepted.
        agent.inner.spec().check_guards(&call.target, &call.event)?;
        agent.instance_for_others(call.instance.clone()).await
    }
}

/// The error for a request to an agent that the program has dropped.
fn dropped(name: &AgentName) -> Error {
    let message = format!("the agent `{name}` was added to the router, but the program has dropped it since");
    Error::new(ErrorCode::AGENT_NOT_FOUND, message)
        .suggest("keep the `Agent` as long as others may reach it: the router does not keep it alive")
}

impl fmt::Debug for LocalRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalRouter").field(&self.agents()).finish()
    }
}

/// A turn that another one waits for. It does not run on without that one, and stays open.
// D-40
struct Turn(JoinHandle<Result<AgentReply>>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Router for LocalRouter {
    fn request(&self, mut call: AgentCall) -> BoxFuture<'_, Result<AgentReply>> {
        Box::pin(async move {
            let _request = call.from.take().map(|from| self.circles.enter(from, call.instance_id())).transpose()?;
            let instance = self.instance(&call).await?;
            // In a task, so that requests of one turn run on several threads.
            let mut turn = Turn(tokio::spawn(async move { instance.answer_call(call).await }));
            (&mut turn.0).await.map_err(task_failed)?
        })
    }

    fn send(&self, call: AgentCall) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            self.instance(&call).await?.send(call.event);
            Ok(true)
        })
    }

    fn forget<'a>(&'a self, turn: &'a TurnId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let agents: Vec<_> = self.agents.lock().values().filter_map(WeakAgent::upgrade).collect();
            for agent in agents {
                agent.forget(turn).await;
            }
        })
    }

    fn agents(&self) -> Vec<AgentName> {
        let known = self.agents.lock();
        let mut names: Vec<_> =
            known.iter().filter(|(_, agent)| !agent.is_dropped()).map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }
}
