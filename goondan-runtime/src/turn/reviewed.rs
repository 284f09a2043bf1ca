//! The verdict on the answer of a step, before it is stored or acted upon.
// REVIEW-01, D-37

use goondan_core::host::panic::{catch, catch_panics};
use goondan_core::host::{ConversationExt, PartExt, Repair, Reviewer, StepResultExt};
use goondan_core::{
    AnswerVerdict, Content, Error, ExtensionName, LayerInfo, MiddlewareKind, ModelAnswer, OnError, Part, Result,
    Review, StepResult,
};

use super::answer::{Answer, classify};
use super::directed::{at_layer, at_part};
use super::model_call::correct_calls;
use super::prepared::unusable;
use super::reviewers::{Reviewed, is_held};
use super::step::StepRun;
use crate::ports::store::{AskedAgain, Reached};

impl StepRun<'_, '_> {
    /// Lets the reviewers judge the answer, innermost first.
    ///
    /// # Errors
    /// When one refuses the answer, or fails; `E_EXT_ANSWER` or `E_MESSAGE_PART` for a replacement that cannot be used.
    #[cold]
    pub(super) async fn review(&mut self, content: Vec<Part>) -> Result<Reviewed> {
        let reviewers = std::mem::take(&mut self.reviewers);
        let mut answer = ModelAnswer::new(content.into(), &self.model_call);
        let (mut original, mut replaced_by) = (None, None);
        for (reviewer, layer) in reviewers.innermost_first() {
            let by = &layer.extension;
            let verdict = match self.judge(reviewer, layer, &answer).await {
                Ok(verdict) => verdict,
                Err(error) if layer.on_error == OnError::Skip && error.retry_delay().is_none() => {
                    self.skip(layer, error);
                    continue;
                }
                Err(error) => return Err(self.retract(at_part(error, "reviewer", layer))),
            };
            match verdict {
                AnswerVerdict::Replace(content) => {
                    let content = self.replacement(content, [Some(answer.content()), original.as_ref()], by);
                    let before = answer.replace(content.map_err(|error| self.retract(error))?);
                    original.get_or_insert(before);
                    replaced_by = Some(by.clone());
                }
                AnswerVerdict::Refuse(error) => return Err(self.retract(at_part(error, "reviewer", layer))),
                AnswerVerdict::AskAgain { words, at_most, .. } => {
                    tracing::info!(
                        turn = %self.turn.info.turn, step = self.index, extension = %by,
                        "an answer of the model is not used, and it is asked again: {words}"
                    );
                    return Ok(Reviewed::Again(AskedAgain::new(by.clone(), words, at_most)));
                }
                _ => {}
            }
        }
        Ok(Reviewed::Used(answer.into_content().into_parts(), replaced_by))
    }

    /// Returns the verdict of one reviewer. A panic, and too much time where failures are skipped, become errors.
    async fn judge(&self, reviewer: &Reviewer, layer: &LayerInfo, answer: &ModelAnswer) -> Result<AnswerVerdict> {
        let by = &layer.extension;
        let now = catch(|| reviewer.review_now(answer));
        if let Some(verdict) = now.map_err(|text| Error::panicked(&text))? {
            return verdict;
        }
        let review = Review::new(answer, &self.requests, Some(by));
        let judged = catch_panics(by, async { reviewer.review(review).await });
        let judged = match layer.on_error {
            OnError::Skip => {
                let limit = self.generation.spec.policy.layer_timeout;
                let judged = tokio::time::timeout(limit, judged).await;
                judged.map_err(|_| {
                    Error::msg(format!("it took longer than {limit:?}"))
                        .suggest("look for what hangs, or raise the time limit of layers: `policy.layerTimeoutMs`")
                })?
            }
            _ => judged.await,
        };
        judged.unwrap_or_else(|text| Err(Error::panicked(&text)))
    }

    /// Goes on without a reviewer that has failed.
    fn skip(&self, layer: &LayerInfo, error: Error) {
        let error = at_part(error, "reviewer", layer);
        tracing::error!(
            extension = %layer.extension,
            code = %error.code(),
            "the failure of a reviewer is skipped: {}",
            error.report()
        );
        self.turn.reporter.report_skipped(self.span, layer, false, &error);
    }

    /// Returns the parts that an extension puts in place of an answer. Parts that only a model can make come from
    /// `known`.
    fn replacement(&self, content: Content, known: [Option<&Content>; 2], by: &ExtensionName) -> Result<Content> {
        let conversation = &self.turn.journaled.conversation;
        let is_known = |part: &Part| known.iter().flatten().any(|content| content.parts().contains(part));
        let new: Vec<_> = content.parts().iter().filter(|part| !is_known(part)).cloned().collect();
        let checked = conversation.check_brought(&new.into());
        checked.map_err(|error| at_layer(error, by, MiddlewareKind::Step))?;
        if content.parts().iter().any(|part| matches!(part, Part::ToolResult(_))) {
            return Err(unusable("it has the result of a tool call", by));
        }
        match classify(content.parts(), None, false) {
            Answer::Malformed(problem) => {
                content.into_parts().into_iter().for_each(PartExt::discard);
                return Err(unusable(&problem, by));
            }
            Answer::Refused(error) => return Err(at_layer(error, by, MiddlewareKind::Step)),
            Answer::Usable | Answer::Paused | Answer::NothingToAdd => {}
        }
        let mut content = content.into_parts();
        correct_calls(&mut content, conversation);
        Ok(content.into())
    }

    /// Tells the held part of the answer, or its replacement.
    #[cold]
    pub(super) fn tell_judged(&self, content: &[Part], replaced_by: Option<&ExtensionName>) {
        if self.holds {
            self.send_whole(content, |piece| is_held(piece) || !self.was_streamed);
        } else if let Some(by) = replaced_by {
            self.restart(&format!("the extension `{by}` has replaced the answer"));
            self.send_whole(content, |_| true);
        }
    }

    /// Returns the error, which tells why the pieces that were told are to be discarded.
    #[cold]
    pub(super) fn retract(&self, error: Error) -> Error {
        self.restart(&error.to_string());
        error
    }

    /// Ends the step, so that the model is asked again in the next one.
    #[cold]
    pub(super) fn ask_again(&mut self, asked: AskedAgain) -> Result<StepResult> {
        self.restart(&asked.words);
        self.turn.journaled.reached(Reached::AskedAgain(Box::new(asked.clone())))?;
        Ok(self.asked_again(asked))
    }

    /// Returns the result of a step that was recorded as one that asks the model again.
    pub(super) fn asked_again(&mut self, asked: AskedAgain) -> StepResult {
        let AskedAgain { words, at_most, attempt, .. } = asked.clone();
        let repair = Repair { problem: words, at_most, attempt };
        self.turn.corrections.push(asked);
        StepResult::repair(repair, &self.model_call)
    }
}
