//! The inbox of an instance: answers of other agents, kept until the next step.
// F-AGENTS

use std::sync::Arc;

use goondan_core::{Error, ErrorCode, EventId, Message, Result};
use goondan_lock::Lock;

use super::left::Left;

/// The capacity: how many answers may be outstanding or kept at once.
const LIMIT: usize = 256;

/// Answers of other agents, in the order of their arrival.
#[derive(Default)]
pub(crate) struct Inbox(Lock<Answers>);

#[derive(Default)]
struct Answers {
    received: Vec<Message>,
    /// The number of [`Reservation`]s that are not filled yet.
    outstanding: usize,
    /// The requests of the open turn, which asks them again when it goes on after an interruption.
    asked: Vec<EventId>,
    /// Those that it waited for when it was interrupted.
    // D-40
    left: Vec<Left>,
    /// Whether the open turn may have asked for conversations for one request alone.
    has_ephemeral: bool,
}

/// Capacity of an inbox for one answer that is outstanding. Returned by [`Inbox::reserve`]; dropping it frees the
/// capacity.
pub(crate) struct Reservation(Option<Arc<Inbox>>);

impl Inbox {
    /// Forgets the requests of the turn before.
    pub(crate) fn turn_begins(&self) {
        self.0.lock().asked.clear();
    }

    /// Takes in that the open turn asks for a conversation for one request alone, or may have asked in another process.
    pub(crate) fn may_have_ephemeral(&self) {
        self.0.lock().has_ephemeral = true;
    }

    /// Returns whether the open turn may have asked for such conversations.
    pub(crate) fn has_ephemeral(&self) -> bool {
        self.0.lock().has_ephemeral
    }

    /// Returns the same for the last time: the turn is over.
    pub(crate) fn take_ephemeral(&self) -> bool {
        std::mem::take(&mut self.0.lock().has_ephemeral)
    }

    /// Keeps a request of the open turn, which was interrupted.
    pub(super) fn leave(&self, left: Left) {
        self.0.lock().left.push(left);
    }

    /// Returns the requests that the open turn waited for when it was interrupted in this process.
    pub(crate) fn take_left(&self) -> Vec<Left> {
        std::mem::take(&mut self.0.lock().left)
    }

    /// Takes in that a turn goes on which has these answers already.
    pub(crate) fn turn_goes_on(&self, answered: impl Iterator<Item = EventId>) {
        self.0.lock().asked.extend(answered);
    }

    /// Reserves capacity for the answer to `request`, so that it is not lost when it arrives. Returns `None` if the
    /// open turn has asked it before: that answer is enough.
    ///
    /// # Errors
    /// `E_EXT_RUNTIME` when the inbox is full.
    pub(crate) fn reserve(self: &Arc<Self>, request: &EventId) -> Result<Option<Reservation>> {
        let mut answers = self.0.lock();
        if answers.asked.contains(request) {
            return Ok(None);
        }
        if answers.received.len() + answers.outstanding >= LIMIT {
            let message = format!("{LIMIT} answers of other agents are waited for already");
            return Err(Error::new(ErrorCode::EXT_RUNTIME, message).suggest("wait for some of them first"));
        }
        answers.outstanding += 1;
        answers.asked.push(request.clone());
        Ok(Some(Reservation(Some(Arc::clone(self)))))
    }

    /// Returns whether answers are outstanding, or have arrived and were not taken.
    pub(crate) fn is_waiting(&self) -> bool {
        let answers = self.0.lock();
        answers.outstanding > 0 || !answers.received.is_empty()
    }

    /// Removes and returns the answers that have arrived.
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.0.lock().received)
    }
}

impl Reservation {
    /// Adds the answer to the inbox.
    pub(crate) fn fill(mut self, answer: Message) {
        self.release(Some(answer));
    }

    fn release(&mut self, answer: Option<Message>) {
        if let Some(inbox) = self.0.take() {
            let mut answers = inbox.0.lock();
            answers.outstanding -= 1;
            answers.received.extend(answer);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release(None);
    }
}
