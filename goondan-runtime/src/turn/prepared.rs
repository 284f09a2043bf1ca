//! Answers that middlewares have prepared, which are taken instead of asking a model or running a handler.
// PREP-01, D-26

use goondan_core::host::{ConversationExt, ModelCall, RunHost};
use goondan_core::{Content, Error, ErrorCode, ExtensionName, MiddlewareKind, Part, Result, RuntimeEvent, StepRef};

use super::step::{StepRun, give_unique_ids};
use super::stream::TurnUpdate;
use super::{made_by_no_model, warn_too_late};
use crate::ports::model::whole;

/// An answer, and the extension that has prepared it.
pub(super) struct Prepared<T> {
    pub(super) answer: T,
    pub(super) by: ExtensionName,
}

/// Names the layer of an error.
pub(super) fn at_layer(error: Error, by: &ExtensionName, kind: MiddlewareKind) -> Error {
    error.at(by, format!("{kind} middleware"))
}

/// Returns the error for a prepared answer that cannot be used.
#[cold]
pub(super) fn unusable(problem: &str, by: &ExtensionName) -> Error {
    let error = Error::new(ErrorCode::EXT_ANSWER, format!("the prepared answer cannot be used: {problem}"))
        .suggest("prepare text, a file, or tool calls whose arguments are objects");
    at_layer(error, by, MiddlewareKind::Step)
}

impl StepRun<'_, '_> {
    /// Keeps the answer that the extension `by` has prepared, if it may be in the conversation.
    #[cold]
    pub(super) fn prepare(&mut self, content: Content, by: &ExtensionName) {
        if self.answer_from.is_some() {
            return warn_too_late("answer_with", by);
        }
        if !self.turn.journaled.conversation.may_hold(&content) {
            return self.turn.refuse(at_layer(made_by_no_model(), by, MiddlewareKind::Step));
        }
        self.prepared = Some(Box::new(Prepared { answer: content.into_parts(), by: by.clone() }));
    }

    /// Returns the content of the prepared answer.
    #[cold]
    pub(super) fn take_prepared(&mut self, prepared: Prepared<Vec<Part>>) -> Result<Vec<Part>> {
        let Prepared { answer: mut content, by } = prepared;
        for part in &content {
            match part {
                Part::ToolResult(_) => return Err(unusable("it has the result of a tool call", &by)),
                Part::File(file) => {
                    file.check_size().map_err(|error| at_layer(error, &by, MiddlewareKind::Step))?;
                }
                _ => {}
            }
        }
        give_unique_ids(&mut content, &self.turn.journaled.conversation);
        let (reporter, index) = (&self.turn.reporter, self.index);
        reporter.report("step.started", self.span, |scope| RuntimeEvent::StepStarted {
            scope,
            step: StepRef::new(&self.turn.info.turn, index),
            llm_input_messages: None,
        });
        if reporter.streams() && !self.held {
            whole(&content).for_each(|delta| reporter.update(|| TurnUpdate::of_delta(index, delta)));
        }
        self.model_call = ModelCall { prepared_by: Some(by), ..ModelCall::default() };
        Ok(content)
    }
}
