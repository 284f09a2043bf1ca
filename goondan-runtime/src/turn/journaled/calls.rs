//! The journal while tool calls run.

use goondan_core::host::{IdSet, WireError};
use goondan_core::{Conversation, Error, Result, ToolCallId};

use super::{JournaledConversation, note_unavailable};
use crate::ports::store::{Durability, Facts, Journal};
use crate::state::States;
use crate::turn::asking::Asking;

impl JournaledConversation {
    /// Returns the conversation, for tool calls to read, and the journal, in which they record their starts.
    pub(in crate::turn) fn for_calls(&mut self) -> (&Conversation, CallJournal<'_>) {
        let Self { conversation, journal, started, facts, states, unavailable, .. } = self;
        let events = conversation.events().len();
        (conversation, CallJournal { journal: &mut **journal, started, facts, states, unavailable, events })
    }
}

/// The journal while tool calls run.
pub(in crate::turn) struct CallJournal<'a> {
    journal: &'a mut dyn Journal,
    started: &'a mut IdSet<ToolCallId>,
    facts: &'a mut Facts,
    states: &'a States,
    unavailable: &'a mut Option<Error>,
    /// The number of the message events of the turn.
    events: usize,
}

impl CallJournal<'_> {
    /// Records the start of a call that must not run twice, and syncs it to the disk (EFFECT-01).
    pub(in crate::turn) async fn start_call(&mut self, call: &ToolCallId) -> Result<()> {
        let recorded = self.record_start(call);
        recorded.inspect_err(|error| note_unavailable(self.unavailable, error))?;
        self.facts.started(self.events);
        self.sync().await?;
        // Only now: without the sync, the handler does not run.
        self.started.insert(call.clone());
        Ok(())
    }

    fn record_start(&mut self, call: &ToolCallId) -> Result<()> {
        if let Some(error) = &self.unavailable {
            return Err(WireError::copy(error));
        }
        let Some(taken) = self.states.take_unrecorded() else { return self.journal.start_call(call) };
        let recorded = self.journal.record_state(&taken.state).and_then(|()| self.journal.start_call(call));
        match recorded {
            Ok(()) => self.facts.state(taken.state),
            Err(_) => self.states.give_back(taken),
        }
        recorded
    }

    /// Returns the questions about a call that has waited.
    #[cold]
    pub(in crate::turn) fn asking(&self, call: &ToolCallId) -> Option<Box<Asking>> {
        let wait = self.facts.waits.iter().find(|wait| wait.call == *call)?;
        Some(Box::new(Asking::going_on(wait, &self.facts.decisions)))
    }

    /// Returns how many decisions the turn has.
    pub(in crate::turn) fn decisions(&self) -> usize {
        self.facts.decisions.len()
    }

    /// Syncs the records to the disk.
    pub(in crate::turn) async fn sync(&mut self) -> Result<()> {
        let synced = self.journal.flush(Durability::Synced).await;
        synced.inspect_err(|error| note_unavailable(self.unavailable, error))
    }
}
