//! The messages that a step appends when its model has answered.

use std::sync::Arc;

use goondan_core::host::{PartExt, Repair, StepResultExt, VALUE, answer_content};
use goondan_core::{ExtensionName, Message, Part, Result, Role, Source, StepRef, StepResult};
use serde_json::Value;

use super::answer::correction;
use super::left_out::UNUSABLE_FILES;
use super::prepared::{PREPARED_BY, unusable};
use super::reviewers::REPLACED_BY;
use super::step::StepRun;
use crate::ports::store::Reached;

impl StepRun<'_, '_> {
    /// Asks the model to repair an answer. Nothing of it is kept.
    #[cold]
    pub(super) fn repair(&mut self, content: Vec<Part>, problem: &str) -> Result<StepResult> {
        content.into_iter().for_each(Part::discard);
        if let Some(by) = &self.model_call.prepared_by {
            return Err(unusable(problem, by));
        }
        tracing::warn!(turn = %self.turn.info.turn, step = self.index, problem, "malformed answer of the model");
        self.turn.journaled.reached(Reached::answer(self.model_call.finish_reason, Some(problem)))?;
        self.turn.append(Message::new(Role::User, correction(problem), Source::System));
        Ok(StepResult::repair(Repair::malformed(problem), &self.model_call))
    }

    /// Appends the message of an answer, with the marks of how it came about.
    #[inline]
    pub(super) fn append_answer(
        &mut self,
        content: Vec<Part>,
        unusable_files: Vec<Value>,
        replaced_by: Option<&ExtensionName>,
        is_value: bool,
    ) -> Arc<Message> {
        let step_id = StepRef::new(&self.turn.info.turn, self.index).step_id;
        let mut message = Message::new(Role::Assistant, answer_content(content), Source::Assistant { step_id });
        if let Some(by) = &self.model_call.prepared_by {
            message = message.with_metadata(PREPARED_BY, by.as_str());
        }
        if let Some(by) = replaced_by {
            message = message.with_metadata(REPLACED_BY, by.as_str());
        }
        if is_value {
            message = message.with_metadata(VALUE, true);
        }
        if !unusable_files.is_empty() {
            message = message.with_metadata(UNUSABLE_FILES, unusable_files);
        }
        self.turn.append(message)
    }
}
