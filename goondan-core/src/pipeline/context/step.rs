//! The context of step middlewares.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::host::StepHost;
use super::{message_members, shared_members};
use crate::conversation::{ConversationView, MessageEvent, Source};
use crate::event::{AgentEvent, TurnInfo};
use crate::name::{AgentName, ExtensionName, InstanceKey, ModelName, TraceId, TurnId};
use crate::peers::AgentsApi;
use crate::pipeline::{AnswerReviewer, Frame, PieceTransformer, Reviewer, Transformer};

/// The context of a step middleware: one model call and the tool calls that it asks for.
///
/// A function under `#[middleware(step)]` takes it as `&mut StepContext<'_>`. Before `next`, the middleware can change
/// the conversation and the tools that the model sees, and choose the model and its options.
///
/// ```
/// use goondan::prelude::*;
///
/// # struct ReadOnly;
/// # #[goondan::extension(name = "read-only")]
/// # impl ReadOnly {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// /// Offers the model only tools that read, after the first step.
/// #[middleware(step)]
/// async fn restrict(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
///     if ctx.step_index() > 0 {
///         ctx.tool_catalog_mut().retain(|tool| tool.effect == goondan::tool::Effect::Read);
///     }
///     next.run(ctx).await
/// }
/// # }
/// ```
// CTX-02
pub struct StepContext<'a> {
    pub(crate) host: &'a mut dyn StepHost,
    pub(crate) frame: Frame<'a>,
}

impl StepContext<'_> {
    shared_members!();
    message_members!();

    /// Returns the turn that this step belongs to.
    // CTX-14
    pub fn turn(&self) -> &TurnInfo {
        self.host.scope()
    }

    /// Chooses another model of the agent for this step. If the agent has no model of that name, the step fails with
    /// `E_MODEL_NOT_FOUND`.
    // API-11
    pub fn set_model(&mut self, name: impl Into<ModelName>) {
        *self.host.model_name_mut() = Some(name.into());
    }

    /// Sets a reviewer of the answer of this step. Call it before `next`.
    ///
    /// The core calls the reviewer with the whole answer of the model before it is stored, and before a tool call of it
    /// runs. The [verdict](crate::AnswerVerdict) is to keep it, to replace it, to refuse it, or to ask the model again.
    ///
    /// ```
    /// use goondan::middleware::{AnswerVerdict, ModelAnswer};
    /// use goondan::prelude::*;
    ///
    /// # struct Promises;
    /// # #[goondan::extension(name = "promises", guard)]
    /// # impl Promises {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Lets the model promise nothing.
    /// #[middleware(step)]
    /// async fn promise_nothing(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
    ///     ctx.review_answer(|answer: &ModelAnswer| match answer.text().contains("guarantee") {
    ///         true => AnswerVerdict::ask_again("Answer without a guarantee."),
    ///         false => AnswerVerdict::Keep,
    ///     });
    ///     next.run(ctx).await
    /// }
    /// # }
    /// ```
    ///
    /// Text and tool calls are held until the verdict, so that the stream of the turn has nothing of an answer that is
    /// not kept; reasoning is not. If several layers review, the innermost one is first, and the next one gets the
    /// text that it has made of the answer. Prepared answers are reviewed too. A turn that goes on reviews a recorded
    /// answer no second time.
    ///
    /// A reviewer that fails, panics, or hangs is as the layer: the step fails, or, with `onError: skip`, the answer is
    /// kept, after the time limit of layers if it hangs. A step that is run again starts without reviewers. After
    /// `next`, the call logs a warning and changes nothing.
    ///
    /// A replacement that no model could give fails the step: with `E_EXT_ANSWER` if it is empty, has the result of a
    /// tool call, or a tool call whose arguments are no object; with `E_MESSAGE_PART` if it has reasoning or data of a
    /// provider that is neither in the answer nor in the conversation.
    // REVIEW-01
    pub fn review_answer(&mut self, reviewer: impl AnswerReviewer) {
        self.review(Reviewer::new(reviewer, false));
    }

    /// Sets a reviewer of the answer of this step, as [`review_answer`](Self::review_answer) does, without holding the
    /// stream: pieces of the answer are told before the verdict. If the answer is not kept, the stream has
    /// `TurnUpdate::Restart` with the reason, and then its replacement.
    // REVIEW-01
    pub fn review_after_streaming(&mut self, reviewer: impl AnswerReviewer) {
        self.review(Reviewer::new(reviewer, true));
    }

    /// Sets a transformer of the text of this step's answer, which changes it piece by piece before it is told or
    /// stored. Call it before `next`.
    ///
    /// ```
    /// use goondan::prelude::*;
    ///
    /// # struct Plain;
    /// # #[goondan::extension(name = "plain")]
    /// # impl Plain {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Writes no exclamation marks.
    /// #[middleware(step)]
    /// async fn calm(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
    ///     ctx.transform_pieces(|piece: &str| piece.contains('!').then(|| piece.replace('!', ".")));
    ///     next.run(ctx).await
    /// }
    /// # }
    /// ```
    ///
    /// The text that is stored is the one that was streamed. If several layers transform, the innermost one is first,
    /// and the next one gets its output; reviewers get the whole. Text and reasoning pass the same transformers,
    /// part by part; tool calls, files and blocks of the provider pass none. A text or reasoning that changes loses its
    /// data of the provider, such as a signature. Prepared answers are transformed too; a recorded answer is not
    /// transformed again.
    ///
    /// A transformer that fails, or panics, fails the step, and nothing further is told. A step that is run again
    /// starts without any. After `next`, the call logs a warning and changes nothing.
    // REVIEW-01
    pub fn transform_pieces(&mut self, transformer: impl PieceTransformer) {
        self.transform(Transformer::new(transformer));
    }

    /// Sets a transformer, for a linkage.
    #[doc(hidden)]
    pub fn transform(&mut self, transformer: Transformer) {
        // Only layers have the context.
        if let Some(layer) = self.frame.running() {
            self.host.transform(transformer, layer);
        }
    }

    /// Sets a reviewer, for a linkage.
    #[doc(hidden)]
    pub fn review(&mut self, reviewer: Reviewer) {
        // Only layers have the context.
        if let Some(layer) = self.frame.running() {
            self.host.review(reviewer, layer);
        }
    }

    /// Returns the input event that started the turn.
    pub fn input(&self) -> &AgentEvent {
        &self.host.scope().input
    }
}
