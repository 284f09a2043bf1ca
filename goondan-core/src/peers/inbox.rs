//! Owns the inbox of an instance: answers of other agents that wait for the next step (F-AGENTS).

use std::sync::{Arc, Mutex, PoisonError};

use crate::conversation::Message;
use crate::error::{Error, ErrorCode, Result};

/// How many answers may be waited for, or wait, at once.
const LIMIT: usize = 256;

/// Answers of other agents, in the order in which they came.
#[derive(Default)]
pub(crate) struct Inbox(Mutex<Slots>);

#[derive(Default)]
struct Slots {
    came: Vec<Message>,
    outstanding: usize,
}

/// A place in an inbox for an answer that is on its way.
pub(crate) struct Place(Option<Arc<Inbox>>);

impl Inbox {
    /// Keeps a place for an answer, so that none is lost when it comes.
    pub(crate) fn reserve(self: &Arc<Self>) -> Result<Place> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.came.len() + slots.outstanding >= LIMIT {
            let message = format!("{LIMIT} answers of other agents are waited for already");
            return Err(Error::new(ErrorCode::EXT_RUNTIME, message).suggest("wait for some of them first"));
        }
        slots.outstanding += 1;
        Ok(Place(Some(Arc::clone(self))))
    }

    /// Whether answers are there that nobody took, or are on their way.
    pub(crate) fn is_waiting(&self) -> bool {
        let slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slots.outstanding > 0 || !slots.came.is_empty()
    }

    /// The answers that came since the last time.
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).came)
    }
}

impl Place {
    pub(crate) fn fill(mut self, answer: Message) {
        self.free(Some(answer));
    }

    fn free(&mut self, answer: Option<Message>) {
        if let Some(inbox) = self.0.take() {
            let mut slots = inbox.0.lock().unwrap_or_else(PoisonError::into_inner);
            slots.outstanding -= 1;
            slots.came.extend(answer);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.free(None);
    }
}
