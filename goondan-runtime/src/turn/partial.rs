//! The text of an answer that is still being generated, which is kept if the turn ends before the answer does.

use goondan_core::{Message, Role, Source, StepRef, TurnId};
use goondan_lock::Lock;

use crate::ports::model::ModelDelta;

/// The metadata key of a message that is no complete answer.
pub(super) const PARTIAL: &str = "partial";

/// The answer of the running model call so far. Behind a lock, because models send pieces through a shared reference.
#[derive(Default)]
pub(super) struct PartialAnswer(Lock<Said>);

#[derive(Default)]
struct Said {
    /// The index of the step.
    step: u32,
    /// The part to which the last piece belongs.
    part: u32,
    text: String,
}

impl PartialAnswer {
    /// Starts with the answer of another model call.
    pub(super) fn start(&mut self, step: u32) {
        *self.said() = Said { step, ..Said::default() };
    }

    /// Adds a piece. Only text is kept: reasoning without its signature is of no use, and half a call must not run.
    pub(super) fn add(&self, delta: ModelDelta<'_>) {
        let mut said = self.0.lock();
        match delta {
            ModelDelta::Text { part, text } => {
                if part != said.part && !said.text.is_empty() {
                    said.text.push('\n');
                }
                said.part = part;
                said.text.push_str(text);
            }
            ModelDelta::Restart { .. } => said.text.clear(),
            _ => {}
        }
    }

    /// Forgets the answer, because it is complete or was given up.
    pub(super) fn clear(&mut self) {
        self.said().text.clear();
    }

    /// Returns the text so far as a message of `turn`, if the answer was not completed.
    pub(super) fn take(&mut self, turn: &TurnId) -> Option<Message> {
        let Said { step, text, .. } = std::mem::take(self.said());
        if text.chars().all(char::is_whitespace) {
            return None;
        }
        let StepRef { step_id, .. } = StepRef::new(turn, step);
        Some(Message::new(Role::Assistant, text, Source::Assistant { step_id }).with_metadata(PARTIAL, true))
    }

    fn said(&mut self) -> &mut Said {
        self.0.get_mut()
    }
}
