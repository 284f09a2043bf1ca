//! Runs an event until its turn has ended.

use goondan::event::AgentEvent;
use goondan::middleware::TurnResult;
use goondan::{Agent, ErrorCode, Instance, Result};

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
    let mut instance = agent.instance(key).await?;
    loop {
        let outcome = tokio::select! {
            outcome = instance.run(event.clone()) => outcome,
            () = plan.broken() => {
                if goes_on == GoesOn::AfterANewOpening {
                    instance.close().await?;
                    instance = agent.instance(key).await?;
                }
                continue;
            }
        };
        match outcome {
            Err(error) if *error.code() == ErrorCode::STORE_UNAVAILABLE => {}
            outcome => return Ok((instance, outcome)),
        }
    }
}
