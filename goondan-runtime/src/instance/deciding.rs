//! A conversation whose calls wait for decisions, for callers.
// ASK-01, ASK-02

use std::pin::pin;
use std::sync::Arc;

use goondan_core::{Decision, Error, ErrorCode, Result, TurnResult, Wait};

use super::slot::ConversationLock;
use super::{HandleInner, Instance};
use crate::ports::router::AgentCall;
use crate::turn::{TurnStream, UpdateSender};

impl Instance {
    /// Returns the calls of the conversation that wait for a decision, in the order of their requests, each with its open
    /// questions. Waits for turns that run or were queued earlier.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    // ASK-01
    pub async fn waits(&self) -> Result<Vec<Wait>> {
        Ok(self.open(self.inner.slot.lock().await).await?.waits())
    }

    /// Takes decisions about calls that wait, all of them or none, and goes on with the turn once all of its calls are
    /// decided: the model is not asked again, and what has run does not run again. Returns the result of the turn, which
    /// is suspended again while others wait.
    ///
    /// A decision is stored, and synced, before anything runs. After a crash in between, `decide` without decisions, or
    /// [`Instance::run`] with the event of the turn, goes on. In a new process, the turn has its event as the store has
    /// recorded it: secrets are masked in it, and of its authentication only the principal is left.
    ///
    /// ```
    /// use goondan::Agent;
    /// use goondan::decision::{Decision, Question};
    /// use goondan::middleware::FinishReason;
    /// use goondan::model::{ScriptItem, ScriptedModel};
    /// use goondan::prelude::*;
    /// use goondan::json;
    ///
    /// struct Shop;
    ///
    /// #[goondan::extension(name = "shop")]
    /// impl Shop {
    ///     #[init]
    ///     fn new() -> Self {
    ///         Self
    ///     }
    ///
    ///     /// Pays money back.
    ///     #[tool(effect = once)]
    ///     async fn refund(&self) -> Result<String> {
    ///         Ok("paid back".into())
    ///     }
    ///
    ///     /// Asks before it does.
    ///     #[middleware(toolCall)]
    ///     async fn ask(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
    ///         if ctx.decision::<bool>()?.is_none() {
    ///             ctx.ask(Question::new("Pay the money back?"));
    ///         }
    ///         next.run(ctx).await
    ///     }
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let model = ScriptedModel::new([ScriptItem::call("shop__refund", json!({})), ScriptItem::say("done")]);
    /// let agent = Agent::builder("clerk").model(model).extension::<Shop>(json!({})).build()?;
    /// let instance = agent.instance("order:1183").await?;
    ///
    /// let turn = instance.run("Refund it.").await?;
    /// assert_eq!(turn.finish_reason(), FinishReason::Suspended);
    /// let wait = &turn.waits()[0];
    /// println!("{}: {}", wait.tool, wait.questions[0].question.text);
    ///
    /// let turn = instance.decide([Decision::approve(wait.call.clone())]).await?;
    /// assert_eq!(turn.text(), "done");
    /// # Ok::<(), goondan::Error>(())
    /// # })?;
    /// # Ok::<(), goondan::Error>(())
    /// ```
    ///
    /// # Errors
    /// `E_NOT_WAITING` when a call does not wait; `E_DECISION_TAKEN` when a question was decided before, with that decision
    /// in the details; `E_DECISION_INVALID` when a value does not fit its question, or arguments their tool. Then nothing
    /// has changed. When the turn goes on, as [`Instance::run`].
    // ASK-01, ASK-02
    pub async fn decide(&self, decisions: impl IntoIterator<Item = Decision>) -> Result<TurnResult> {
        let decisions = decidable(decisions)?;
        self.decide_locked(self.inner.slot.lock().await, decisions, None).await
    }

    /// Takes decisions like [`Instance::decide`], and streams what happens in the turn when it goes on.
    // ASK-01
    pub fn decide_stream(&self, decisions: impl IntoIterator<Item = Decision>) -> TurnStream {
        let (instance, decisions) = (self.clone(), decidable(decisions));
        let slot = Arc::clone(&self.inner.slot);
        let promised = slot.promise_turn();
        let cancel = Box::pin(async move { slot.cancel_open().await });
        TurnStream::new(cancel, |updates| {
            Box::pin(async move {
                let _promised = promised;
                let lock = instance.inner.slot.lock().await;
                instance.decide_locked(lock, decisions?, Some(updates)).await
            })
        })
    }

    async fn decide_locked(
        &self,
        lock: ConversationLock,
        decisions: Vec<Decision>,
        updates: Option<UpdateSender>,
    ) -> Result<TurnResult> {
        let HandleInner { agent, slot, .. } = &*self.inner;
        let mut conversation = self.open(lock).await?;
        let outcome = conversation.decide(slot, decisions, updates).await;
        slot.turn_is_over(agent, &mut conversation);
        outcome
    }

    /// Handles the event of a call, as [`Instance::answer`] does; if the call says so, until its turn does not wait for a
    /// decision any more.
    // ASK-01
    pub(crate) async fn answer_call(&self, call: AgentCall) -> Result<String> {
        loop {
            let mut decided = pin!(self.inner.agent.decided.notified());
            // Before the turn is looked at: one that goes on meanwhile is not missed.
            decided.as_mut().enable();
            let answer = self.answer(call.event.clone()).await;
            let waits = answer.as_ref().is_err_and(|error| *error.code() == ErrorCode::AGENT_SUSPENDED);
            if !waits || !call.until_decided {
                return answer;
            }
            decided.await;
        }
    }

    /// Returns the error of a request to this agent, whose turn waits for a decision.
    // ASK-01
    #[cold]
    pub(super) fn agent_suspended(&self, waits: &Error) -> Error {
        let message = format!("the agent `{}` has no answer yet: {}", self.inner.agent.name, waits.message());
        let error = Error::new(ErrorCode::AGENT_SUSPENDED, message)
            .suggest("go on without it, or tell the user that a decision is needed there");
        waits.details().iter().fold(error, |error, (name, value)| error.with_detail(name, value.clone()))
    }
}

/// Returns the decisions, unless a value in them is too deep.
fn decidable(decisions: impl IntoIterator<Item = Decision>) -> Result<Vec<Decision>> {
    decisions.into_iter().map(Decision::checked).collect()
}
