//! The reviewers of a step, and their verdict on its answer.
// REVIEW-01

use std::sync::Arc;

use goondan_core::host::Reviewer;
use goondan_core::{ExtensionName, LayerInfo, Message, MessageEvent, Part, Role, Source};

use crate::awaited::AwaitedValue;
use crate::ports::model::ModelDelta;
use crate::ports::store::AskedAgain;

/// The metadata key of a message whose content an extension has put in place of the model's answer.
pub(super) const REPLACED_BY: &str = "replacedBy";

/// The reviewers of a step, outermost first.
#[derive(Default)]
pub(super) struct Reviewers(Vec<(Reviewer, LayerInfo)>);

impl Reviewers {
    pub(super) fn add(&mut self, reviewer: Reviewer, layer: &LayerInfo) {
        self.0.push((reviewer, layer.clone()));
    }

    /// Returns them, innermost first.
    pub(super) fn innermost_first(&self) -> impl Iterator<Item = &(Reviewer, LayerInfo)> {
        self.0.iter().rev()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether pieces of the answer are told only after the verdict.
    pub(super) fn hold(&self) -> bool {
        self.0.iter().any(|(reviewer, _)| !reviewer.after_streaming)
    }
}

/// Returns whether a piece is held until the verdict.
pub(super) fn is_held(piece: ModelDelta<'_>) -> bool {
    !matches!(piece, ModelDelta::Reasoning { .. } | ModelDelta::Restart { .. })
}

/// An answer after its review.
pub(super) enum Reviewed {
    /// It is used, as this, which the extension has put in its place if there is one.
    Used(Vec<Part>, Option<ExtensionName>),
    /// The model is asked again.
    Again(AskedAgain),
}

impl AskedAgain {
    /// Returns the messages that the model reads of it in the next step alone.
    pub(super) fn messages(&self, awaited: Option<&AwaitedValue>) -> impl Iterator<Item = MessageEvent> {
        let append =
            |role, text: &str| MessageEvent::Append { message: Arc::new(Message::new(role, text, Source::System)) };
        let attempt = self.attempt.as_deref().filter(|text| !text.trim().is_empty());
        let attempt = attempt.map(|text| append(Role::Assistant, text));
        let awaited = awaited.filter(|_| self.by.is_none());
        let words = awaited.map_or_else(|| self.words.to_string(), |awaited| awaited.words(&self.words));
        attempt.into_iter().chain([append(Role::User, &words)])
    }
}
