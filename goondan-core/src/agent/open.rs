//! Owns an instance while it is open: what it is made of, and the way of a turn through it to the store.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tracing::Instrument;

use super::AgentInner;
use super::attached::{drop_behind_border, go_away, take_leave};
use super::description::{Description, Generation};
use super::live::Live;
use super::registration::Prepared;
use super::report::Reporter;
use super::services::Services;
use super::slot::Slot;
use super::stream::Updates;
use super::turn::TurnRun;
use super::workdir::Workdir;
use crate::error::Result;
use crate::event::AgentEvent;
use crate::event::TurnInfo;
use crate::name::{TraceId, TurnId};
use crate::pipeline::TurnResult;
use crate::state::States;

/// How long the end of a turn waits for event handlers (D-18).
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// What is there from one opening of an instance to its closing.
pub(super) struct OpenInstance {
    /// Held, so that routers find an agent as long as it has a conversation open.
    pub(super) agent: Arc<AgentInner>,
    pub(super) services: Arc<Services>,
    /// What the next turn runs with. Exchanged only by whoever is first in the queue.
    generation: Mutex<Arc<Generation>>,
    pub(super) workdir: Workdir,
}

/// An open instance with what only the first in its queue may touch.
pub(super) struct Opened {
    pub(super) instance: Arc<OpenInstance>,
    pub(super) live: Live,
}

impl OpenInstance {
    pub(super) fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.generation.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn turn_of(&self, input: AgentEvent) -> TurnInfo {
        TurnInfo {
            agent: self.services.id.agent.clone(),
            instance: self.services.id.key.clone(),
            turn: TurnId::random(),
            // F-TRACE: taken from the event, else made up once.
            trace: input.trace_id.clone().unwrap_or_else(TraceId::random),
            input,
        }
    }
}

impl Opened {
    /// Reads the conversation, closes what was left open in it, and makes the extensions (ENTRY-08).
    pub(super) async fn open(agent: Arc<AgentInner>, slot: &Arc<Slot>) -> Result<Self> {
        let opened = agent.store.open(&slot.id).await?;
        let mut live = Live::new(&slot.id, opened.base, opened.interrupted, opened.journal)?;
        let services = Services::new(slot, States::new(opened.state), tokio::runtime::Handle::current());
        let services = Arc::new(services);
        live.close_turn(&services.states).await?;
        let description = agent.description();
        let registered = match Prepared::of(&description, &services, &[]).await {
            Ok(prepared) => prepared.take_effect(),
            Err(error) => {
                services.bus.close();
                return Err(error);
            }
        };
        services.serve();
        // D-18: what `#[init]` set is kept from now on.
        if let Err(error) = live.store_state(&services.states).await {
            take_leave(&registered.extensions).await;
            services.bus.close();
            return Err(error);
        }
        let generation = Mutex::new(Arc::new(Generation { agent: description, registered }));
        let workdir = Workdir::new(opened.workdir);
        let instance = Arc::new(OpenInstance { agent, services, generation, workdir });
        Ok(Self { instance, live })
    }

    /// Runs one turn.
    pub(super) async fn run(&mut self, event: AgentEvent, updates: Option<Updates>) -> Result<TurnResult> {
        let Self { instance, live } = self;
        let (services, generation) = (&instance.services, instance.generation());
        live.close_turn(&services.states).await?;
        let turn = Arc::new(instance.turn_of(event));
        live.begin(&turn.turn)?;
        let in_turn = InTurn::start(services);
        let reporter = Reporter::new(&services.bus, &turn, updates, live.keeps_runtime_events());
        let mut run = TurnRun::new(instance, &generation, live, &turn, reporter);
        let id = &services.id;
        let span = tracing::info_span!("turn", agent = %id.agent, instance = %id.key, turn = %run.info.turn);
        let outcome = run.run().instrument(span).await;
        let (so_far, told) = run.end();
        // D-18: what handlers set in answer to this turn's events belongs to this turn.
        services.bus.drain(DRAIN_LIMIT).await;
        live.note(&told);
        // D-11, D-16: a failed turn is folded, and its state stored, like any other.
        let mut stored = live.close_turn(&services.states).await;
        drop(in_turn);
        if stored.is_ok() {
            // What was set after the commit, while the turn still seemed to run.
            stored = live.store_state(&services.states).await;
        }
        if let (Err(error), Err(_)) = (&outcome, &stored) {
            tracing::error!(turn = %so_far.id, "the turn failed and could not be stored: {}", error.report());
        }
        stored.and(outcome).map_err(|error| error.in_turn(so_far))
    }

    /// Exchanges what turns run with.
    pub(super) async fn reload(&mut self, to: Arc<Description>) -> Result<()> {
        let Self { instance, live } = self;
        let services = &instance.services;
        // From here on `store_when_idle` would wait for whoever is first in the queue: this one.
        let in_turn = InTurn::start(services);
        let old = instance.generation();
        let outcome = match Prepared::of(&to, services, &old.registered.extensions).await {
            Ok(prepared) => {
                let new = Arc::new(Generation { agent: to, registered: prepared.take_effect() });
                *instance.generation.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
                let stays = |attached: &_| new.registered.extensions.iter().any(|kept| Arc::ptr_eq(kept, attached));
                let gone = old.registered.extensions.iter().filter(|attached| !stays(attached)).map(Arc::clone);
                go_away(&gone.collect::<Vec<_>>(), services).await;
                drop_behind_border(old).await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        let stored = live.store_state(&services.states).await;
        drop(in_turn);
        if let Err(error) = stored {
            // The next turn stores it, or fails for the same reason.
            tracing::error!(instance = %services.id, "state was not stored: {}", error.report());
        }
        outcome
    }

    /// Stores what is not stored yet.
    pub(super) async fn settle(&mut self) -> Result<()> {
        let states = &self.instance.services.states;
        self.live.close_turn(states).await?;
        self.live.store_state(states).await
    }

    /// Lets the extensions clean up, stores what is left, and gives the conversation free.
    pub(super) async fn close(self) -> Result<()> {
        let Self { instance, mut live } = self;
        let services = &instance.services;
        let turn = live.close_turn(&services.states).await;
        // From here on `store_when_idle` would wait for whoever is first in the queue: this one.
        let in_turn = InTurn::start(services);
        go_away(&instance.generation().registered.extensions, services).await;
        services.bus.close();
        let state = live.store_state(&services.states).await;
        drop(in_turn);
        drop(live);
        drop_behind_border(instance).await;
        turn.and(state)
    }

    /// Whether something is under way that nobody waits in the queue for.
    pub(super) fn is_busy(&self) -> bool {
        self.instance.services.are_busy()
    }
}

/// While it lives, the end of a turn will store changed state.
struct InTurn<'a>(&'a Services);

impl<'a> InTurn<'a> {
    fn start(services: &'a Services) -> Self {
        services.in_turn.store(true, Ordering::Release);
        Self(services)
    }
}

impl Drop for InTurn<'_> {
    fn drop(&mut self) {
        self.0.in_turn.store(false, Ordering::Release);
    }
}
