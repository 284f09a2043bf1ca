//! Delegation: an extension or the program starts a turn, and the event `agent.delegationResult` has its result.
// WAKE-01, D-41

use std::sync::Arc;
use std::sync::atomic::Ordering;

use goondan_core::host::AgentEventExt;
use goondan_core::{
    AgentDelegate, AgentDelegationResult, AgentEvent, Error, ErrorCode, Event, ExtensionName, Result, TurnInfo,
};

use super::background::Pending;
use super::conversation::DRAIN_TIMEOUT;
use super::shared::AgentInner;
use crate::attach::{AgentUpcalls, Services};
use crate::ports::router::{AgentCall, not_found};

/// The most delegations of a conversation that may wait for their results.
const WAITING: usize = 64;

/// The longest chain of delegations that lead to one another. A longer one is a loop, for example of a handler of
/// `turn.completed` that wakes its own conversation.
const MAX_WAKINGS: u32 = 32;

/// A delegation that counts as waiting until it is dropped.
struct Waiting(Arc<Services>);

impl Waiting {
    /// # Errors
    /// `E_EXT_RUNTIME` when too many are waiting.
    fn enter(services: &Arc<Services>) -> Result<Self> {
        let enter = |waiting: usize| (waiting < WAITING).then_some(waiting + 1);
        match services.delegated.fetch_update(Ordering::AcqRel, Ordering::Acquire, enter) {
            Ok(_) => Ok(Self(Arc::clone(services))),
            Err(_) => {
                let message = format!("{WAITING} delegations of this conversation wait for their results already");
                Err(Error::new(ErrorCode::EXT_RUNTIME, message).suggest("wait for `agent.delegationResult` first"))
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.delegated.fetch_sub(1, Ordering::AcqRel);
    }
}

impl AgentUpcalls for AgentInner {
    /// Every failure is reported on the bus and in the log. Does nothing in a conversation that was closed.
    fn delegate(
        self: Arc<Self>,
        services: &Arc<Services>,
        extension: Option<&ExtensionName>,
        delegation: AgentDelegate,
    ) {
        let Some(runtime) = services.bus.runtime() else { return };
        let cause = services.bus.cause();
        let wakings = cause.as_ref().map_or(0, |turn| turn.input.wakings) + 1;
        let published = Event::new(AgentDelegate::NAME, (&delegation,)).map(|event| services.emit(extension, event));
        let outcome = published.and_then(|()| check(wakings)).and_then(|()| Waiting::enter(services));
        match outcome {
            Ok(waiting) => {
                let mut pending = Pending::begin(&self.background);
                let call = call(&self, services, extension, &delegation, wakings, cause.as_ref());
                runtime.spawn(async move {
                    let mut answer = run(&self, call.clone()).await;
                    if answer.as_ref().is_err_and(|error| *error.code() == ErrorCode::AGENT_SUSPENDED) {
                        // ASK-01: the program does not wait for the person.
                        drop(pending);
                        answer = run(&self, call.until_decided()).await;
                        pending = Pending::begin(&self.background);
                    }
                    tell(&waiting.0, delegation, answer);
                    let bus = waiting.0.bus.clone();
                    drop(waiting);
                    // A handler of the result may delegate again.
                    bus.wait_until_quiet(DRAIN_TIMEOUT).await;
                    drop(pending);
                });
            }
            Err(error) => {
                let error = match extension {
                    Some(extension) => error.at(extension, "`delegate`"),
                    None => error,
                };
                tell(services, delegation, Err(error));
            }
        }
    }
}

fn check(wakings: u32) -> Result<()> {
    if wakings <= MAX_WAKINGS {
        return Ok(());
    }
    let message = format!("the delegation was not acted upon: {MAX_WAKINGS} delegations led to one another");
    Err(Error::new(ErrorCode::EVENT_LOOP, message)
        .suggest("stop when there is nothing left to do; a timer in a task of its own begins a new chain"))
}

/// Returns the event of a delegation, with its address. If a turn has caused it, it has the same id when that turn goes
/// on and causes it again.
// ONCE-01
fn call(
    agent: &AgentInner,
    services: &Services,
    extension: Option<&ExtensionName>,
    delegation: &AgentDelegate,
    wakings: u32,
    cause: Option<&Arc<TurnInfo>>,
) -> AgentCall {
    let AgentDelegate { target_agent, instance_key, input, metadata, .. } = delegation;
    let mut event = AgentEvent::from_agent(&agent.name, Some(input.clone()));
    event.metadata = metadata.clone();
    event.wakings = wakings;
    let instance = instance_key.clone().unwrap_or_else(|| services.id.key.clone());
    let mut call = AgentCall::new(target_agent.clone(), instance, event);
    if let Some(turn) = cause {
        // F-TRACE
        call.event.trace_id = Some(turn.trace.clone());
        call.event.auth = turn.input.auth.clone();
        call.event.guards.clone_from(&turn.input.guards);
        call.event.id = services.delegations.event_id(turn, extension, &call);
    }
    agent.spec().add_guards(&mut call.event.guards);
    call
}

/// Runs the turn, and returns the text of its answer.
async fn run(agent: &Arc<AgentInner>, call: AgentCall) -> Result<String> {
    let reply = if call.target == agent.name {
        // Also without a router.
        agent.open_for_others(call.instance.clone()).await?.answer_call(call).await
    } else {
        let Some(router) = agent.spec().router.clone() else { return Err(not_found(&call.target, &[])) };
        router.request(call).await
    };
    reply.map(|reply| reply.into_parts().0)
}

/// Emits the result on the bus of the conversation that delegated. A result without a listener is logged.
fn tell(services: &Services, delegation: AgentDelegate, answer: Result<String>) {
    let AgentDelegate { id, target_agent, .. } = delegation;
    if let Err(error) = &answer {
        let (instance, code) = (&services.id, error.code());
        tracing::error!(%instance, delegation = id, %target_agent, %code, "a delegation failed: {}", error.report());
    } else if !services.bus.wants(AgentDelegationResult::NAME) {
        let instance = &services.id;
        tracing::info!(%instance, delegation = id, %target_agent, "a delegation is done, and no extension asked to know");
    }
    let payload = AgentDelegationResult::new(id, target_agent, answer.as_ref().map(|text| text.as_str().into()));
    match Event::new(AgentDelegationResult::NAME, (payload,)) {
        Ok(event) => services.bus.emit(event),
        Err(error) => tracing::error!("the result of a delegation was not emitted: {error}"),
    }
}
