//! The port to a queue: events that were accepted, and wait for whoever answers them.

use std::num::NonZeroUsize;

use goondan_core::{BoxFuture, EventId, Result};

use super::router::AgentCall;
use super::store::{InstanceId, TurnOutcome};

/// Where events wait for whoever answers them. A program that has put an event there can say that it is accepted: if its
/// process ends, the event is taken again, and its turn goes on or has an answer already, because an event is answered
/// once.
///
/// Events of one instance are taken one after another, in the order in which they were put.
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use goondan::agent::{AgentCall, LocalRouter};
/// use goondan::model::{ScriptItem, ScriptedModel};
/// use goondan::store::{MemoryQueue, Queue, TurnOutcome};
/// use goondan::{Agent, name::AgentName, name::InstanceKey};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi")])).build()?;
/// let queue = MemoryQueue::new();
/// queue.put(AgentCall::new(agent.name().clone(), InstanceKey::new("user:42")?, "hello".into())).await?;
///
/// for call in queue.take(NonZeroUsize::MIN).await? {
///     let event = call.event.id.clone();
///     let result = agent.instance(call.instance.as_str()).await?.run(call.event.clone()).await?;
///     queue.done(&call, TurnOutcome::answered(event, result.finish_reason())).await?;
/// }
/// # Ok::<(), goondan::Error>(())
/// # })?;
/// # Ok::<(), goondan::Error>(())
/// ```
// ONCE-01
pub trait Queue: Send + Sync + 'static {
    /// Adds an event. If it waits for its instance already, nothing is added. After success, it survives whatever
    /// happens to the process, and in files to the machine.
    ///
    /// # Errors
    /// `E_EVENT_REUSED` when an event waits that has its id and another input; when it cannot be stored.
    fn put(&self, call: AgentCall) -> BoxFuture<'_, Result<()>>;

    /// Takes at most `room` events, and waits until there is one. None of them is taken again in this process, unless it
    /// is given back, and none of its instance, until it is done.
    ///
    /// # Errors
    /// When the queue cannot be read.
    fn take(&self, room: NonZeroUsize) -> BoxFuture<'_, Result<Vec<AgentCall>>>;

    /// Removes an event that was taken, whose turn has ended so.
    ///
    /// # Errors
    /// When that cannot be stored. Then the event is taken again by the next process.
    fn done<'a>(&'a self, call: &'a AgentCall, outcome: TurnOutcome) -> BoxFuture<'a, Result<()>>;

    /// Gives back an event that was taken, because its turn has not ended: the store is away, for example.
    fn give_back(&self, call: &AgentCall);

    /// Waits until an event that is in the queue is done, and returns how its turn ended. `None` if it is not there: the
    /// store may know ([`Store::outcome`](super::store::Store::outcome)).
    ///
    /// # Errors
    /// When the queue cannot be read.
    fn outcome<'a>(
        &'a self,
        instance: &'a InstanceId,
        event: &'a EventId,
    ) -> BoxFuture<'a, Result<Option<TurnOutcome>>>;
}
