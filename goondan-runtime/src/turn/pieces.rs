//! The way of the pieces of an answer from the model to the stream.

use std::sync::atomic::{AtomicBool, Ordering};

use goondan_core::{Error, Part, Result, Span};
use goondan_lock::Lock;

use super::first_piece::FirstPiece;
use super::partial::PartialAnswer;
use super::report::Reporter;
use super::reviewers::is_held;
use super::transformed::Transforming;
use crate::ports::model::ModelDelta;

/// Receives the pieces of one answer, while the model makes it.
pub(super) struct Pieces<'s> {
    pub(super) first: &'s FirstPiece,
    pub(super) partial: &'s PartialAnswer,
    pub(super) reporter: &'s Reporter<'s>,
    pub(super) step: u32,
    pub(super) span: Span,
    /// Whether a layer holds all pieces back.
    pub(super) held: bool,
    /// Whether text and calls are told only when the answer is judged.
    pub(super) judged: bool,
    pub(super) transforming: Option<Box<Lock<Transforming>>>,
    pub(super) sent: AtomicBool,
}

impl Pieces<'_> {
    /// Takes a piece of the model.
    pub(super) fn take(&self, piece: ModelDelta<'_>) {
        self.first.add(piece);
        match &self.transforming {
            None => self.tell(piece),
            Some(transforming) => transforming.lock().take(piece, &|piece| self.tell(piece)),
        }
        if let ModelDelta::Restart { reason, wait: Some(wait) } = piece {
            self.reporter.report_retry(self.step, self.span, reason, wait);
        }
    }

    fn tell(&self, piece: ModelDelta<'_>) {
        // A held answer is not kept as partial either: no layer has approved it yet.
        if self.held || self.judged && is_held(piece) {
            return;
        }
        // Nothing of a discarded answer was sent.
        self.sent.store(!matches!(piece, ModelDelta::Restart { .. }), Ordering::Relaxed);
        self.partial.add(piece);
        if let Some(watch) = self.reporter.streams() {
            watch.piece(self.step, self.span, piece);
        }
    }

    /// Returns the failure of a transformer.
    pub(super) fn failure(&self) -> Option<Error> {
        self.transforming.as_ref()?.lock().failure()
    }

    /// Ends the answer, whose content becomes the told text. Returns whether some of it was sent.
    #[inline]
    pub(super) fn finish(mut self, content: &mut [Part]) -> Result<bool> {
        if let Some(transforming) = self.transforming.take()
            && transforming.into_inner().finish(content, &|piece| self.tell(piece))?
            && self.sent.load(Ordering::Relaxed)
        {
            self.tell(ModelDelta::Restart { reason: "the answer has other text than its pieces", wait: None });
        }
        Ok(self.sent.into_inner())
    }
}
