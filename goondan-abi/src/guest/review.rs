//! Reviewers of answers, which the host calls within a step.
// REVIEW-01

use goondan_core::host::Reviewer;
use goondan_core::linkage::WireVerdict;
use goondan_core::{ModelAnswer, Result, Review};

use super::call::CallRef;
use super::object::Callable;
use crate::table::Buffer;

/// A reviewer of answers.
pub(super) struct GuestReviewer(pub(super) Reviewer);

impl Callable for GuestReviewer {
    type Input = ModelAnswer;

    fn read(input: &[u8]) -> Result<ModelAnswer> {
        Ok(serde_json::from_slice(input)?)
    }

    async fn call(&self, call: CallRef, answer: ModelAnswer) -> Result<Buffer> {
        let verdict = match self.0.review_now(&answer) {
            Some(verdict) => verdict?,
            None => self.0.review(Review::new(&answer, &call, None)).await?,
        };
        Buffer::json(&WireVerdict::from(verdict))
    }
}
