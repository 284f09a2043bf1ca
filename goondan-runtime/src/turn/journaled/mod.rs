//! The conversation that a turn changes, with the journal that records the changes.

mod calls;
mod deciding;
mod going_on;
mod rewinding;

pub(super) use calls::CallJournal;
pub(in crate::turn) use deciding::DECISIONS;
pub(crate) use deciding::suspended;
pub(crate) use going_on::Standing;
pub use rewinding::Rewound;
pub(crate) use rewinding::{Back, rewind_event};

use std::collections::BTreeMap;
use std::sync::Arc;

use goondan_core::host::{ConversationExt, IdSet, MessageExt, ToolCallResultExt, WireError};
use goondan_core::{
    Applied, BoxFuture, Conversation, Error, ErrorCode, EventId, ExtensionName, Message, MessageEvent, Part, Result,
    Role, RuntimeEvent, Secret, Source, ToolCallId, ToolCallPart, ToolCallResult, ToolError, ToolResultPart, TurnId,
    Verdict, Wait,
};
use serde_json::Value;

use going_on::Input;

use super::estimate::TokenEstimate;
use super::first_piece::FirstPiece;
use super::left_out::LeftOut;
use super::partial::PartialAnswer;
use super::prefix::{Asked, Prefixes};
use super::telling::Telling;
use super::watch::{Observers, Watch};
use crate::peers::Inbox;
use crate::ports::store::{
    Commit, Durability, EmittedBy, EventDigest, Facts, InstanceId, Interrupted, Journal, Opened, Reached, Suspend,
    TurnOutcome, TurnStart,
};
use crate::state::{States, TakenState};

/// A conversation whose changes are written to the journal of its store. It is made when the conversation is opened.
pub(crate) struct JournaledConversation {
    pub(crate) conversation: Conversation,
    journal: Box<dyn Journal>,
    states: Arc<States>,
    inbox: Arc<Inbox>,
    /// The turn that was begun and not committed: it is running, or a dropped caller or a crash interrupted it.
    open_turn: Option<OpenTurn>,
    /// The calls of the open turn that have started and must not run twice (EFFECT-01).
    started: IdSet<ToolCallId>,
    /// The answers of persons that are masked after they were given.
    secrets: Vec<Secret>,
    /// The facts about the open turn beside its events.
    pub(super) facts: Facts,
    /// Why the store could not be reached in the turn that runs, or that the instance is lost to another process.
    unavailable: Option<Error>,
    /// The orphans that were logged.
    orphans: Vec<ToolCallId>,
    /// The answer that the model is generating.
    pub(super) partial: PartialAnswer,
    pub(super) estimate: TokenEstimate,
    pub(super) prefixes: Prefixes,
    pub(super) first_piece: FirstPiece,
    telling: Telling,
    /// Whether files of the conversation may have been refused, so that requests leave them out.
    has_refused_files: bool,
    /// Whether the provider refused a request that held the model to a value.
    pub(super) refuses_values: bool,
    /// The calls of the turn that runs which wait for decisions: it is about to be suspended.
    // ASK-01
    suspending: Option<Vec<Wait>>,
    /// The state at that moment, which is stored with them.
    suspended_state: BTreeMap<ExtensionName, Value>,
    /// The turn that is over, if conversations are to be deleted that other agents may have had for it alone.
    // D-40
    forgotten: Option<TurnId>,
}

/// A turn that is not committed.
struct OpenTurn {
    id: TurnId,
    /// The event that it answers, if that is known.
    event: Option<EventId>,
    digest: Option<EventDigest>,
    input: Option<Input>,
    /// Its outcome, once it has ended, until it is committed.
    ended: Option<TurnOutcome>,
}

impl JournaledConversation {
    /// The conversation as `opened` has it, whose state was taken.
    pub(crate) fn new(
        id: &InstanceId,
        opened: Opened,
        states: Arc<States>,
        inbox: Arc<Inbox>,
        observers: &Arc<Observers>,
    ) -> Result<Self> {
        let Opened { base, interrupted, newest, journal, .. } = opened;
        let (mut conversation, duplicates) = Conversation::from_base(base);
        if !duplicates.is_empty() {
            tracing::warn!(instance = %id, ?duplicates, "messages with ids that earlier ones have are left out");
        }
        let (mut open_turn, mut started, mut facts) = (None, IdSet::default(), Facts::default());
        if let Some(interrupted) = interrupted {
            tracing::info!(instance = %id, turn = %interrupted.turn, "the last turn was interrupted");
            inbox.may_have_ephemeral();
            for event in interrupted.events {
                conversation.apply(event)?;
            }
            let Interrupted { turn, event, input, digest, .. } = interrupted;
            let input = input.map(|event| Input::Recorded(Box::new(event)));
            open_turn = Some(OpenTurn { id: turn, event, digest, input, ended: None });
            started.extend(interrupted.started);
            facts = interrupted.facts;
            states.add_recorded(&facts.state);
        }
        let partial = PartialAnswer::default();
        Ok(Self {
            has_refused_files: LeftOut::known(&conversation).is_some(),
            refuses_values: false,
            conversation,
            journal,
            states,
            inbox,
            open_turn,
            started,
            secrets: Vec::new(),
            facts,
            unavailable: None,
            orphans: Vec::new(),
            partial,
            estimate: TokenEstimate::default(),
            prefixes: Prefixes::default(),
            first_piece: FirstPiece::default(),
            telling: Telling::new(id, observers),
            suspending: None,
            suspended_state: BTreeMap::new(),
            forgotten: newest.filter(|newest| newest.forgets).map(|newest| newest.turn),
        })
    }

    pub(crate) fn begin(&mut self, start: TurnStart<'_>) -> Result<()> {
        let begun = self.journal.begin(start);
        self.notice(begun)?;
        let event = start.event.map(|event| event.id.clone());
        let input = start.info.map(|info| Input::Given(Arc::clone(info)));
        let TurnStart { turn, digest, .. } = start;
        self.open_turn = Some(OpenTurn { id: turn.clone(), event, digest, input, ended: None });
        self.is_back();
        self.record_outside()
    }

    /// Records the state that was set while no turn ran, with the next fact.
    fn record_outside(&mut self) -> Result<()> {
        match self.states.take_outside() {
            Some(taken) => self.with_state(taken, |_| Ok(())),
            None => Ok(()),
        }
    }

    /// Records something that the turn has reached, with the state that belongs to it.
    pub(super) fn reached(&mut self, what: Reached) -> Result<()> {
        self.check_available()?;
        match self.states.take_unrecorded() {
            Some(taken) => self.with_state(taken, |this| this.record_reached(what)),
            None => self.record_reached(what),
        }
    }

    #[inline]
    fn record_reached(&mut self, what: Reached) -> Result<()> {
        let recorded = self.journal.reached(&what);
        self.notice(recorded)?;
        self.facts.reached(self.conversation.events().len(), what);
        Ok(())
    }

    /// Records state that was taken for that, and then the fact that it belongs to. If one of them cannot be recorded,
    /// the next fact tries again.
    #[cold]
    fn with_state(&mut self, mut taken: TakenState, fact: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let recorded = self.journal.record_state(&taken.state);
        let recorded = self.notice(recorded).and_then(|()| {
            self.facts.state(std::mem::take(&mut taken.state));
            fact(self)
        });
        recorded.inspect_err(|_| self.states.give_back(taken))
    }

    /// Takes in that the store cannot be reached, if that is the error.
    #[inline]
    fn notice<T>(&mut self, outcome: Result<T>) -> Result<T> {
        outcome.inspect_err(|error| note_unavailable(&mut self.unavailable, error))
    }

    /// Fails if the store could not be reached in this turn.
    // RESUME-01
    #[inline]
    pub(crate) fn check_available(&self) -> Result<()> {
        self.unavailable.as_ref().map_or(Ok(()), |error| Err(WireError::copy(error)))
    }

    /// Forgets that the store could not be reached: it is asked again now. An instance that is lost stays lost.
    fn is_back(&mut self) {
        if !self.is_lost() {
            self.unavailable = None;
        }
    }

    /// Returns whether the instance belongs to another process. Nothing is written any more then, and the conversation
    /// must be opened again.
    pub(crate) fn is_lost(&self) -> bool {
        self.unavailable.as_ref().is_some_and(|error| *error.code() == ErrorCode::STORE_LOST)
    }

    /// Returns a future that ends when the instance is lost, if the store tells.
    pub(crate) fn lost(&self) -> Option<BoxFuture<'static, ()>> {
        self.journal.lost()
    }

    /// Takes in that the instance is lost, and returns the error for that.
    pub(crate) fn lose(&mut self) -> Error {
        let error = Error::new(ErrorCode::STORE_LOST, "another process has taken the instance over")
            .suggest("send the input again: it is opened again then, and the turn goes on");
        note_unavailable(&mut self.unavailable, &error);
        error
    }

    /// Records the part of an answer that the model had said in a turn that was interrupted, so that it is kept if
    /// the turn is closed when the conversation is open again. It is no fact: a turn that goes on takes it back.
    // RESUME-01
    pub(crate) async fn keep_partial(&mut self) -> Result<()> {
        let Some(open) = self.open_turn.as_ref().filter(|open| open.ended.is_none()) else { return Ok(()) };
        let Some(message) = self.partial.take(&open.id) else { return Ok(()) };
        self.emit_by(MessageEvent::append(message), Some(&EmittedBy::Partial))?;
        self.flush(Durability::Flushed).await
    }

    /// Gives the instance back to the store.
    pub(crate) async fn close(self) -> Result<()> {
        self.journal.close().await
    }

    /// Returns whether a call has started that must not run twice.
    pub(super) fn has_started(&self, call: &ToolCallId) -> bool {
        self.started.contains(call)
    }

    /// Applies an event of the runtime to the conversation, and records it in the journal.
    pub(super) fn emit(&mut self, event: MessageEvent) -> Result<()> {
        self.emit_by(event, None)
    }

    /// Applies an event of an extension to the conversation, and records it in the journal.
    pub(super) fn emit_by(&mut self, mut event: MessageEvent, by: Option<&EmittedBy>) -> Result<()> {
        self.check_available()?;
        self.set_turn(&mut event);
        if by.is_none()
            && let Some(taken) = self.states.take_unrecorded()
        {
            return self.with_state(taken, |this| this.apply(event, None));
        }
        self.apply(event, by)
    }

    #[inline]
    fn apply(&mut self, event: MessageEvent, by: Option<&EmittedBy>) -> Result<()> {
        if self.conversation.apply(event)? == Applied::TargetNotFound {
            let events = self.conversation.events();
            if let Some(MessageEvent::Remove { target_id } | MessageEvent::Replace { target_id, .. }) = events.last() {
                tracing::warn!(
                    code = %ErrorCode::MESSAGE_TARGET_NOT_FOUND,
                    event_index = events.len() - 1,
                    %target_id,
                    "a message event aims at a message that the conversation does not hold"
                );
            }
        }
        let [.., event] = self.conversation.events() else { return Ok(()) };
        if event.appended().is_none() {
            self.estimate.forget();
            self.prefixes.changed(event, by.and_then(EmittedBy::extension));
        }
        let recorded = self.journal.record(event, by);
        self.notice(recorded)?;
        self.facts.event(self.conversation.events().len() - 1, by);
        self.telling.tell(&self.conversation);
        Ok(())
    }

    /// Sends the later messages of the open turn to `watch`, if there is one.
    pub(crate) fn tell_to(&mut self, watch: Option<Arc<Watch>>) {
        self.telling.start(watch);
    }

    /// Tells the messages of a turn that goes on from its first. Those from the event `held_from` are held.
    #[cold]
    pub(super) fn tell_again(&mut self, held_from: Option<usize>) {
        self.telling.tell_again(&self.conversation, held_from);
    }

    /// Tells new messages only when the layers of the step have approved its answer.
    pub(super) fn hold_messages(&mut self) {
        self.telling.hold();
    }

    /// Tells the held messages.
    #[inline]
    pub(super) fn release_messages(&mut self) {
        self.telling.release(&self.conversation);
    }

    /// Takes in a request to a model, and computes its common beginning with the one before.
    pub(super) fn sent<'e>(
        &mut self,
        asked: &Asked<'_>,
        edits: impl Iterator<Item = (&'e MessageEvent, &'e ExtensionName)>,
    ) {
        self.prefixes.sent(asked, (&self.conversation, &self.orphans), edits);
    }

    /// Returns the files that a request leaves out because a provider has refused it, if there is something.
    #[inline]
    pub(super) fn left_out(&mut self) -> Option<Box<LeftOut>> {
        if self.has_refused_files { LeftOut::known(&self.conversation) } else { None }
    }

    /// Keeps the outcome of a request that left files out.
    #[cold]
    pub(super) fn keep_left_out(&mut self, left_out: &LeftOut, was_accepted: bool) -> Result<()> {
        self.has_refused_files = !was_accepted;
        let mut events = left_out.events(&self.conversation, was_accepted).into_iter();
        events.try_for_each(|event| self.emit(event))
    }

    /// Sets the turn that made the message of an event: the open one, or if the message is a changed one that keeps its
    /// id, the turn of that.
    fn set_turn(&self, event: &mut MessageEvent) {
        let (message, changed, replaced) = match event {
            MessageEvent::Append { message } => (message, None, None),
            MessageEvent::Replace { target_id, message } => {
                let target = self.conversation.find(target_id).map(|message| &**message);
                let is_same = message.id() == target_id;
                (message, target.filter(|_| is_same), target.filter(|_| !is_same))
            }
            _ => return,
        };
        let turn = match changed {
            Some(changed) => changed.turn(),
            None => self.open_turn.as_ref().map(|open| &open.id),
        };
        if message.turn() != turn {
            Arc::make_mut(message).set_turn(turn.cloned());
        }
        if let Some(replaced) = replaced.filter(|replaced| replaced.turn() != turn)
            && message.stands_for().is_none()
        {
            // BACK-01: a conversation that is taken back keeps it.
            let new = Arc::make_mut(message);
            *new = new.clone().standing_for([replaced.into()]);
        }
    }

    pub(super) async fn flush(&mut self, durability: Durability) -> Result<()> {
        self.check_available()?;
        let flushed = self.journal.flush(durability).await;
        self.notice(flushed)
    }

    /// Logs the tool calls and results that are kept from the model, each once (PAIR-01).
    pub(super) fn report_orphans(&mut self, turn: &TurnId) {
        let orphans = self.conversation.orphan_ids();
        if *orphans == self.orphans {
            return;
        }
        if tracing::enabled!(tracing::Level::WARN) {
            let known: IdSet<_> = self.orphans.iter().collect();
            let new: Vec<_> = orphans.iter().filter(|id| !known.contains(id)).collect();
            if !new.is_empty() {
                tracing::warn!(
                    %turn, orphans = new.len(), calls = ?new,
                    "tool calls without result, or results without call, are kept from the model"
                );
            }
        }
        orphans.as_ref().clone_into(&mut self.orphans);
    }

    pub(crate) fn keeps_runtime_events(&self) -> bool {
        self.journal.keeps_runtime_events()
    }

    /// Records runtime events. A failure is logged and does not fail the turn.
    pub(crate) fn note(&mut self, events: &[RuntimeEvent]) {
        if !events.is_empty()
            && !self.is_lost()
            && let Err(error) = self.journal.note(events)
        {
            tracing::warn!("runtime events were not kept: {}", error.report());
        }
    }

    /// Closes the turn that was interrupted by a crash or by a dropped caller, if any, without an answer.
    pub(crate) async fn close_turn(&mut self) -> Result<()> {
        if self.open_turn.is_none() {
            return Ok(());
        }
        self.give_up_rewind().await?;
        let outcome = TurnOutcome::interrupted(self.open_event().cloned());
        self.end_turn(&outcome).await
    }

    /// Ends the open turn, if any: keeps the part of an answer that the model had said, answers the unanswered calls,
    /// commits the turn with the changed state, and folds it. For each unanswered call, the model reads whether it
    /// may be repeated.
    pub(crate) async fn end_turn(&mut self, outcome: &TurnOutcome) -> Result<()> {
        let Some(turn) = self.open_turn.as_ref().map(|open| open.id.clone()) else { return Ok(()) };
        self.is_back();
        if let Some(message) = self.partial.take(&turn) {
            self.emit(MessageEvent::append(message))?;
        }
        for call in self.conversation.unanswered_calls() {
            let result = self.interrupted_call(call);
            self.emit(MessageEvent::append(tool_message(&result)))?;
        }
        if let Some(open) = &self.open_turn {
            let input = open.input.as_ref().map(Input::event);
            self.telling.finish(&self.conversation, &turn, input);
        }
        self.commit(&turn, Some(outcome)).await
    }

    /// Returns the result of a call that has none because its turn was interrupted.
    pub(super) fn interrupted_call(&self, call: ToolCallPart) -> ToolCallResult {
        let error = ToolError::from(self.interruption(&call));
        ToolCallResult::from_parts(call.tool_call_id, call.tool_name, Err(error))
    }

    /// Returns the error that the model reads as the result of an unanswered call.
    fn interruption(&self, call: &ToolCallPart) -> Error {
        let tool = &call.tool_name;
        if let Some(Verdict::Reject { reason, .. }) = self.facts.rejection(&call.tool_call_id).map(|it| &it.verdict) {
            return Error::rejected(reason.clone());
        }
        if self.started.contains(&call.tool_call_id) {
            let message = format!("the turn ended while `{tool}` ran: whether it did its work is unknown");
            return Error::new(ErrorCode::TOOL_OUTCOME_UNKNOWN, message)
                .suggest("check what it did before calling it again; it is not run again by itself");
        }
        // A call that was not recorded as started did not start, or its effect allows to run it twice.
        Error::new(ErrorCode::TOOL_INTERRUPTED, format!("the turn ended before `{tool}` was answered"))
            .suggest("call it again if its answer is still wanted: that does no harm")
    }

    /// Stores changed state: with an empty turn, or in the turn that is open.
    pub(crate) async fn store_state(&mut self) -> Result<()> {
        if !self.states.have_changed() {
            return Ok(());
        }
        if let Some(OpenTurn { id: turn, event, .. }) = &self.open_turn {
            if event.is_none() && self.conversation.events().is_empty() {
                // It only stores state.
                let turn = turn.clone();
                return self.commit(&turn, None).await;
            }
            if let Some(taken) = self.states.take_outside() {
                let suspended = self.journal.suspend(Suspend::new(turn, &taken.state)).await;
                match self.notice(suspended) {
                    Ok(()) => self.facts.suspended(Vec::new(), taken.state),
                    Err(error) => {
                        self.states.give_back(taken);
                        return Err(error);
                    }
                }
            }
            return Ok(());
        }
        let turn = TurnId::random();
        self.journal.begin(TurnStart::new(&turn))?;
        self.open_turn = Some(OpenTurn { id: turn.clone(), event: None, digest: None, input: None, ended: None });
        self.commit(&turn, None).await
    }

    async fn commit(&mut self, turn: &TurnId, outcome: Option<&TurnOutcome>) -> Result<()> {
        self.check_available()?;
        let state = self.states.changed();
        let mut digest = None;
        if let Some(open) = &mut self.open_turn {
            // Before it is committed: the caller may be dropped meanwhile.
            open.ended = outcome.cloned();
            digest = open.digest;
        }
        let joined: Vec<_> = self.facts.joined().cloned().collect();
        let forgets = outcome.is_some() && self.inbox.has_ephemeral();
        let conversation = &self.conversation;
        let commit = Commit { turn, conversation, state: &state, outcome, digest, joined: &joined, forgets };
        let committed = self.journal.commit(commit).await;
        self.notice(committed)?;
        self.is_committed();
        Ok(())
    }

    /// Returns the turn that is over, if conversations are to be deleted that other agents may have had for it alone.
    #[inline]
    pub(crate) fn take_forgotten(&mut self) -> Option<TurnId> {
        self.forgotten.take()
    }

    fn is_committed(&mut self) {
        self.states.mark_stored();
        self.conversation.fold();
        let (turn, ended) = self.open_turn.take().map(|open| (open.id, open.ended)).unzip();
        let ended = ended.flatten();
        self.telling.committed(ended.as_ref());
        if ended.is_some() && self.inbox.take_ephemeral() {
            self.forgotten = turn;
        }
        self.started.clear();
        self.facts.clear();
        self.suspending = None;
        self.suspended_state.clear();
    }
}

#[cold]
fn note_unavailable(unavailable: &mut Option<Error>, error: &Error) {
    if [ErrorCode::STORE_UNAVAILABLE, ErrorCode::STORE_LOST].contains(error.code()) {
        unavailable.get_or_insert_with(|| WireError::copy(error));
    }
}

/// Returns the message with the result of one tool call (D-12).
pub(super) fn tool_message(result: &ToolCallResult) -> Message {
    let (tool_call_id, tool_name) = (result.call_id().clone(), result.tool_name().to_owned());
    let mut part = ToolResultPart::new(tool_call_id.clone(), tool_name.clone(), result.to_tool_output());
    part.is_error = result.has_failed_reply();
    Message::new(Role::Tool, Part::from(part), Source::Tool { tool_call_id, tool_name })
}
