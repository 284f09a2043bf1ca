//! The agents that are served.

use std::ops::Deref;

use futures_util::stream::{BoxStream, StreamExt, pending, unfold};
use goondan_core::{AgentName, BoxFuture, Error, ErrorCode, InstanceKey, Result};
use goondan_runtime::{Agent, BackgroundUpdate, Instance, LiveQuestions, LiveUpdate};

/// The agents that a service serves: one agent, several, or those of a bundle that a `Host` keeps running.
pub trait Agents: Send + Sync + 'static {
    /// Returns the names of the agents.
    fn names(&self) -> Vec<AgentName>;

    /// Opens a conversation, which stays open as long as the handle is there.
    ///
    /// # Errors
    /// `E_CONFIG_REF_NOT_FOUND` when there is no such agent, and as [`Agent::instance`].
    fn open<'a>(&'a self, agent: &'a str, key: &'a InstanceKey) -> BoxFuture<'a, Result<Held>>;

    /// Returns the live questions of the agents, as [`Agent::subscribe_questions`] does.
    // ASK-04
    fn questions(&self) -> BoxStream<'static, LiveUpdate>;

    /// Returns the turns that run in the background, as [`Agent::subscribe_turns`] does, with their updates.
    // WAKE-01
    fn background(&self) -> BoxStream<'static, BackgroundUpdate>;
}

/// A conversation that is open.
pub type Held = Box<dyn Deref<Target = Instance> + Send + Sync>;

/// A handle of an agent's own.
struct Own(Instance);

impl Deref for Own {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.0
    }
}

impl Agents for Vec<Agent> {
    fn names(&self) -> Vec<AgentName> {
        self.iter().map(|agent| agent.name().clone()).collect()
    }

    fn open<'a>(&'a self, agent: &'a str, key: &'a InstanceKey) -> BoxFuture<'a, Result<Held>> {
        Box::pin(async move {
            let found = self.iter().find(|known| known.name().as_str() == agent).ok_or_else(|| {
                Error::new(ErrorCode::CONFIG_REF_NOT_FOUND, format!("there is no agent `{agent}`"))
                    .suggest("name one of the agents that `GET /v1/agents` lists")
            })?;
            Ok(Box::new(Own(found.instance(key.as_str()).await?)) as Held)
        })
    }

    fn questions(&self) -> BoxStream<'static, LiveUpdate> {
        let mut questions = LiveQuestions::new();
        self.iter().for_each(|agent| questions.follow(agent));
        unfold(questions, async |mut questions| Some((questions.next().await, questions))).boxed()
    }

    fn background(&self) -> BoxStream<'static, BackgroundUpdate> {
        let Some((first, others)) = self.split_first() else { return pending().boxed() };
        let mut turns = first.subscribe_turns().with_updates();
        others.iter().for_each(|agent| turns.follow(agent));
        unfold(turns, async |mut turns| Some((turns.next().await?, turns))).boxed()
    }
}

impl Agents for Agent {
    fn names(&self) -> Vec<AgentName> {
        vec![self.name().clone()]
    }

    fn open<'a>(&'a self, agent: &'a str, key: &'a InstanceKey) -> BoxFuture<'a, Result<Held>> {
        Box::pin(async move { vec![self.clone()].open(agent, key).await })
    }

    fn questions(&self) -> BoxStream<'static, LiveUpdate> {
        vec![self.clone()].questions()
    }

    fn background(&self) -> BoxStream<'static, BackgroundUpdate> {
        vec![self.clone()].background()
    }
}

#[cfg(feature = "host")]
impl Agents for goondan_host::Host {
    fn names(&self) -> Vec<AgentName> {
        self.bundle().agents().map(|agent| agent.name.clone()).collect()
    }

    fn open<'a>(&'a self, agent: &'a str, key: &'a InstanceKey) -> BoxFuture<'a, Result<Held>> {
        Box::pin(async move { Ok(Box::new(self.instance(agent, key.as_str()).await?) as Held) })
    }

    fn questions(&self) -> BoxStream<'static, LiveUpdate> {
        unfold(goondan_host::Host::questions(self), async |mut questions| Some((questions.next().await, questions)))
            .boxed()
    }

    fn background(&self) -> BoxStream<'static, BackgroundUpdate> {
        let turns = self.background_turns().with_updates();
        unfold(turns, async |mut turns| Some((turns.next().await, turns))).boxed()
    }
}
