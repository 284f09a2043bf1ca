//! An open conversation: opening, turns, reloads and closing.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use goondan_core::host::panic::drop_guarded;
use goondan_core::host::{ConversationExt, TurnResultExt};
use goondan_core::{
    AgentEvent, BoxFuture, ConversationRewound, Decision, Error, ErrorCode, Event, EventId, FailedTurn, FinishReason,
    Message, Result, Role, Timestamp, TurnId, TurnInfo, TurnResult, Wait,
};
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tracing::Instrument;

use super::Waiter;
use super::shared::AgentInner;
use super::slot::InstanceSlot;
use crate::attach::{
    AgentUpcalls, Generation, InstanceUpcalls, Newest, Replaced, Services, Staged, StepGenerations, Upcalls,
    deactivate, replace, run_cleanup,
};
use crate::awaited::AwaitedValue;
use crate::bus::{Bus, Listeners};
use crate::peers::{Asked, Asks, Left};
use crate::ports::model::check_files;
use crate::ports::store::{EndedTurn, EventDigest, InstanceId, TurnOutcome, TurnStart};
use crate::schema::summary;
use crate::spec::AgentSpec;
use crate::state::States;
use crate::turn::{
    Back, JournaledConversation, Reporter, RequestUsage, Requests, Rewound, Standing, TurnRun, Watch, Workdir,
    cancelled, rewind_event,
};
use crate::updates::UpdateSender;

/// The longest time that the end of a turn waits for event handlers (D-18).
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The part of an open conversation that can be read without waiting for turns.
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
    /// The generations that the last turn replaced between its steps.
    replaced: Replaced,
    workdir: Workdir,
    journaled: JournaledConversation,
    /// When the timer of the calls that wait for a decision ends, if there is one.
    // ASK-01
    expires: Option<Timestamp>,
    /// Whether its turn waited for a decision when it was looked at last.
    waits: bool,
}

impl OpenConversation {
    /// Reads the conversation, and registers the extensions. A turn that was interrupted stays open.
    // ENTRY-08
    pub(super) async fn open(agent: Arc<AgentInner>, slot: &Arc<InstanceSlot>, listeners: &Listeners) -> Result<Self> {
        let mut stored = agent.store.open(&slot.id).await?;
        let states = Arc::new(States::new(std::mem::take(&mut stored.state)));
        let rewound = stored.newest.as_ref().map(|newest| newest.outcome.taken_back().to_vec()).unwrap_or_default();
        let workdir = std::mem::take(&mut stored.workdir);
        let inbox = Arc::default();
        let mut journaled =
            JournaledConversation::new(&slot.id, stored, Arc::clone(&states), Arc::clone(&inbox), &agent.observers)?;
        let owner = Arc::downgrade(&agent) as Weak<dyn AgentUpcalls>;
        let instance = Arc::downgrade(slot) as Weak<dyn InstanceUpcalls>;
        let upcalls = Upcalls { agent: owner, instance, reloads: Arc::clone(&agent.reload_listener) };
        let bus = Bus::new(Handle::current());
        let store = Arc::clone(&agent.store);
        let services = Arc::new(Services::new(slot.id.clone(), bus, (states, inbox), store, upcalls));
        listeners.attach(&services.bus);
        let spec = agent.spec();
        let registered = match Staged::register_all(&spec, &services, &[]).await {
            Ok(staged) => staged.activate(),
            Err(error) => {
                services.bus.close();
                return Err(error);
            }
        };
        if !rewound.is_empty() {
            tell_rewound(&services, rewound);
        }
        // D-18: state that `#[init]` set now survives.
        if let Err(error) = journaled.store_state().await {
            run_cleanup(&registered.extensions).await;
            services.bus.close();
            return Err(error);
        }
        let generation = Arc::new(Generation { spec, registered });
        let newest = Arc::new(Newest::new(&generation));
        let (replaced, workdir) = (Replaced::default(), Workdir::new(workdir));
        let waits = journaled.is_waiting();
        let mut open = Self { agent, services, generation, newest, replaced, workdir, journaled, expires: None, waits };
        open.forget().await;
        Ok(open)
    }

    pub(super) fn view(&self) -> View {
        View { services: Arc::clone(&self.services), newest: Arc::clone(&self.newest) }
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        self.journaled.conversation.messages()
    }

    /// Answers an event in one turn, and commits the turn whatever its outcome. An event that was answered before gets
    /// that answer, and one whose turn was interrupted goes on with it.
    // D-11, D-16, ONCE-01
    pub(super) async fn run(
        &mut self,
        slot: &InstanceSlot,
        mut event: AgentEvent,
        waiter: Waiter,
    ) -> Result<TurnResult> {
        self.adopt_replaced().await;
        self.generation.spec.check_guards(&slot.id.agent, &event)?;
        self.generation.registered.mask(&mut event)?;
        let awaited = match &event.answer {
            Some(format) => Some(Arc::new(AwaitedValue::new(format)?)),
            None => self.generation.spec.answer.clone(),
        };
        self.commit_ended().await?;
        self.journaled.expire(Timestamp::now).await?;
        let info = match self.journaled.standing(&event).await? {
            // ASK-01: no layer runs before all is decided.
            Standing::Open(turn) | Standing::Joined(turn, _) if self.journaled.is_waiting() => {
                return Ok(self.suspended_result(turn));
            }
            Standing::Ended(turn) => return self.stored_result(turn),
            Standing::Open(turn) => self.go_on(slot, turn, event).await?,
            // STEER-01: the turn answers both.
            Standing::Joined(turn, Some(started)) => self.go_on(slot, turn, *started).await?,
            Standing::Joined(..) => {
                self.close_turn().await?;
                return Box::pin(self.run(slot, event, waiter)).await;
            }
            Standing::New(digest) => {
                check_files(&event, &*self.generation.spec.model)?;
                self.journaled.make_way(&event).await?;
                self.close_turn().await?;
                let info = Arc::new(TurnInfo::new(slot.id.agent.clone(), slot.id.key.clone(), event));
                self.journaled.begin(TurnStart::of(&info, digest))?;
                self.services.inbox.turn_begins();
                info
            }
        };
        self.run_turn(slot, &info, awaited, waiter).await
    }

    /// Runs the turn, and commits it.
    async fn run_turn(
        &mut self,
        slot: &InstanceSlot,
        info: &Arc<TurnInfo>,
        awaited: Option<Arc<AwaitedValue>>,
        waiter: Waiter,
    ) -> Result<TurnResult> {
        // Guards of the turn borrow it, and end after its commit.
        let services = &Arc::clone(&self.services);
        let Self { newest, journaled, replaced, .. } = self;
        let lost = journaled.lost();
        let mut until_cancelled = pin!(slot.cancelled());
        // From here on `InstanceSlot::cancel` reaches the turn.
        until_cancelled.as_mut().enable();
        let streams = waiter.updates.as_ref().and_then(UpdateSender::turn_runs);
        let in_turn = (slot.enter_turn(), services.states.enter_turn(), slot.run_event(info), streams);
        let cause = services.bus.enter_turn(info);
        let used = RequestUsage::new(Asked::of(waiter.spent, waiter.updates.clone()));
        let watch = Watch::of(&self.agent.observers, info, waiter.updates, journaled.keeps_runtime_events());
        journaled.tell_to(watch.clone());
        if let Some(watch) = &watch {
            services.showing.watch(Arc::downgrade(watch) as _);
        }
        let reporter = Reporter::new(&services.bus, info, watch.as_deref());
        let generations = StepGenerations { first: &self.generation, services, newest, replaced };
        let reach = &self.agent.reach;
        let asks = Asks { questions: &self.agent.questions, clock: &services.clock };
        let requests = Requests::new(&self.generation.spec, info, &services.inbox, reach, &asks, &reporter, &used);
        let mut turn = TurnRun::new(generations, &self.workdir, journaled, requests, &slot.steering, awaited);
        let span = tracing::info_span!("turn", agent = %slot.id.agent, instance = %slot.id.key, turn = %info.turn);
        let mut outcome = match unless(until_cancelled, lost, &used.asked, turn.run().instrument(span)).await {
            TurnEnd::Outcome(outcome) => outcome,
            TurnEnd::Cancelled => Err(turn.cancelled().await),
            TurnEnd::Lost => Err(turn.lost()),
        };
        services.showing.flush();
        let so_far = turn.end();
        let runtime_events = watch.map(|watch| watch.take_runtime_events()).unwrap_or_default();
        // D-18: state that handlers set in response to this turn's events is committed with it.
        services.bus.drain(DRAIN_TIMEOUT).await;
        journaled.note(&runtime_events);
        let mut stored = self.store_end(info, &mut outcome).await;
        drop(in_turn);
        if stored.is_ok() {
            // State that was set after the commit and before `in_turn` was dropped.
            stored = self.journaled.store_state().await;
        }
        drop(cause);
        if let (Err(error), Err(_)) = (&outcome, &stored) {
            tracing::error!(turn = %so_far.id, "the turn failed and could not be stored: {}", error.report());
        }
        self.adopt_replaced().await;
        match stored.and(outcome) {
            Ok(mut result) => {
                result.set_totals(so_far.steps, so_far.tool_calls);
                Ok(result)
            }
            Err(error) => Err(error.in_turn(so_far)),
        }
    }

    /// Stores how the turn has ended, or that it waits. If it cannot be stored that it waits, the turn has failed.
    async fn store_end(&mut self, info: &TurnInfo, outcome: &mut Result<TurnResult>) -> Result<()> {
        // While the store is away, the turn stays open, whatever layers made of that.
        self.journaled.check_available()?;
        if self.journaled.is_suspending()
            && outcome.is_ok()
            && let Err(error) = self.journaled.suspend().await
        {
            *outcome = Err(error);
            self.journaled.check_available()?;
        }
        if is_suspended(outcome) {
            return Ok(());
        }
        let event = info.input.id.clone();
        let ended = match outcome {
            Ok(result) => TurnOutcome::answered(event, result.finish_reason()),
            Err(error) if *error.code() == ErrorCode::TURN_CANCELLED => TurnOutcome::cancelled(event),
            Err(error) => TurnOutcome::failed(event, error),
        };
        self.journaled.end_turn(&ended).await?;
        self.forget().await;
        Ok(())
    }

    /// Goes on with the open turn, which `event` started.
    // RESUME-01
    async fn go_on(&mut self, slot: &InstanceSlot, turn: TurnId, event: AgentEvent) -> Result<Arc<TurnInfo>> {
        let resumption = self.journaled.check_resumption(&self.generation.spec.policy).await;
        self.forget().await;
        let info = TurnInfo::new(slot.id.agent.clone(), slot.id.key.clone(), event).resumed(turn, resumption?);
        self.journaled.go_on().await?;
        // It asks again.
        drop(self.services.inbox.take_left());
        self.services.inbox.turn_goes_on(self.journaled.answered_requests());
        Ok(Arc::new(info))
    }

    /// Replaces the generation that turns run with: new extensions are registered and become active, and then the old
    /// ones that were not kept are cleaned up. After a failure the conversation continues unchanged.
    pub(super) async fn reload(&mut self, slot: &InstanceSlot, spec: Arc<AgentSpec>) -> Result<()> {
        self.adopt_replaced().await;
        // A task that stores state would wait for the conversation lock, which is held here.
        let in_turn = slot.enter_turn();
        let outcome = replace(&self.generation, spec, &self.services, &self.newest).await;
        let outcome = outcome.map(|new| self.set_generation(new));
        let stored = self.journaled.store_state().await;
        drop(in_turn);
        if let Err(error) = stored {
            // The next turn stores it, or fails for the same reason.
            tracing::error!(instance = %self.services.id, "state was not stored: {}", error.report());
        }
        outcome
    }

    /// Continues with the generation that the last turn switched to between its steps, if it did.
    async fn adopt_replaced(&mut self) {
        if let Some(new) = self.replaced.take().await {
            self.set_generation(new);
        }
    }

    fn set_generation(&mut self, new: Arc<Generation>) {
        let old = std::mem::replace(&mut self.generation, new);
        drop_guarded("the program", || drop(old));
    }

    /// Returns the result of a turn that has ended earlier.
    // ONCE-01
    fn stored_result(&self, EndedTurn { turn, outcome, .. }: EndedTurn) -> Result<TurnResult> {
        let error = match outcome {
            TurnOutcome::Answered { finish_reason, .. } => {
                let is_answer = |message: &&Arc<Message>| {
                    message.turn() == Some(&turn)
                        && message.role() == Role::Assistant
                        && !message.text().trim().is_empty()
                };
                let answer = self.journaled.conversation.newest_first().find(is_answer).cloned();
                return Ok(TurnResult::stored(turn, finish_reason, answer));
            }
            TurnOutcome::Failed { code, message, .. } => Error::new(code, message),
            TurnOutcome::Cancelled { .. } => cancelled(),
            TurnOutcome::Rewound { .. } | TurnOutcome::Rewind { .. } => {
                let message = format!("the turn `{turn}` of this event was taken back with the conversation");
                Error::new(ErrorCode::TURN_REWOUND, message).suggest("send the input again, as a new event")
            }
            TurnOutcome::Interrupted { .. } => {
                let message = format!("the turn `{turn}` of this event was interrupted, and closed without an answer");
                Error::new(ErrorCode::TURN_INTERRUPTED, message).suggest("send the input again, as a new event")
            }
        };
        Err(error.in_turn(FailedTurn::new(turn, 0, Vec::new())))
    }

    /// Cancels the open turn, if it answers `event` and does not run. Returns whether there was one.
    pub(super) async fn cancel(&mut self, event: &EventId) -> Result<bool> {
        if self.journaled.open_event() != Some(event) {
            return Ok(false);
        }
        self.cancel_left().await;
        self.journaled.end_turn(&TurnOutcome::cancelled(event.clone())).await?;
        self.forget().await;
        Ok(true)
    }

    /// Closes the open turn without an answer, if there is one.
    async fn close_turn(&mut self) -> Result<()> {
        self.cancel_left().await;
        self.journaled.close_turn().await?;
        self.forget().await;
        Ok(())
    }

    /// Commits a turn that has ended and could not be committed then, if there is one.
    async fn commit_ended(&mut self) -> Result<()> {
        self.journaled.commit_ended().await?;
        self.forget().await;
        Ok(())
    }

    /// Deletes the conversations that other agents may have had for a turn alone that is over, if there is one.
    // D-40
    async fn forget(&mut self) {
        if let Some(turn) = self.journaled.take_forgotten() {
            Box::pin(forget(&self.generation.spec, turn)).await;
        }
    }

    /// Cancels the turns that the open one waited for when it was interrupted.
    // D-40
    async fn cancel_left(&self) {
        let left = self.services.inbox.take_left();
        if !left.is_empty() {
            Box::pin(Left::cancel_all(left)).await;
        }
    }

    /// Takes the conversation back: the messages of later turns are removed, in a turn of its own. A turn that was
    /// interrupted is closed first.
    // BACK-01
    pub(super) async fn rewind(&mut self, slot: &InstanceSlot, back: Back<'_>) -> Result<Rewound> {
        self.adopt_replaced().await;
        self.commit_ended().await?;
        self.close_turn().await?;
        let rewound = self.journaled.rewound(back)?;
        if rewound.turns.is_empty() {
            return Ok(rewound);
        }
        let InstanceId { agent, key } = slot.id.clone();
        let info = Arc::new(TurnInfo::new(agent, key, rewind_event()));
        let in_turn = slot.enter_turn();
        self.journaled.rewind(&info, &rewound).await?;
        tell_rewound(&self.services, rewound.turns.clone());
        self.services.bus.drain(DRAIN_TIMEOUT).await;
        let stored = self.journaled.store_state().await;
        drop(in_turn);
        if let Err(error) = stored {
            // The next turn stores it, or fails for the same reason.
            tracing::error!(instance = %slot.id, "state was not stored: {}", error.report());
        }
        Ok(rewound)
    }

    /// Returns the calls that wait for a decision.
    pub(super) fn waits(&self) -> Vec<Wait> {
        self.journaled.open_waits()
    }

    /// Whether a turn does not wait for a decision any more which has waited for one.
    pub(super) fn has_been_decided(&mut self) -> bool {
        let waits = self.journaled.is_waiting();
        std::mem::replace(&mut self.waits, waits) && !waits
    }

    /// Returns when the first of them expires, unless there is a timer for it, which the caller then starts.
    pub(super) fn start_timer(&mut self) -> Option<Timestamp> {
        let expires = self.journaled.expires();
        if self.expires == expires {
            return None;
        }
        self.expires = expires;
        expires
    }

    fn suspended_result(&self, turn: TurnId) -> TurnResult {
        TurnResult::suspended(turn, self.waits())
    }

    /// Takes decisions about calls that wait, and goes on with the turn if all of its calls are decided.
    // ASK-01, ASK-02
    pub(super) async fn decide(
        &mut self,
        slot: &InstanceSlot,
        decisions: Vec<Decision>,
        waiter: Waiter,
    ) -> Result<TurnResult> {
        self.adopt_replaced().await;
        self.commit_ended().await?;
        self.journaled.expire(Timestamp::now).await?;
        let tools = self.generation.registered.tools();
        let check_args = |wait: &Wait, args: &Map<String, Value>| {
            let schema = tools.get(&wait.tool).and_then(|(_, tool)| tool.schema.as_ref());
            let violations = schema.map(|schema| schema.violations(&args.clone().into())).unwrap_or_default();
            match violations.is_empty() {
                true => Ok(()),
                false => Err(Error::msg(format!("the arguments do not fit: {}", summary(&violations)))),
            }
        };
        self.journaled.decide(decisions, check_args).await?;
        self.go_on_if_decided(slot, waiter).await
    }

    /// Goes on with the open turn, unless calls of it wait.
    async fn go_on_if_decided(&mut self, slot: &InstanceSlot, waiter: Waiter) -> Result<TurnResult> {
        if self.journaled.is_waiting()
            && let Some(turn) = self.journaled.open_turn()
        {
            return Ok(self.suspended_result(turn.clone()));
        }
        let Some(event) = self.journaled.open_input().cloned() else {
            let error = Error::new(ErrorCode::TURN_INTERRUPTED, "the store has not recorded the input of the turn")
                .suggest("send the input again, as a new event");
            self.close_turn().await?;
            return Err(error);
        };
        self.run(slot, event, waiter).await
    }

    /// Rejects the calls whose time is over, and goes on with the turn if all of its calls are decided. Returns its
    /// event and its outcome.
    pub(super) async fn expire(
        &mut self,
        slot: &InstanceSlot,
        due: Timestamp,
    ) -> Result<Option<(AgentEvent, Result<TurnResult>)>> {
        self.expires = None;
        self.commit_ended().await?;
        if !self.journaled.expire(|| due).await? || self.journaled.is_waiting() {
            return Ok(None);
        }
        let event = self.journaled.open_input().cloned();
        let outcome = self.go_on_if_decided(slot, Waiter::default()).await;
        Ok(event.map(|event| (event, outcome)))
    }

    /// Returns the event of the open turn, if there is one.
    pub(super) fn interrupted(&self) -> Option<AgentEvent> {
        self.journaled.open_input().cloned()
    }

    /// Returns the digest of that event.
    pub(super) fn interrupted_digest(&self) -> Option<EventDigest> {
        self.journaled.open_digest()
    }

    /// Closes the open turn without an answer, if there is one.
    pub(super) async fn abandon(&mut self) -> Result<()> {
        self.close_turn().await
    }

    /// Returns whether the instance belongs to another process, so that the conversation must be opened again.
    pub(super) fn is_lost(&self) -> bool {
        self.journaled.is_lost()
    }

    /// Stores the part that could not be stored when a turn ended, and state that changed outside of turns.
    pub(super) async fn store(&mut self) -> Result<()> {
        self.commit_ended().await?;
        self.journaled.store_state().await
    }

    /// Cleans up the extensions, stores changed state, and releases the stored conversation. A turn that was
    /// interrupted stays open, with the part of an answer that the model had said.
    pub(super) async fn close(mut self) -> Result<()> {
        self.adopt_replaced().await;
        let services = &self.services;
        deactivate(&self.generation.registered.extensions, services).await;
        services.bus.close();
        let stored = match self.is_lost() {
            true => Ok(()),
            false => self.journaled.keep_partial().await.and(self.store().await),
        };
        let Self { journaled, agent, services, generation, newest, .. } = self;
        let stored = stored.and(journaled.close().await);
        drop_guarded("the program", || drop((generation, newest, services, agent)));
        stored
    }
}

/// Whether this is the result of a turn that waits for decisions.
pub(super) fn is_suspended(outcome: &Result<TurnResult>) -> bool {
    outcome.as_ref().is_ok_and(|result| result.finish_reason() == FinishReason::Suspended)
}

/// The end of a turn.
enum TurnEnd<T> {
    Outcome(T),
    Cancelled,
    /// Its instance belongs to another process.
    Lost,
}

/// Runs `turn` to its end, unless it is cancelled or the instance is lost before. A request to another agent whose
/// future is dropped meanwhile is cancelled at once.
// D-40
async fn unless<T>(
    mut cancelled: Pin<&mut impl Future<Output = ()>>,
    mut lost: Option<BoxFuture<'static, ()>>,
    asked: &Asked,
    turn: impl Future<Output = T>,
) -> TurnEnd<T> {
    let mut turn = pin!(turn);
    poll_fn(|cx| {
        if cancelled.as_mut().poll(cx).is_ready() {
            return Poll::Ready(TurnEnd::Cancelled);
        }
        if lost.as_mut().is_some_and(|lost| lost.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(TurnEnd::Lost);
        }
        let polled = turn.as_mut().poll(cx);
        if polled.is_pending() {
            asked.cancel_dropped();
        }
        polled.map(TurnEnd::Outcome)
    })
    .await
}

/// Deletes the conversations that other agents have had for this turn alone.
// D-40
async fn forget(spec: &AgentSpec, turn: TurnId) {
    if let Some(router) = spec.router.clone() {
        // In a task, so that it ends even if the caller is dropped. An error is a panic, which is logged where it
        // happened.
        _ = tokio::spawn(async move { router.forget(&turn).await }).await;
    }
}

/// Tells extensions that these turns were taken back.
// BACK-01
fn tell_rewound(services: &Services, turns: Vec<TurnId>) {
    match Event::new(ConversationRewound::NAME, (ConversationRewound::new(turns),)) {
        Ok(event) => services.emit(None, event),
        Err(error) => tracing::error!("the event `conversation.rewound` was not emitted: {}", error.report()),
    }
}
