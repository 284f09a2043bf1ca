//! Runs an event until its turn has ended.

use goondan::decision::{Decision, Wait};
use goondan::event::AgentEvent;
use goondan::middleware::TurnResult;
use goondan::{Agent, Error, ErrorCode, Instance, Result};

use crate::Plan;

/// How a turn that was interrupted goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoesOn {
    /// In the instance in which it was interrupted.
    InTheSameProcess,
    /// In one that is opened for it.
    AfterANewOpening,
}

/// Runs `event` in the instance `key` until its turn has ended, however often the store of `agent`, which has this
/// plan, interrupts it. Returns the instance in which it has ended, and its outcome.
///
/// # Errors
/// When the instance cannot be opened or closed.
pub async fn run(
    agent: &Agent,
    key: &str,
    event: &AgentEvent,
    plan: &Plan,
    goes_on: GoesOn,
) -> Result<(Instance, Result<TurnResult>)> {
    let mut instance = open(agent, key).await?;
    loop {
        let outcome = tokio::select! {
            outcome = instance.run(event.clone()) => outcome,
            () = plan.broken() => {
                if goes_on == GoesOn::AfterANewOpening {
                    close(instance, plan).await?;
                    instance = open(agent, key).await?;
                }
                continue;
            }
        };
        if !outcome.as_ref().is_err_and(is_away) {
            return Ok((instance, outcome));
        }
    }
}

/// As [`run`], and decides about each call that waits, however often that is interrupted. `waits` is called before each
/// decision.
///
/// # Errors
/// As [`run`], and when its turn fails.
pub async fn run_decided(
    agent: &Agent,
    event: &AgentEvent,
    plan: &Plan,
    goes_on: GoesOn,
    mut waits: impl FnMut(&Wait) -> Decision,
) -> Result<(Instance, TurnResult)> {
    let (mut instance, outcome) = run(agent, "test", event, plan, goes_on).await?;
    let mut turn = outcome?;
    while let Some(wait) = turn.waits().first() {
        let decision = waits(wait);
        let decided = tokio::select! {
            decided = instance.decide([decision]) => Some(decided),
            () = plan.broken() => None,
        };
        if let Some(Ok(decided)) = decided {
            turn = decided;
            continue;
        }
        if decided.is_none() && goes_on == GoesOn::AfterANewOpening {
            close(instance, plan).await?;
        }
        let (opened, outcome) = run(agent, "test", event, plan, goes_on).await?;
        (instance, turn) = (opened, outcome?);
    }
    Ok((instance, turn))
}

/// Opens an instance once its store is there.
async fn open(agent: &Agent, key: &str) -> Result<Instance> {
    loop {
        let opened = agent.instance(key).await;
        if !opened.as_ref().is_err_and(is_away) {
            return opened;
        }
    }
}

/// Closes an instance, as far as its store, which has this plan, lets it.
///
/// # Errors
/// When it cannot be closed for another reason.
pub async fn close(instance: Instance, plan: &Plan) -> Result<()> {
    plan.set_closing(true);
    let closed = instance.close().await;
    plan.set_closing(false);
    if closed.as_ref().is_err_and(is_away) { Ok(()) } else { closed }
}

fn is_away(error: &Error) -> bool {
    *error.code() == ErrorCode::STORE_UNAVAILABLE
}
