//! Turns that are accepted before they begin.
// SERVE-01, ONCE-01

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use goondan_core::{AgentEvent, Error, ErrorCode, Result as CoreResult};
use goondan_runtime::store::{EventDigest, TurnOutcome};
use goondan_runtime::{AgentCall, Queue};
use goondan_wire::TurnEnd;
use tokio::time::sleep;

use crate::children::WithChildren;
use crate::log::{End, Log};
use crate::problem::{Problem, Result};
use crate::service::{Service, refused};
use crate::task::spawn;
use crate::turns::{TurnId, reused};

/// The time after which a turn that the store has refused, or for which there was no room, is begun again.
const AWAY: Duration = Duration::from_secs(1);

/// The same where something else is broken, such as an extension or the bundle.
const BROKEN: Duration = Duration::from_secs(30);

impl Service {
    /// Puts an event into the queue. When this returns, it is answered also if the process ends.
    ///
    /// # Errors
    /// 422 when the event is known with another input; 429 when too many wait; when it cannot be stored.
    pub(crate) async fn accept(&self, id: &TurnId, principal: Option<&str>, event: AgentEvent) -> Result<()> {
        let queue = self.queue_of().ok_or_else(|| Problem::request("the service has no queue: `wait` is another"))?;
        if self.is_draining() {
            return Err(Problem::draining());
        }
        let digest = EventDigest::of(&event);
        if self.turns().log(id).is_some() {
            // It runs, or has ended.
            return self.turns().check(id, &digest);
        }
        if let Some(ended) = self.ended(id).await? {
            return if ended.digest.is_none_or(|known| known == digest) { Ok(()) } else { Err(reused()) };
        }
        self.turns().wait(id, principal, self.limits_of())?;
        let put = queue.put(AgentCall::new(id.agent.clone(), id.key.clone(), event)).await;
        if put.is_err() {
            self.turns().waits_no_more(id);
        }
        Ok(put?)
    }

    /// Returns whether the event of a turn is in the queue.
    pub(crate) fn is_queued(&self, id: &TurnId) -> bool {
        // A queue that has the event waits until it is done.
        self.queue_of().is_some_and(|queue| queue.outcome(&id.instance(), &id.event).now_or_never().is_none())
    }

    /// Takes an event out of the queue before its turn begins. Returns whether it was there.
    pub(crate) async fn cancel_queued(&self, id: &TurnId) -> Result<bool> {
        if !self.is_queued(id) || self.turns().log(id).is_some() {
            return Ok(false);
        }
        let Some(queue) = self.queue_of() else { return Ok(false) };
        // A worker that takes it in this moment finds a turn that has ended.
        let log = self.turns().ended_before(id, cancelled());
        if log.never_began() {
            let call =
                AgentCall::new(id.agent.clone(), id.key.clone(), AgentEvent::input("").with_id(id.event.clone()));
            queue.done(&call, TurnOutcome::cancelled(id.event.clone())).await?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Runs the turns of the queue, until the service is drained. As many as there may be turns run at once.
    ///
    /// # Errors
    /// When the queue cannot be read.
    // SERVE-01
    pub async fn work(&self) -> CoreResult<()> {
        let Some(queue) = self.queue_of() else { return Ok(()) };
        loop {
            let room = self.turns().room(self.limits_of()).await;
            for call in queue.take(room).await? {
                if self.is_draining() {
                    return Ok(());
                }
                spawn(Box::pin(answer(self.clone(), Arc::clone(queue), call)));
            }
        }
    }
}

fn cancelled() -> TurnEnd {
    TurnEnd::of(&Err(Error::new(ErrorCode::TURN_CANCELLED, "the turn was cancelled before it began")))
}

/// Runs the turn of a call that was taken, and tells the queue of its end.
async fn answer(service: Service, queue: Arc<dyn Queue>, call: AgentCall) {
    let event = call.event.clone();
    let id = TurnId { agent: call.target.clone(), key: call.instance.clone(), event: event.id.clone() };
    let principal = event.auth.as_ref().and_then(|auth| auth.principal.as_ref()).map(|of| of.id.clone());
    let (agent, key) = (id.agent.clone(), id.key.clone());
    let begun = match service.run(principal.as_deref(), agent, key, event, WithChildren(false)).await {
        Ok((_, log)) => ended(&log).await,
        Err(problem) => Err(problem),
    };
    let outcome = match begun {
        Ok(Some(end)) => outcome(&service, &id, &end).await,
        // The next process takes it.
        Ok(None) => return,
        Err(problem) if problem.is_of_request() => {
            tracing::error!(turn = %id.event, "a queued turn is given up: {problem:?}");
            TurnOutcome::failed(id.event.clone(), problem.error())
        }
        // An accepted event is answered once the store, or an extension, is back.
        Err(problem) => {
            tracing::warn!(turn = %id.event, "a queued turn cannot begin: {problem:?}");
            sleep(if problem.may_pass() { AWAY } else { BROKEN }).await;
            return queue.give_back(&call);
        }
    };
    service.turns().waits_no_more(&id);
    if let Err(error) = queue.done(&call, outcome).await {
        tracing::error!(turn = %id.event, "the queue keeps a turn that has ended: {error}");
    }
}

/// Waits for the end of a turn; `None` if another process goes on with it.
async fn ended(log: &Log) -> Result<Option<Arc<TurnEnd>>> {
    match log.wait().await {
        End::Turn(end) => Ok(Some(end)),
        End::Refused(error) => Err(refused(&error)),
        End::Handover => Ok(None),
    }
}

/// Returns how a turn has ended. One that waits for a person is in its conversation, and the queue need not keep it.
async fn outcome(service: &Service, id: &TurnId, end: &TurnEnd) -> TurnOutcome {
    match (service.ended(id).await.ok().flatten(), &end.error) {
        (Some(ended), _) => ended.outcome,
        (None, Some(error)) => {
            TurnOutcome::failed(id.event.clone(), &Error::new(error.code.clone(), error.message.clone()))
        }
        (None, None) => TurnOutcome::answered(id.event.clone(), end.finish_reason),
    }
}
