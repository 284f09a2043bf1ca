//! The conversations that a program has opened, until the host closes them.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use goondan_core::{AgentEvent, AgentName, BoxFuture, Error, ErrorCode, Result, TurnResult};
use goondan_lock::Lock;
use goondan_runtime::{Instance, InstanceId};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// The time that a conversation stays open after its last handle was dropped, so that the next message of a user finds
/// it open.
const IDLE: Duration = Duration::from_secs(300);

/// The open conversations of a host.
#[derive(Default)]
pub(crate) struct Instances(Lock<State>);

#[derive(Default)]
struct State {
    held: HashMap<InstanceId, Held>,
    /// Whether a task waits to close idle conversations.
    sweeping: bool,
    /// Set by the drain, and never reset.
    stopped: bool,
}

struct Held {
    instance: Instance,
    handles: usize,
    /// When the last handle was dropped.
    idle_since: Instant,
}

/// A conversation that a host keeps open, returned by [`Host::instance`](crate::Host::instance). Five minutes after the
/// last handle of a conversation was dropped, it closes.
pub struct HostedInstance {
    id: InstanceId,
    instance: Instance,
    instances: Arc<Instances>,
    runtime: Handle,
}

impl Instances {
    /// # Errors
    /// `E_INSTANCE_CLOSED` after [`Instances::stop`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.0.lock().stopped { Err(stopped()) } else { Ok(()) }
    }

    /// Keeps `instance` open.
    ///
    /// # Errors
    /// As [`Instances::check`].
    pub(crate) fn hold(self: &Arc<Self>, id: InstanceId, instance: Instance) -> Result<HostedInstance> {
        let mut state = self.0.lock();
        if state.stopped {
            return Err(stopped());
        }
        let handles = state.held.get(&id).map_or(0, |held| held.handles) + 1;
        // A handle that the program has closed is replaced.
        let held = Held { instance: instance.clone(), handles, idle_since: Instant::now() };
        let replaced = state.held.insert(id.clone(), held);
        drop(state);
        drop(replaced);
        Ok(HostedInstance { id, instance, instances: Arc::clone(self), runtime: Handle::current() })
    }

    /// Returns the agents that have conversations.
    pub(crate) fn agents(&self) -> Vec<AgentName> {
        self.0.lock().held.keys().map(|id| id.agent.clone()).collect()
    }

    /// Refuses further conversations, and returns those that are open.
    pub(crate) fn stop(&self) -> Vec<Instance> {
        let mut state = self.0.lock();
        state.stopped = true;
        state.held.drain().map(|(_, held)| held.instance).collect()
    }

    /// Closes the conversations that have been idle long enough. Returns when to look again, if any is idle.
    fn sweep(&self) -> Option<Duration> {
        let mut state = self.0.lock();
        let idle = |held: &Held| (held.handles == 0).then(|| held.idle_since.elapsed());
        // A conversation closes in the background when its last handle is dropped.
        let over: Vec<_> = state.held.extract_if(|_, held| idle(held).is_some_and(|idle| idle >= IDLE)).collect();
        let longest = state.held.values().filter_map(idle).max();
        state.sweeping = longest.is_some();
        drop(state);
        drop(over);
        longest.map(|idle| IDLE.saturating_sub(idle))
    }
}

fn stopped() -> Error {
    Error::new(ErrorCode::INSTANCE_CLOSED, "the program is ending and opens no conversation any more")
        .suggest("try again when it has started again")
}

impl HostedInstance {
    /// Returns the agent and the key of the conversation.
    pub fn id(&self) -> &InstanceId {
        &self.id
    }

    /// Handles one input event in one turn, as [`Instance::run`] does.
    ///
    /// # Errors
    /// As [`Instance::run`].
    pub fn run(&self, event: impl Into<AgentEvent>) -> BoxFuture<'_, Result<TurnResult>> {
        self.run_event(event.into())
    }

    // The code of an `async fn` is compiled in each crate that awaits it. That of a turn is large: it is compiled here.
    fn run_event(&self, event: AgentEvent) -> BoxFuture<'_, Result<TurnResult>> {
        Box::pin(self.instance.run(event))
    }
}

impl Deref for HostedInstance {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl Drop for HostedInstance {
    fn drop(&mut self) {
        let mut state = self.instances.0.lock();
        let Some(held) = state.held.get_mut(&self.id) else { return };
        held.handles -= 1;
        held.idle_since = Instant::now();
        if held.handles == 0 && !std::mem::replace(&mut state.sweeping, true) {
            let instances = Arc::downgrade(&self.instances);
            self.runtime.spawn(async move {
                let mut wait = Some(IDLE);
                while let Some(duration) = wait {
                    sleep(duration).await;
                    wait = instances.upgrade().and_then(|instances| instances.sweep());
                }
            });
        }
    }
}

impl fmt::Debug for HostedInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostedInstance({})", self.id)
    }
}
