//! The verdict on a model's answer, before it is stored or acted upon.
// REVIEW-01, D-37

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::ModelCall;
use crate::BoxFuture;
use crate::conversation::{Content, Part, ToolCallPart};
use crate::error::{Error, Result};
use crate::event::TokenUsage;
use crate::name::ExtensionName;
use crate::outcome::ModelFinish;
use crate::peers::{AgentsApi, AgentsHost};

/// The answer of a model before it is stored, for an [`AnswerReviewer`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelAnswer {
    content: Content,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finish_reason: Option<ModelFinish>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prepared_by: Option<ExtensionName>,
}

impl ModelAnswer {
    /// The answer with this content, of a call whose other facts are known.
    #[doc(hidden)]
    pub fn new(content: Content, call: &ModelCall) -> Self {
        let ModelCall { usage, model, finish_reason, prepared_by } = call;
        Self {
            content,
            usage: *usage,
            finish_reason: *finish_reason,
            model: model.clone(),
            prepared_by: prepared_by.clone(),
        }
    }

    /// Replaces the content, and returns the old one.
    #[doc(hidden)]
    pub fn replace(&mut self, content: Content) -> Content {
        std::mem::replace(&mut self.content, content)
    }

    /// Returns the content by value.
    #[doc(hidden)]
    pub fn into_content(self) -> Content {
        self.content
    }

    /// Returns the content: text, reasoning, files, tool calls, and blocks of the provider.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Returns the text, without reasoning and tool calls. A guard needs [`Content::texts`], which leaves nothing out.
    pub fn text(&self) -> Cow<'_, str> {
        self.content.text()
    }

    /// Returns the tool calls. None has run.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCallPart> {
        self.content.parts().iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(&**call),
            _ => None,
        })
    }

    /// Returns the tokens that the model call used, if the model reports them.
    pub fn usage(&self) -> Option<TokenUsage> {
        self.usage
    }

    /// Returns why the model stopped, if it reports that.
    pub fn finish_reason(&self) -> Option<ModelFinish> {
        self.finish_reason
    }

    /// Returns the model that answered, if its provider reports it.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the extension that has prepared the answer, if the model was not asked.
    pub fn prepared_by(&self) -> Option<&ExtensionName> {
        self.prepared_by.as_ref()
    }
}

/// The verdict of a reviewer about an answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnswerVerdict {
    /// It is used as it is.
    Keep,
    /// This is used instead: text, files, tool calls, and parts of the answer. Reviewers further out get it, and the
    /// metadata `replacedBy` of the message names the extension.
    Replace(Content),
    /// The step fails with this error. No tool call of the answer runs, and nothing of it is stored.
    Refuse(Error),
    /// The model is asked again in another step. Nothing of the answer is stored.
    #[non_exhaustive]
    AskAgain {
        /// The fault, for the model: it does not see its answer again.
        words: String,
        /// The most repetitions in a row before the turn fails with `E_MODEL_UNUSABLE`; 2 unless it is given.
        at_most: Option<u32>,
    },
}

impl AnswerVerdict {
    /// Uses this instead of the answer.
    pub fn replace(content: impl Into<Content>) -> Self {
        Self::Replace(content.into())
    }

    /// Fails the step with this error.
    pub fn refuse(error: impl Into<Error>) -> Self {
        Self::Refuse(error.into())
    }

    /// Asks the model again, with words about the fault. It does so twice in a row at most.
    pub fn ask_again(words: impl Into<String>) -> Self {
        Self::AskAgain { words: words.into(), at_most: None }
    }

    /// Asks the model again, as [`AnswerVerdict::ask_again`] does, `n` times in a row at most.
    pub fn ask_again_at_most(n: u32, words: impl Into<String>) -> Self {
        Self::AskAgain { words: words.into(), at_most: Some(n) }
    }
}

/// The input of a reviewer: the answer, and access to other agents and to models.
#[derive(Clone, Copy)]
pub struct Review<'a> {
    answer: &'a ModelAnswer,
    agents: AgentsApi<'a>,
}

impl<'a> Review<'a> {
    /// The review of `answer` by the extension `by`.
    #[doc(hidden)]
    pub fn new(answer: &'a ModelAnswer, agents: &'a dyn AgentsHost, by: Option<&'a ExtensionName>) -> Self {
        Self { answer, agents: AgentsApi::new(agents, by) }
    }

    /// Returns the answer.
    pub fn answer(&self) -> &'a ModelAnswer {
        self.answer
    }

    /// Returns the access to other agents and to models, such as one that judges the answer.
    pub fn agents(&self) -> AgentsApi<'a> {
        self.agents
    }
}

impl fmt::Debug for Review<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Review").field(self.answer).finish()
    }
}

/// Judges answers of the model before they are stored or acted upon. A step layer sets it with
/// [`StepContext::review_answer`](crate::StepContext::review_answer).
///
/// A closure that takes a [`ModelAnswer`] and returns an [`AnswerVerdict`], or a `Result` of one, is a reviewer. So is
/// a type with this trait, whose function may wait, for example for another model:
///
/// ```
/// use goondan::agent::AgentRequest;
/// use goondan::middleware::{AnswerReviewer, AnswerVerdict, Review};
/// use goondan::prelude::*;
///
/// struct Judge;
///
/// impl AnswerReviewer for Judge {
///     async fn review(&self, review: Review<'_>) -> Result<AnswerVerdict> {
///         let question = format!("Is this answer polite? Say yes or no.\n\n{}", review.answer().text());
///         let judged = review.agents().request(AgentRequest::model(None).input(question)).await?;
///         Ok(match judged.response.trim() {
///             "yes" => AnswerVerdict::Keep,
///             _ => AnswerVerdict::ask_again("Be polite."),
///         })
///     }
/// }
/// ```
pub trait AnswerReviewer: Send + Sync + 'static {
    /// Judges an answer.
    ///
    /// # Errors
    /// As those of the layer that has set the reviewer: the step fails, unless failures of the extension are skipped.
    fn review(&self, review: Review<'_>) -> impl Future<Output = Result<AnswerVerdict>> + Send;

    /// Judges an answer, if it need not wait for anything.
    #[doc(hidden)]
    fn review_now(&self, _answer: &ModelAnswer) -> Option<Result<AnswerVerdict>> {
        None
    }
}

/// A verdict, or the failure to find one.
pub trait IntoVerdict: sealed::Sealed {
    /// Returns it as a `Result`.
    ///
    /// # Errors
    /// The failure.
    fn into_verdict(self) -> Result<AnswerVerdict>;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::AnswerVerdict {}
    impl Sealed for crate::error::Result<super::AnswerVerdict> {}
}

impl IntoVerdict for AnswerVerdict {
    fn into_verdict(self) -> Result<AnswerVerdict> {
        Ok(self)
    }
}

impl IntoVerdict for Result<AnswerVerdict> {
    fn into_verdict(self) -> Self {
        self
    }
}

impl<F, V> AnswerReviewer for F
where
    F: Fn(&ModelAnswer) -> V + Send + Sync + 'static,
    V: IntoVerdict,
{
    async fn review(&self, review: Review<'_>) -> Result<AnswerVerdict> {
        self(review.answer()).into_verdict()
    }

    fn review_now(&self, answer: &ModelAnswer) -> Option<Result<AnswerVerdict>> {
        Some(self(answer).into_verdict())
    }
}

/// A reviewer as a step keeps it.
pub struct Reviewer {
    reviewer: Box<dyn DynReviewer>,
    /// Whether pieces of the answer are told before the verdict.
    pub after_streaming: bool,
}

impl Reviewer {
    /// Keeps a reviewer.
    pub fn new(reviewer: impl AnswerReviewer, after_streaming: bool) -> Self {
        Self { reviewer: Box::new(reviewer), after_streaming }
    }

    /// Judges an answer, if the reviewer need not wait for anything. It may panic.
    ///
    /// # Errors
    /// The failure of the reviewer.
    pub fn review_now(&self, answer: &ModelAnswer) -> Option<Result<AnswerVerdict>> {
        self.reviewer.review_now(answer)
    }

    /// Judges an answer.
    pub fn review<'a>(&'a self, review: Review<'a>) -> BoxFuture<'a, Result<AnswerVerdict>> {
        self.reviewer.review(review)
    }
}

impl fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviewer").field("after_streaming", &self.after_streaming).finish_non_exhaustive()
    }
}

trait DynReviewer: Send + Sync {
    fn review_now(&self, answer: &ModelAnswer) -> Option<Result<AnswerVerdict>>;
    fn review<'a>(&'a self, review: Review<'a>) -> BoxFuture<'a, Result<AnswerVerdict>>;
}

impl<R: AnswerReviewer> DynReviewer for R {
    fn review_now(&self, answer: &ModelAnswer) -> Option<Result<AnswerVerdict>> {
        AnswerReviewer::review_now(self, answer)
    }

    fn review<'a>(&'a self, review: Review<'a>) -> BoxFuture<'a, Result<AnswerVerdict>> {
        Box::pin(AnswerReviewer::review(self, review))
    }
}
