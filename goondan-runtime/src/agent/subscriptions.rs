//! Subscriptions of a program to all conversations of an agent: turns that they ran by themselves, and requests of
//! extensions for reloads.

use goondan_core::Result;

use super::Agent;
use crate::attach::ReloadRequests;
use crate::instance::BackgroundTurns;
use crate::live::LiveQuestions;
use crate::ports::observer::Observer;

impl Agent {
    /// Adds an observer of all conversations of this agent, after those that it has: see
    /// [`AgentBuilder::observer`](crate::AgentBuilder::observer). It observes the turns that begin afterwards.
    // OBSERVE-01
    pub fn observe(&self, observer: impl Observer) {
        self.inner.observers.add(observer);
    }

    /// Returns the turns of this agent, in all of its conversations, whose results are not returned to the program:
    /// those that a task of an extension, a tool or the program delegated, those that other agents requested, and those
    /// that [`Instance::send`](crate::Instance::send) queued. The subscriber receives each turn when it ends.
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

    /// Returns the live questions of this agent, in all of its conversations: tools ask them by
    /// [`ToolContext::ask_live`](goondan_core::ToolContext::ask_live), and those of agents that wait for a decision
    /// while another one waits for them. As long as there is a subscription, a person can be asked: its reader answers
    /// a question, or lets it expire.
    ///
    /// ```
    /// use goondan::Agent;
    /// use goondan::agent::LiveUpdate;
    /// use goondan::decision::{Decision, Question};
    /// use goondan::model::{ScriptItem, ScriptedModel};
    /// use goondan::prelude::*;
    /// use goondan::json;
    ///
    /// struct Games;
    ///
    /// #[goondan::extension(name = "games")]
    /// impl Games {
    ///     #[init]
    ///     fn new() -> Self {
    ///         Self
    ///     }
    ///
    ///     /// Lets the person guess.
    ///     #[tool(effect = read, asks)]
    ///     async fn guess(&self, ctx: &ToolContext<'_>) -> Result<String> {
    ///         ctx.ask_live(Question::choose("Heads or tails?", ["heads", "tails"])).await
    ///     }
    /// }
    ///
    /// # tokio::runtime::Builder::new_multi_thread().enable_time().build()?.block_on(async {
    /// let model = ScriptedModel::new([ScriptItem::call("games__guess", json!({})), ScriptItem::say("Heads it is.")]);
    /// let agent = Agent::builder("dealer").model(model).extension::<Games>(json!({})).build()?;
    /// let mut questions = agent.subscribe_questions();
    /// tokio::spawn(async move {
    ///     while let LiveUpdate::Asked(question) = questions.next().await {
    ///         let call = question.wait().call.clone();
    ///         question.decide(Decision::new(call, "heads")).unwrap();
    ///     }
    /// });
    /// let turn = agent.instance("user:42").await?.run("play").await?;
    /// assert_eq!(turn.text(), "Heads it is.");
    /// # Ok::<(), goondan::Error>(())
    /// # })?;
    /// # Ok::<(), goondan::Error>(())
    /// ```
    // ASK-04
    pub fn subscribe_questions(&self) -> LiveQuestions {
        LiveQuestions::of(&self.inner.questions)
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

impl LiveQuestions {
    /// Adds the questions of another agent. Does nothing for an agent that was added before.
    pub fn follow(&mut self, agent: &Agent) {
        self.add(&agent.inner.questions);
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
