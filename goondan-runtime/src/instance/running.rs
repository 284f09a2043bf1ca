//! Runs the turns of a conversation.
//!
//! The code of an `async fn` is compiled in each crate that awaits it. That of a turn is large, so that these functions
//! return a box: what they do is compiled here alone, and optimized as this crate is. [`Instance::run`] has none.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use goondan_core::host::AgentEventExt;
use goondan_core::{AgentEvent, BoxFuture, Error, ErrorCode, Result, TurnResult};

use super::background::{Answer, Pending};
use super::slot::ConversationLock;
use super::waiting::Waiting;
use super::{HandleInner, Instance, Waiter};
use crate::ports::router::AgentReply;
use crate::turn::{Back, Cancel, Rewound, TurnStream};

impl Instance {
    /// Runs the turn of an event, as [`Instance::steer`] says.
    pub(super) fn steer_event(&self, event: AgentEvent) -> BoxFuture<'static, Result<TurnResult>> {
        let (instance, event) = (self.clone(), steerable(event));
        let waiting = event.as_ref().ok().map(|event| instance.wait_for_step(event));
        Box::pin(async move {
            let lock = instance.inner.slot.lock().await;
            drop(waiting);
            instance.run_locked(lock, event?, Waiter::default()).await
        })
    }

    /// The same for [`Instance::steer_stream`].
    pub(super) fn steer_event_stream(&self, event: AgentEvent) -> TurnStream {
        let waiting = steerable(event.clone()).ok().map(|event| self.wait_for_step(&event));
        self.stream(event, waiting)
    }

    /// Lets the next step of the turn that runs take the input of an event.
    fn wait_for_step(&self, event: &AgentEvent) -> Waiting {
        Waiting::new(Arc::clone(&self.inner.slot), event.clone())
    }

    /// The same for [`Instance::run_stream`]. `waiting` lets the input join a turn that runs until then.
    pub(super) fn stream(&self, event: AgentEvent, waiting: Option<Waiting>) -> TurnStream {
        let cancels = (Arc::clone(&self.inner.slot), event.id.clone());
        let (instance, event) = (self.clone(), checked(event));
        // The turn begins when the stream is first polled: until then the conversation must not become idle.
        let promised = instance.inner.slot.promise_turn();
        let slot = Arc::clone(&cancels.0);
        let cancel = Cancel {
            running: Box::new(move || slot.cancel_turn()),
            open: Box::pin(async move { cancels.0.cancel(&cancels.1).await }),
        };
        TurnStream::new(cancel, |updates| {
            Box::pin(async move {
                let _promised = promised;
                let lock = instance.inner.slot.lock().await;
                drop(waiting);
                instance.run_locked(lock, event?, Waiter::of(updates)).await
            })
        })
    }

    /// The same for [`Instance::send`].
    pub(super) fn send_event(&self, event: AgentEvent) {
        let (instance, event) = (self.clone(), checked(event));
        let pending = Pending::begin(&self.inner.agent.background);
        // The first poll takes the position in the queue.
        let mut lock = Box::pin(instance.inner.slot.lock());
        let locked = match lock.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(locked) => Some(locked),
            Poll::Pending => None,
        };
        tokio::spawn(async move {
            let locked = match locked {
                Some(locked) => locked,
                None => lock.await,
            };
            let outcome = match event {
                Ok(event) => instance.run_in_background(locked, event, Waiter::default()).await.map(drop),
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                tracing::error!(instance = %instance.inner.slot.id, "a sent event failed: {}", error.report());
            }
            drop(pending);
        });
    }

    /// Closes a turn that was interrupted, as [`Instance::abandon`] says.
    pub(super) fn abandon_open(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let mut open = self.open(self.inner.slot.lock().await).await?;
            let abandoned = open.abandon().await;
            self.inner.slot.turn_is_over(&self.inner.agent, &mut open);
            abandoned
        })
    }

    /// The same for [`Instance::rewind`] and [`Instance::undo`].
    pub(super) fn take_back<'a>(&'a self, back: Back<'a>) -> BoxFuture<'a, Result<Rewound>> {
        Box::pin(async move { self.open(self.inner.slot.lock().await).await?.rewind(&self.inner.slot, back).await })
    }

    pub(super) async fn run_locked(
        &self,
        lock: ConversationLock,
        event: AgentEvent,
        waiter: Waiter,
    ) -> Result<TurnResult> {
        // Before the conversation is opened, so that nothing is written.
        event.check_input()?;
        let HandleInner { agent, slot, .. } = &*self.inner;
        let mut conversation = self.open(lock).await?;
        let outcome = conversation.run(slot, event, waiter).await;
        // Under the conversation lock, so that the idle task does not check before.
        slot.turn_is_over(agent, &mut conversation);
        outcome
    }

    /// Handles an input event whose result is not returned to the program, and tells the subscribers of the agent.
    async fn run_in_background(&self, lock: ConversationLock, event: AgentEvent, waiter: Waiter) -> Result<Answer> {
        event.check_input()?;
        let HandleInner { agent, slot, .. } = &*self.inner;
        let mut conversation = self.open(lock).await?;
        let input = event.clone();
        let outcome = match agent.background.wants_updates() {
            true => {
                let run = |waiter| Box::pin(conversation.run(slot, event, waiter)) as _;
                Box::pin(agent.background.tell_updates((&slot.id, &input.id), waiter, run)).await
            }
            false => conversation.run(slot, event, waiter).await,
        };
        slot.turn_is_over(agent, &mut conversation);
        // One who subscribed while it ran is told, too.
        if !agent.background.has_subscribers() {
            return outcome.map(|result| Answer::of(&result));
        }
        // Under the conversation lock, so that the turns of a conversation are told in their order.
        agent.background.tell(&slot.id, input, outcome)
    }

    /// Handles an input event of another agent, or a delegated one, as [`Instance::run`] does. Returns its answer.
    ///
    /// # Errors
    /// `AGENT_SUSPENDED` when the turn waits for a decision.
    pub(super) async fn answer(&self, event: AgentEvent, waiter: Waiter) -> Result<AgentReply> {
        let _pending = Pending::begin(&self.inner.agent.background);
        let event = checked(event)?;
        match self.run_in_background(self.inner.slot.lock().await, event, waiter).await {
            Ok(Answer::Reply(reply)) => Ok(reply),
            Ok(Answer::Suspended(error)) => Err(self.agent_suspended(&error)),
            Err(error) if *error.code() == ErrorCode::INSTANCE_SUSPENDED => Err(self.agent_suspended(&error)),
            Err(error) => Err(error),
        }
    }
}

/// Returns the event, unless a value in it is too deep.
pub(super) fn checked(event: AgentEvent) -> Result<AgentEvent> {
    match event.check_depth() {
        Ok(()) => Ok(event),
        Err(error) => Err(event.refuse(error)),
    }
}

/// Returns the event, unless it cannot be the input of a turn.
fn steerable(event: AgentEvent) -> Result<AgentEvent> {
    let event = checked(event)?;
    event.check_input()?;
    if event.answer.is_some() {
        return Err(Error::new(ErrorCode::INPUT, "an input that joins a turn cannot expect a value")
            .suggest("use `run_as`, which starts a turn of its own"));
    }
    Ok(event)
}
