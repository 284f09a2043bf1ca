//! The edits that middlewares make to what the model is sent in one step. They end with the step.
// PROJ-01, D-27

use goondan_core::host::{ConversationExt, Projection, RunHost};
use goondan_core::{Applied, ErrorCode, ExtensionName, MessageEvent, MiddlewareKind, Result};

use super::prepared::at_layer;
use super::step::StepRun;
use super::{made_by_no_model, warn_too_late};

/// An edit, and the extension that made it.
pub(super) struct Edit {
    event: MessageEvent,
    by: ExtensionName,
}

impl StepRun<'_, '_> {
    /// Keeps an edit of the extension `by`, if its content may be sent.
    #[cold]
    pub(super) fn edit(&mut self, event: MessageEvent, by: &ExtensionName) {
        if self.answer_from.is_some() {
            return warn_too_late("project", by);
        }
        if !self.turn.journaled.conversation.may_emit(&event) {
            return self.turn.refuse(at_layer(made_by_no_model(), by, MiddlewareKind::Step));
        }
        self.edits.push(Edit { event, by: by.clone() });
    }

    /// Returns what the edits make of the conversation, if there are any.
    ///
    /// # Errors
    /// `E_MESSAGE_DUPLICATE_ID` when an edit adds a message with the id of another one.
    #[inline]
    pub(super) fn projection(&self) -> Result<Option<Box<Projection>>> {
        if self.edits.is_empty() { Ok(None) } else { self.projected().map(Some) }
    }

    #[cold]
    fn projected(&self) -> Result<Box<Projection>> {
        let mut projection = Box::<Projection>::default();
        for Edit { event, by } in &self.edits {
            let applied = projection.apply(&self.turn.journaled.conversation, event);
            let applied = applied.map_err(|error| at_layer(error, by, MiddlewareKind::Step))?;
            // `token_estimate` builds it too: the warning is for the request alone.
            if applied == Applied::TargetNotFound && self.answer_from.is_some() {
                tracing::warn!(
                    code = %ErrorCode::MESSAGE_TARGET_NOT_FOUND,
                    extension = %by,
                    "an edit of the model's input aims at a message that is not there"
                );
            }
        }
        Ok(projection)
    }
}
