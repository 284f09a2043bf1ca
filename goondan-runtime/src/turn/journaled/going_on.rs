//! The relation of an event to a conversation, and turns that go on.
// ONCE-01, RESUME-01

use std::sync::Arc;

use goondan_core::host::ConversationExt;
use goondan_core::{AgentEvent, Error, ErrorCode, EventId, Message, MessageEvent, Result, TurnId, TurnInfo};

use super::rewinding::is_rewind;
use super::{JournaledConversation, LeftOut, OpenTurn};
use crate::peers::answered_request;
use crate::policy::Policy;
use crate::ports::store::{Durability, EndedTurn, EventDigest, JoinedEvent, Reached, TurnOutcome};

/// The event that a turn answers.
pub(super) enum Input {
    /// As the turn has it that began in this process.
    Given(Arc<TurnInfo>),
    /// As the store has recorded it.
    Recorded(Box<AgentEvent>),
}

impl Input {
    pub(super) fn event(&self) -> &AgentEvent {
        match self {
            Self::Given(info) => &info.input,
            Self::Recorded(event) => event,
        }
    }
}

/// The relation of an event to a conversation.
// ONCE-01
pub(crate) enum Standing {
    /// It starts a turn.
    New(EventDigest),
    /// It started the turn that is open.
    Open(TurnId),
    /// It joined the turn that is open, which this event started. `None` if that is not known.
    // STEER-01
    Joined(TurnId, Option<Box<AgentEvent>>),
    /// A turn has answered it.
    Ended(EndedTurn),
}

impl JournaledConversation {
    /// Returns the relation of `event` to this conversation, whose turns that have ended are committed.
    ///
    /// # Errors
    /// `E_EVENT_REUSED` when an earlier event has its id and another input; the errors of the store.
    // ONCE-01
    pub(crate) async fn standing(&mut self, event: &AgentEvent) -> Result<Standing> {
        let digest = EventDigest::of(event);
        let is_same = |known: Option<EventDigest>| match known {
            Some(known) if known != digest => Err(reused(&event.id)),
            _ => Ok(()),
        };
        if let Some(open) = self.open_turn.as_ref().filter(|open| open.event.as_ref() == Some(&event.id)) {
            // Secrets are masked in a recorded one.
            let is_recorded = matches!(&open.input, Some(Input::Recorded(recorded)) if **recorded == *event);
            let digest = open.digest.filter(|_| !is_recorded);
            return is_same(digest).map(|()| Standing::Open(open.id.clone()));
        }
        if let Some(joined) = self.facts.joined().find(|joined| joined.event == event.id)
            && let Some(open) = &self.open_turn
        {
            let started = self.open_input().cloned().map(Box::new);
            return is_same(Some(joined.digest)).map(|()| Standing::Joined(open.id.clone(), started));
        }
        match self.journal.outcome(&event.id).await? {
            Some(ended) => is_same(ended.digest).map(|()| Standing::Ended(ended)),
            None => Ok(Standing::New(digest)),
        }
    }

    /// Appends the input of an event to the turn that runs, as a fact. Does nothing if a turn has answered the event,
    /// if the turn that runs does, or if it has no input. Returns the message.
    // STEER-01
    pub(in crate::turn) async fn join(&mut self, event: &AgentEvent) -> Result<Option<Arc<Message>>> {
        let answers_it =
            self.open_event() == Some(&event.id) || self.facts.joined().any(|known| known.event == event.id);
        let Some(content) = event.to_content().filter(|_| !answers_it) else { return Ok(None) };
        if self.journal.outcome(&event.id).await?.is_some() {
            return Ok(None);
        }
        self.record_reached(Reached::Joined(JoinedEvent::new(event.id.clone(), EventDigest::of(event))))?;
        let message = Arc::new(Message::user(content));
        self.emit(MessageEvent::Append { message: Arc::clone(&message) })?;
        Ok(Some(message))
    }

    /// Commits a turn that has ended and could not be committed then, if there is one. If its caller was dropped while
    /// it was committed, the store knows whether it was.
    pub(crate) async fn commit_ended(&mut self) -> Result<()> {
        let Some(OpenTurn { id, event, ended: Some(outcome), .. }) = &self.open_turn else { return Ok(()) };
        if let Some(event) = event
            && self.journal.outcome(event).await?.is_some_and(|ended| ended.turn == *id)
        {
            self.is_committed();
            return Ok(());
        }
        self.end_turn(&outcome.clone()).await
    }

    /// Returns the open turn, if there is one.
    pub(crate) fn open_turn(&self) -> Option<&TurnId> {
        self.open_turn.as_ref().map(|open| &open.id)
    }

    /// Returns the id of the event that the open turn answers, if there is one.
    pub(crate) fn open_event(&self) -> Option<&EventId> {
        self.open_turn.as_ref()?.event.as_ref()
    }

    /// Returns that event, as far as it is known.
    pub(crate) fn open_input(&self) -> Option<&AgentEvent> {
        let open = self.open_turn.as_ref().filter(|open| open.ended.is_none())?;
        open.input.as_ref().map(Input::event).filter(|event| !is_rewind(event))
    }

    /// Returns its digest as it was when the turn began.
    pub(crate) fn open_digest(&self) -> Option<EventDigest> {
        self.open_turn.as_ref().filter(|open| open.ended.is_none())?.digest
    }

    /// Returns the requests to other agents whose answers the open turn has.
    pub(crate) fn answered_requests(&self) -> impl Iterator<Item = EventId> {
        let messages = self.conversation.events().iter().filter_map(MessageEvent::appended);
        messages.filter_map(|message| answered_request(message))
    }

    /// Returns for the how many-th time the open turn is about to go on. If it went on too often without coming any
    /// further, it is ended.
    ///
    /// # Errors
    /// `E_TURN_RESUMED_TOO_OFTEN` then; the errors of the store.
    // RESUME-01
    pub(crate) async fn check_resumption(&mut self, policy: &Policy) -> Result<u32> {
        if self.facts.in_vain < policy.max_resumptions {
            return Ok(self.facts.resumptions + 1);
        }
        let message =
            format!("the turn was gone on with {} times, and came no further than the first time", self.facts.in_vain);
        let error = Error::new(ErrorCode::TURN_RESUMED_TOO_OFTEN, message)
            .suggest("look in the log for what ends it, and send the input again, as a new event");
        if let Some(event) = self.open_event().cloned() {
            self.end_turn(&TurnOutcome::failed(event, &error)).await?;
        }
        Err(error)
    }

    /// Goes on with the open turn: takes back all that was said and set after its newest fact.
    // RESUME-01
    pub(crate) async fn go_on(&mut self) -> Result<()> {
        self.is_back();
        // While the store is away, that the turn goes on is not counted.
        self.flush(Durability::Flushed).await?;
        let keep = self.facts.newest;
        self.conversation.keep_events(keep)?;
        self.states.restore();
        self.partial.clear();
        self.suspending = None;
        self.suspended_state.clear();
        self.estimate.forget();
        self.has_refused_files = LeftOut::known(&self.conversation).is_some();
        self.facts.resumed(keep);
        let recorded = self.journal.resume(keep);
        self.notice(recorded)?;
        self.record_outside()?;
        // A turn that ends its process each time is counted by then.
        self.flush(Durability::Flushed).await
    }
}

/// Returns the error for an event with the id of an earlier one.
#[cold]
fn reused(event: &EventId) -> Error {
    let message = format!("the event `{event}` was sent before, with another input");
    Error::new(ErrorCode::EVENT_REUSED, message)
        .suggest("give each input an id of its own, and send the same input again when a request is repeated")
}
