//! The conversation that a turn changes, with the journal that records the changes.

use std::sync::Arc;

use goondan_core::host::IdSet;
use goondan_core::host::{ConversationExt, MessageExt, ToolCallResultExt};
use goondan_core::{
    Applied, Conversation, Error, ErrorCode, EventId, ExtensionName, Message, MessageEvent, Part, Result, Role,
    RuntimeEvent, Source, ToolCallId, ToolCallPart, ToolCallResult, ToolError, ToolResultPart, TurnId,
};

use super::estimate::TokenEstimate;
use super::left_out::LeftOut;
use super::partial::PartialAnswer;
use super::prefix::{Asked, Prefixes};
use crate::ports::store::{Commit, Durability, InstanceId, Interrupted, Journal, TurnOutcome, TurnStart};
use crate::state::States;

/// A conversation whose changes are written to the journal of its store. It is made when the conversation is opened.
pub(crate) struct JournaledConversation {
    pub(crate) conversation: Conversation,
    journal: Box<dyn Journal>,
    /// The turn that was begun and not committed: it is running, or a cancelled caller or a crash interrupted it.
    open_turn: Option<OpenTurn>,
    /// The calls of the open turn that have started and must not run twice (EFFECT-01).
    started: IdSet<ToolCallId>,
    /// The orphans that were logged.
    orphans: Vec<ToolCallId>,
    /// The answer that the model is generating.
    pub(super) partial: PartialAnswer,
    pub(super) estimate: TokenEstimate,
    pub(super) prefixes: Prefixes,
    /// Whether files of the conversation may have been refused, so that requests leave them out.
    has_refused_files: bool,
}

/// A turn that is not committed.
struct OpenTurn {
    id: TurnId,
    /// The event that it answers, if that is known.
    event: Option<EventId>,
}

impl JournaledConversation {
    pub(crate) fn new(
        id: &InstanceId,
        base: Vec<Arc<Message>>,
        interrupted: Option<Interrupted>,
        journal: Box<dyn Journal>,
    ) -> Result<Self> {
        let (mut conversation, duplicates) = Conversation::from_base(base);
        if !duplicates.is_empty() {
            tracing::warn!(instance = %id, ?duplicates, "messages with ids that earlier ones have are left out");
        }
        let (mut open_turn, mut started) = (None, IdSet::default());
        if let Some(interrupted) = interrupted {
            tracing::info!(instance = %id, turn = %interrupted.turn, "recovering an interrupted turn");
            for event in interrupted.events {
                conversation.apply(event)?;
            }
            open_turn = Some(OpenTurn { id: interrupted.turn, event: interrupted.event.map(|event| event.id) });
            started.extend(interrupted.started);
        }
        let partial = PartialAnswer::default();
        Ok(Self {
            has_refused_files: LeftOut::known(&conversation).is_some(),
            conversation,
            journal,
            open_turn,
            started,
            orphans: Vec::new(),
            partial,
            estimate: TokenEstimate::default(),
            prefixes: Prefixes::default(),
        })
    }

    pub(crate) fn begin(&mut self, start: TurnStart<'_>) -> Result<()> {
        self.journal.begin(start)?;
        self.open_turn = Some(OpenTurn { id: start.turn.clone(), event: start.event.map(|event| event.id.clone()) });
        Ok(())
    }

    /// Applies an event of the runtime to the conversation, and records it in the journal.
    pub(super) fn emit(&mut self, event: MessageEvent) -> Result<()> {
        self.emit_by(event, None)
    }

    /// Applies an event of an extension to the conversation, and records it in the journal.
    pub(super) fn emit_by(&mut self, mut event: MessageEvent, by: Option<&ExtensionName>) -> Result<()> {
        self.set_turn(&mut event);
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
        let Some(event) = self.conversation.events().last() else { return Ok(()) };
        if event.appended().is_none() {
            self.estimate.forget();
            self.prefixes.changed(event, by);
        }
        self.journal.record(event)
    }

    /// Takes in a request to a model, and computes what it keeps of the one before.
    pub(super) fn sent<'e>(
        &mut self,
        asked: &Asked<'_>,
        edits: impl Iterator<Item = (&'e MessageEvent, &'e ExtensionName)>,
    ) {
        self.prefixes.sent(asked, (&self.conversation, &self.orphans), edits);
    }

    /// Returns what a request leaves out because a provider has refused it, if there is something.
    #[inline]
    pub(super) fn left_out(&mut self) -> Option<Box<LeftOut>> {
        if self.has_refused_files { LeftOut::known(&self.conversation) } else { None }
    }

    /// Keeps what has come of a request that left files out.
    #[cold]
    pub(super) fn keep_left_out(&mut self, left_out: &LeftOut, was_accepted: bool) -> Result<()> {
        self.has_refused_files = !was_accepted;
        let mut events = left_out.events(&self.conversation, was_accepted).into_iter();
        events.try_for_each(|event| self.emit(event))
    }

    /// Sets the turn that made the message of an event: the open one, or if the message is a changed one that keeps its
    /// id, the turn of that.
    fn set_turn(&self, event: &mut MessageEvent) {
        let (message, changed) = match event {
            MessageEvent::Append { message } => (message, None),
            MessageEvent::Replace { target_id, message } => {
                let changed = if message.id() == target_id { self.conversation.find(target_id) } else { None };
                (message, changed)
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
    }

    /// Returns the conversation, for tool calls to read, and the journal, in which they record their starts.
    pub(super) fn for_calls(&mut self) -> (&Conversation, CallJournal<'_>) {
        (&self.conversation, CallJournal { journal: &mut *self.journal, started: &mut self.started })
    }

    pub(super) async fn flush(&mut self, durability: Durability) -> Result<()> {
        self.journal.flush(durability).await
    }

    /// Logs the tool calls and results that are kept from the model, each once (PAIR-01).
    pub(super) fn report_orphans(&mut self, turn: &TurnId) {
        let orphans = self.conversation.orphan_ids();
        if *orphans == self.orphans {
            return;
        }
        let known: IdSet<_> = self.orphans.iter().collect();
        let new: Vec<_> = orphans.iter().filter(|id| !known.contains(id)).collect();
        if !new.is_empty() {
            tracing::warn!(
                %turn, orphans = new.len(), calls = ?new,
                "tool calls without result, or results without call, are kept from the model"
            );
        }
        self.orphans = orphans.into_owned();
    }

    pub(crate) fn keeps_runtime_events(&self) -> bool {
        self.journal.keeps_runtime_events()
    }

    /// Records runtime events. A failure is logged and does not fail the turn.
    pub(crate) fn note(&mut self, events: &[RuntimeEvent]) {
        if !events.is_empty()
            && let Err(error) = self.journal.note(events)
        {
            tracing::warn!("runtime events were not kept: {}", error.report());
        }
    }

    /// Closes the turn that was interrupted by a crash or by a dropped caller, if any. It is not resumed: its caller no
    /// longer exists, so the answer of further model calls would be lost.
    pub(crate) async fn close_turn(&mut self, states: &States) -> Result<()> {
        let Some(open) = &self.open_turn else { return Ok(()) };
        let outcome = TurnOutcome::interrupted(open.event.clone());
        self.end_turn(&outcome, states).await
    }

    /// Ends the open turn, if any: keeps what the model had said of an answer, answers the unanswered calls, commits
    /// the turn with the changed state, and folds it. For each unanswered call, the model reads whether it may be
    /// repeated.
    pub(crate) async fn end_turn(&mut self, outcome: &TurnOutcome, states: &States) -> Result<()> {
        let Some(turn) = self.open_turn.as_ref().map(|open| open.id.clone()) else { return Ok(()) };
        if let Some(message) = self.partial.take(&turn) {
            self.emit(MessageEvent::append(message))?;
        }
        for call in self.conversation.unanswered_calls() {
            let error = self.interruption(&call);
            let result = ToolCallResult::from_parts(call.tool_call_id, call.tool_name, Err(ToolError::from(error)));
            self.emit(MessageEvent::append(tool_message(&result)))?;
        }
        self.commit(&turn, Some(outcome), states).await
    }

    /// Returns the error that the model reads as the result of an unanswered call.
    fn interruption(&self, call: &ToolCallPart) -> Error {
        let tool = &call.tool_name;
        if self.started.contains(&call.tool_call_id) {
            let message = format!("the turn ended while `{tool}` ran: whether it did its work is unknown");
            return Error::new(ErrorCode::TOOL_OUTCOME_UNKNOWN, message)
                .suggest("check what it did before calling it again; it is not run again by itself");
        }
        // A call that was not recorded as started did not start, or its effect allows to run it twice.
        Error::new(ErrorCode::TOOL_INTERRUPTED, format!("the turn ended before `{tool}` was answered"))
            .suggest("call it again if its answer is still wanted: that does no harm")
    }

    /// Stores changed state: with the turn that a cancelled caller left open, or with an empty turn.
    pub(crate) async fn store_state(&mut self, states: &States) -> Result<()> {
        if !states.have_changed() {
            return Ok(());
        }
        if self.open_turn.is_some() {
            return self.close_turn(states).await;
        }
        let turn = TurnId::random();
        self.begin(TurnStart::new(&turn))?;
        self.commit(&turn, None, states).await
    }

    async fn commit(&mut self, turn: &TurnId, outcome: Option<&TurnOutcome>, states: &States) -> Result<()> {
        let state = states.take_changed();
        let commit = Commit { turn, conversation: &self.conversation, state: &state, outcome };
        if let Err(error) = self.journal.commit(commit).await {
            states.put_back(&state);
            return Err(error);
        }
        self.conversation.fold();
        self.open_turn = None;
        self.started.clear();
        Ok(())
    }
}

/// The journal while tool calls run.
pub(super) struct CallJournal<'a> {
    journal: &'a mut dyn Journal,
    started: &'a mut IdSet<ToolCallId>,
}

impl CallJournal<'_> {
    /// Records the start of a call that must not run twice, and syncs it to the disk (EFFECT-01).
    pub(super) async fn start_call(&mut self, call: &ToolCallId) -> Result<()> {
        self.journal.start_call(call)?;
        self.started.insert(call.clone());
        self.sync().await
    }

    /// Syncs what is recorded to the disk.
    pub(super) async fn sync(&mut self) -> Result<()> {
        self.journal.flush(Durability::Synced).await
    }
}

/// Returns the message with the result of one tool call (D-12).
pub(super) fn tool_message(result: &ToolCallResult) -> Message {
    let (tool_call_id, tool_name) = (result.call_id().clone(), result.tool_name().to_owned());
    let mut part = ToolResultPart::new(tool_call_id.clone(), tool_name.clone(), result.to_tool_output());
    part.is_error = result.has_failed_reply();
    Message::new(Role::Tool, Part::from(part), Source::Tool { tool_call_id, tool_name })
}
