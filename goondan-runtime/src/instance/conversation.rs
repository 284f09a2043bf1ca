//! An open conversation: opening, turns, reloads and closing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use goondan_core::host::TurnResultExt;
use goondan_core::host::panic::drop_guarded;
use goondan_core::{AgentEvent, Message, Part, Result, TurnInfo, TurnResult};
use tokio::runtime::Handle;
use tracing::Instrument;

use super::shared::AgentInner;
use super::slot::InstanceSlot;
use crate::attach::{
    AgentUpcalls, Generation, InstanceUpcalls, Newest, Replaced, Services, Staged, StepGenerations, Upcalls,
    deactivate, replace, run_cleanup,
};
use crate::bus::{Bus, Listeners};
use crate::ports::model::Model;
use crate::ports::store::{TurnOutcome, TurnStart};
use crate::spec::AgentSpec;
use crate::state::States;
use crate::turn::{JournaledConversation, Reporter, RequestUsage, Requests, TurnRun, UpdateSender, Workdir};

/// How long the end of a turn waits for event handlers (D-18).
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// What can be read of an open conversation without waiting for turns.
#[derive(Clone)]
pub(super) struct View {
    pub(super) services: Arc<Services>,
    pub(super) newest: Arc<Newest>,
}

/// A conversation from its opening to its closing. It is used under the conversation lock of its slot.
pub(crate) struct OpenConversation {
    /// A strong reference, so that a router finds the agent as long as one of its conversations is open.
    agent: Arc<AgentInner>,
    services: Arc<Services>,
    generation: Arc<Generation>,
    newest: Arc<Newest>,
    /// What the last turn replaced between its steps.
    replaced: Replaced,
    workdir: Workdir,
    journaled: JournaledConversation,
}

impl OpenConversation {
    /// Reads the conversation, commits a turn that was interrupted in it, and registers the extensions.
    // ENTRY-08
    pub(super) async fn open(agent: Arc<AgentInner>, slot: &Arc<InstanceSlot>, listeners: &Listeners) -> Result<Self> {
        let stored = agent.store.open(&slot.id).await?;
        let mut journaled = JournaledConversation::new(&slot.id, stored.base, stored.interrupted, stored.journal)?;
        let owner = Arc::downgrade(&agent) as Weak<dyn AgentUpcalls>;
        let instance = Arc::downgrade(slot) as Weak<dyn InstanceUpcalls>;
        let upcalls = Upcalls { agent: owner, instance, reloads: Arc::clone(&agent.reload_listener) };
        let (bus, states) = (Bus::new(Handle::current()), States::new(stored.state));
        let services = Services::new(slot.id.clone(), bus, states, Arc::clone(&agent.store), upcalls);
        let services = Arc::new(services);
        listeners.attach(&services.bus);
        journaled.close_turn(&services.states).await?;
        let spec = agent.spec();
        let registered = match Staged::register_all(&spec, &services, &[]).await {
            Ok(staged) => staged.activate(),
            Err(error) => {
                services.bus.close();
                return Err(error);
            }
        };
        // D-18: state that `#[init]` set survives from now on.
        if let Err(error) = journaled.store_state(&services.states).await {
            run_cleanup(&registered.extensions).await;
            services.bus.close();
            return Err(error);
        }
        let generation = Arc::new(Generation { spec, registered });
        let newest = Arc::new(Newest::new(&generation));
        let (replaced, workdir) = (Replaced::default(), Workdir::new(stored.workdir));
        Ok(Self { agent, services, generation, newest, replaced, workdir, journaled })
    }

    pub(super) fn view(&self) -> View {
        View { services: Arc::clone(&self.services), newest: Arc::clone(&self.newest) }
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.journaled.conversation.messages()
    }

    /// Runs one turn, and commits it whatever its outcome.
    // D-11, D-16
    pub(super) async fn run(
        &mut self,
        slot: &InstanceSlot,
        event: AgentEvent,
        updates: Option<UpdateSender>,
    ) -> Result<TurnResult> {
        self.adopt_replaced().await;
        check_files(&event, &*self.generation.spec.model)?;
        let Self { services, newest, journaled, replaced, .. } = self;
        journaled.close_turn(&services.states).await?;
        let info = Arc::new(TurnInfo::new(slot.id.agent.clone(), slot.id.key.clone(), event));
        journaled.begin(TurnStart::new(&info.turn).event(&info.input))?;
        let in_turn = slot.enter_turn();
        let cause = services.bus.enter_turn(&info);
        let reporter = Reporter::new(&services.bus, &info, updates, journaled.keeps_runtime_events());
        let used = RequestUsage::default();
        let generations = StepGenerations { first: &self.generation, services, newest, replaced };
        let reach = &self.agent.reach;
        let requests = Requests::new(&self.generation.spec, &info, &services.inbox, reach, &reporter, &used);
        let mut turn = TurnRun::new(generations, &self.workdir, journaled, requests);
        let span = tracing::info_span!("turn", agent = %slot.id.agent, instance = %slot.id.key, turn = %info.turn);
        let outcome = turn.run().instrument(span).await;
        let so_far = turn.end();
        let runtime_events = reporter.into_runtime_events();
        // D-18: state that handlers set in response to this turn's events is committed with it.
        services.bus.drain(DRAIN_TIMEOUT).await;
        journaled.note(&runtime_events);
        let ended = match &outcome {
            Ok(_) => TurnOutcome::answered(info.input.id.clone()),
            Err(error) => TurnOutcome::failed(info.input.id.clone(), error),
        };
        let mut stored = journaled.end_turn(&ended, &services.states).await;
        drop(in_turn);
        if stored.is_ok() {
            // State that was set after the commit and before `in_turn` was dropped.
            stored = journaled.store_state(&services.states).await;
        }
        drop(cause);
        self.adopt_replaced().await;
        if let (Err(error), Err(_)) = (&outcome, &stored) {
            tracing::error!(turn = %so_far.id, "the turn failed and could not be stored: {}", error.report());
        }
        match stored.and(outcome) {
            Ok(mut result) => {
                result.set_totals(so_far.steps, so_far.tool_calls);
                Ok(result)
            }
            Err(error) => Err(error.in_turn(so_far)),
        }
    }

    /// Replaces what turns run with: new extensions are registered and become active, and then the old ones that were
    /// not kept are cleaned up. After a failure the conversation continues unchanged.
    pub(super) async fn reload(&mut self, slot: &InstanceSlot, spec: Arc<AgentSpec>) -> Result<()> {
        self.adopt_replaced().await;
        // A task that stores state would wait for the conversation lock, which is held here.
        let in_turn = slot.enter_turn();
        let outcome = replace(&self.generation, spec, &self.services, &self.newest).await;
        let outcome = outcome.map(|new| self.set_generation(new));
        let stored = self.journaled.store_state(&self.services.states).await;
        drop(in_turn);
        if let Err(error) = stored {
            // The next turn stores it, or fails for the same reason.
            tracing::error!(instance = %self.services.id, "state was not stored: {}", error.report());
        }
        outcome
    }

    /// Continues with what the last turn replaced between its steps, if anything.
    async fn adopt_replaced(&mut self) {
        if let Some(new) = self.replaced.take().await {
            self.set_generation(new);
        }
    }

    fn set_generation(&mut self, new: Arc<Generation>) {
        let old = std::mem::replace(&mut self.generation, new);
        drop_guarded("the program", || drop(old));
    }

    /// Commits a turn that was left open, and stores changed state.
    pub(super) async fn store(&mut self) -> Result<()> {
        self.journaled.close_turn(&self.services.states).await?;
        self.store_state().await
    }

    /// Stores state that changed outside of turns.
    pub(super) async fn store_state(&mut self) -> Result<()> {
        self.journaled.store_state(&self.services.states).await
    }

    /// Commits an open turn, cleans up the extensions, stores changed state, and releases the stored conversation.
    pub(super) async fn close(mut self) -> Result<()> {
        self.adopt_replaced().await;
        let services = &self.services;
        let turn = self.journaled.close_turn(&services.states).await;
        deactivate(&self.generation.registered.extensions, services).await;
        services.bus.close();
        let state = self.journaled.store_state(&services.states).await;
        let Self { journaled, agent, services, generation, newest, .. } = self;
        drop(journaled);
        drop_guarded("the program", || drop((generation, newest, services, agent)));
        turn.and(state)
    }
}

/// Checks that the model takes the files of an input.
// REFUSED-01
fn check_files(event: &AgentEvent, model: &dyn Model) -> Result<()> {
    let files = event.content.iter().filter_map(|part| if let Part::File(file) = part { Some(file) } else { None });
    let mut files = files.peekable();
    if files.peek().is_none() {
        return Ok(());
    }
    let info = model.info();
    match files.find(|file| !info.takes(&file.media_type)) {
        None => Ok(()),
        Some(file) => {
            let accepted = info.accepts.unwrap_or_default().join(", ");
            let accepted = if accepted.is_empty() { "no files" } else { &accepted };
            Err(file.unusable(&format!("the model takes {accepted}")).suggest("convert the file, or use another model"))
        }
    }
}
