//! What a program receives of all conversations of an agent: turns that they ran by themselves, and requests of
//! extensions for reloads.

use goondan_core::Result;

use super::Agent;
use crate::attach::ReloadRequests;
use crate::instance::BackgroundTurns;
use crate::ports::observer::Observer;

impl Agent {
    /// Adds an observer of all conversations of this agent, after those that it has: see
    /// [`AgentBuilder::observer`](crate::AgentBuilder::observer). It is told of the turns that begin from now on.
    // OBSERVE-01
    pub fn observe(&self, observer: impl Observer) {
        self.inner.observers.add(observer);
    }

    /// Returns the turns of this agent, in all of its conversations, whose results are not returned to the program:
    /// those that a task of an extension, a tool or the program delegated, those that other agents requested, and those
    /// that [`Instance::send`](crate::Instance::send) queued. They are told when they have ended, from now on.
    ///
    /// ```
    /// use goondan::Agent;
    /// use goondan::agent::BackgroundUpdate;
    /// use goondan::event::AgentDelegate;
    /// use goondan::model::{ScriptItem, ScriptedModel};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let model = ScriptedModel::new([ScriptItem::say("Nothing is due.")]);
    /// let agent = Agent::builder("assistant").model(model).build()?;
    /// let mut turns = agent.subscribe_turns();
    /// let instance = agent.instance("user:42").await?;
    /// let reminder = AgentDelegate::new(agent.name().clone(), "Is anything due?");
    /// instance.events().delegate(reminder).await?;
    /// if let Some(BackgroundUpdate::Ended(turn)) = turns.next().await {
    ///     println!("{}: {:?}", turn.instance, turn.outcome);
    /// #     assert_eq!(turn.outcome.as_ref().unwrap().text(), "Nothing is due.");
    /// }
    /// # Ok::<(), goondan::Error>(())
    /// # })?;
    /// # Ok::<(), goondan::Error>(())
    /// ```
    // WAKE-01
    pub fn subscribe_turns(&self) -> BackgroundTurns {
        BackgroundTurns::of(&self.inner.background)
    }

    /// Returns the reloads that extensions of this agent request after this call, in all of its conversations, by
    /// [`EventsApi::reload`](goondan_core::EventsApi::reload). An extension that has changed the files of its agent
    /// learns when they take effect: from the next step of the turn that runs, or from the next turn. Without this, all
    /// are refused.
    ///
    /// A program serves them beside the turns that it runs:
    ///
    /// ```
    /// use goondan::{Agent, Result};
    ///
    /// /// Runs until the agent is dropped. `read` makes the agent from its files.
    /// async fn reload_on_request(agent: &Agent, read: impl Fn() -> Result<Agent>) -> Result<()> {
    ///     let reload = async || agent.reload_at_next_step(&read()?).await;
    ///     agent.reload_requests()?.serve(reload, |_outcome| ()).await;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// Each request is answered once, and so there is one receiver at a time.
    ///
    /// # Errors
    /// `E_RELOAD_TAKEN` while an earlier receiver exists.
    // LEGACY-CHANGESET-04, OBSERVE-01
    pub fn reload_requests(&self) -> Result<ReloadRequests> {
        ReloadRequests::of(&self.inner.reload_listener)
    }
}

impl BackgroundTurns {
    /// Adds the turns of another agent. Does nothing for an agent that was added before, or if all others are dropped.
    pub fn follow(&mut self, agent: &Agent) {
        self.add(&agent.inner.background);
    }
}

impl ReloadRequests {
    /// Adds the requests of another agent, such as one that a reload has built. Does nothing for an agent that
    /// was added before, or if all others are dropped.
    ///
    /// # Errors
    /// `E_RELOAD_TAKEN` while another receiver of that agent's requests exists.
    pub fn follow(&self, agent: &Agent) -> Result<()> {
        self.add(&agent.inner.reload_listener)
    }
}
