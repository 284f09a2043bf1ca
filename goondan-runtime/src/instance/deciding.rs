//! A conversation whose calls wait for decisions, for callers.
// ASK-01, ASK-02

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use goondan_core::{
    AgentEvent, AskedQuestion, BoxFuture, Decision, Error, ErrorCode, LiveWait, Result, TurnResult, Wait,
};

use super::slot::ConversationLock;
use super::{HandleInner, Instance, Waiter};
use crate::join::join;
use crate::live::Clock;
use crate::ports::router::{AgentCall, AgentReply};
use crate::turn::{self, Cancel, TurnStream};

impl Instance {
    /// Returns the calls of the conversation that wait for a decision, in the order of their requests, each with its
    /// open questions. Waits for turns that run or were queued earlier.
    ///
    /// # Errors
    /// As [`Instance::messages`].
    // ASK-01
    pub async fn waits(&self) -> Result<Vec<Wait>> {
        Ok(self.open(self.inner.slot.lock().await).await?.waits())
    }

    /// Takes decisions about calls that wait, all of them or none, and goes on with the turn once all of its calls are
    /// decided: the model is not asked again, and no call that has run runs again. Returns the result of the turn,
    /// which is suspended again while others wait.
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
    /// `E_NOT_WAITING` when a call does not wait; `E_DECISION_TAKEN` when a question was decided before, with that
    /// decision in the details; `E_DECISION_INVALID` when a value does not fit its question, or arguments their tool.
    /// Then nothing has changed. When the turn goes on, as [`Instance::run`].
    // ASK-01, ASK-02
    pub async fn decide(&self, decisions: impl IntoIterator<Item = Decision>) -> Result<TurnResult> {
        self.decide_all(decidable(decisions)?).await
    }

    // In a box, and not generic: see `running`.
    fn decide_all(&self, decisions: Vec<Decision>) -> BoxFuture<'_, Result<TurnResult>> {
        Box::pin(async move { self.decide_locked(self.inner.slot.lock().await, decisions, Waiter::default()).await })
    }

    /// Takes decisions like [`Instance::decide`], and streams the updates of the turn when it goes on.
    // ASK-01
    pub fn decide_stream(&self, decisions: impl IntoIterator<Item = Decision>) -> TurnStream {
        self.stream_decided(decidable(decisions))
    }

    fn stream_decided(&self, decisions: Result<Vec<Decision>>) -> TurnStream {
        let instance = self.clone();
        let promised = self.inner.slot.promise_turn();
        let [running, open] = [Arc::clone(&self.inner.slot), Arc::clone(&self.inner.slot)];
        let cancel = Cancel {
            running: Box::new(move || running.cancel_turn()),
            open: Box::pin(async move { open.cancel_open().await }),
        };
        TurnStream::new(cancel, |updates| {
            Box::pin(async move {
                let _promised = promised;
                let lock = instance.inner.slot.lock().await;
                instance.decide_locked(lock, decisions?, Waiter::of(updates)).await
            })
        })
    }

    async fn decide_locked(
        &self,
        lock: ConversationLock,
        decisions: Vec<Decision>,
        waiter: Waiter,
    ) -> Result<TurnResult> {
        let HandleInner { agent, slot, .. } = &*self.inner;
        let mut conversation = self.open(lock).await?;
        let outcome = conversation.decide(slot, decisions, waiter).await;
        slot.turn_is_over(agent, &mut conversation);
        outcome
    }

    /// Handles the event of a call, as [`Instance::answer`] does; if the call says so, until its turn does not wait
    /// for a decision any more. Cancels it when the caller does not wait any more.
    // ASK-01, D-40
    pub(crate) async fn answer_call(&self, call: AgentCall) -> Result<AgentReply> {
        let mut cancelled = pin!(call.cancelled());
        let mut answer = Box::pin(self.answer_until_decided(&call));
        let answered = poll_fn(|cx| match cancelled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => answer.as_mut().poll(cx).map(Some),
        });
        if let Some(answer) = answered.await {
            return answer;
        }
        let (slot, event) = (&self.inner.slot, &call.event.id);
        if slot.cancel_running(event) == Some(true) {
            return answer.await;
        }
        // It is in the queue, or waits for a decision.
        drop(answer);
        slot.cancel(event).await?;
        Err(turn::cancelled())
    }

    // ASK-04
    async fn answer_until_decided(&self, call: &AgentCall) -> Result<AgentReply> {
        // A conversation that cannot be opened is told by the answer.
        let own = self.view().await.map(|view| view.services.clock.clone()).unwrap_or_default();
        let _follows = call.asker.as_ref().map(|asker| asker.clock.follow(&own));
        let waiter = || call.asker.as_ref().map(Waiter::of_asker).unwrap_or_default();
        let mut is_asked = false;
        loop {
            let mut decided = pin!(self.inner.agent.decided.notified());
            // Before the turn is looked at: one that goes on meanwhile is not missed.
            decided.as_mut().enable();
            let answer = self.answer(call.event.clone(), waiter()).await;
            let waits = answer.as_ref().is_err_and(|error| *error.code() == ErrorCode::AGENT_SUSPENDED);
            if !waits {
                return answer;
            }
            // No turn waits for a delegation.
            if call.asker.is_some() && !is_asked && self.inner.agent.questions.has_subscribers() {
                is_asked = !self.ask_live(&call.event, &own, waiter(), decided.as_mut()).await?;
            } else if call.until_decided {
                decided.await;
            } else {
                return answer;
            }
        }
    }

    /// Lets the person who is there decide now about the calls that wait, which another agent waits for. Returns
    /// false if there was no answer.
    // ASK-04
    #[cold]
    async fn ask_live(
        &self,
        event: &AgentEvent,
        clock: &Clock,
        waiter: Waiter,
        mut decided: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<bool> {
        let HandleInner { agent, slot, .. } = &*self.inner;
        let mut agents = event.callers.clone();
        agents.push(agent.name.clone());
        let waits = self.waits().await?;
        let questions = waits.iter().flat_map(|wait| wait.questions.iter().map(move |asked| (wait, asked)));
        let ask = |(wait, asked): (&Wait, &AskedQuestion)| {
            let (mut wait, mut asked) = (wait.clone(), asked.clone());
            // It waits on in its conversation for that long, and for the caller as a live question does.
            asked.question.expires_after_ms = None;
            wait.questions = vec![asked];
            agent.questions.ask(clock, LiveWait::new(agents.clone(), slot.id.key.clone(), wait))
        };
        let mut answers = pin!(join(questions.map(ask).collect()));
        let answers = poll_fn(|cx| {
            // The program may decide there itself.
            if decided.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            answers.as_mut().poll(cx).map(Some)
        });
        let Some(answers) = answers.await else { return Ok(true) };
        let asked = answers.len();
        let decisions: Vec<_> = answers.into_iter().filter_map(Result::ok).collect();
        let is_answered = asked > 0 && decisions.len() == asked;
        let decisions = Decision::needed(decisions);
        if decisions.is_empty() {
            return Ok(false);
        }
        match self.decide_locked(self.inner.slot.lock().await, decidable(decisions)?, waiter).await {
            // As an answer to the event that is run again.
            Ok(_) => Ok(is_answered),
            Err(error) if [ErrorCode::DECISION_TAKEN, ErrorCode::NOT_WAITING].contains(error.code()) => Ok(true),
            // Of the turn that went on.
            Err(error) if error.turn().is_some() => Ok(true),
            Err(error) => Err(error),
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
