//! Prepared answers: what a middleware knows already, so that no model is asked and no handler runs.
// PREP-01, D-26

use super::{StepContext, ToolCallContext};
use crate::conversation::Content;
use crate::depth::MAX_DEPTH;
use crate::tool::ToolReply;

impl StepContext<'_> {
    /// Prepares the answer of this step: a text, or parts such as text, files and tool calls. Call it before `next`.
    ///
    /// `next` runs all inner layers as ever, and then the prepared answer is taken instead of asking the model. It is
    /// treated as an answer of the model: it becomes a message of the conversation, and its tool calls run, with the
    /// same guards and limits. [`StepResult::prepared_by`](crate::StepResult::prepared_by), the event `step.completed`
    /// and the metadata `preparedBy` of the message name the extension.
    ///
    /// ```
    /// use goondan::prelude::*;
    ///
    /// # struct Greeting;
    /// # #[goondan::extension(name = "greeting")]
    /// # impl Greeting {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Answers a greeting without the model.
    /// #[middleware(step)]
    /// async fn greet(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
    ///     if ctx.input().input.as_deref() == Some("hello") {
    ///         ctx.answer_with("Hello! What can I do for you?");
    ///     }
    ///     next.run(ctx).await
    /// }
    /// # }
    /// ```
    ///
    /// If several layers prepare an answer, the innermost one wins. A step that is run again starts without any. After
    /// `next`, the call logs a warning and changes nothing.
    ///
    /// An answer that cannot be used fails the step: with `E_EXT_ANSWER` if it is empty, has the result of a tool call,
    /// or a tool call whose arguments are no object; with `E_MESSAGE_PART` if reasoning or data of a provider does not
    /// equal a part that is in the conversation, as for [`emit`](Self::emit).
    // PREP-01
    pub fn answer_with(&mut self, answer: impl Into<Content>) {
        let content = answer.into();
        if let Err(error) = content.check_depth(MAX_DEPTH) {
            content.discard();
            return self.host.refuse(self.frame.blame(error.refuse("the prepared answer")));
        }
        if let Some(extension) = self.frame.extension() {
            self.host.answer_with(content, extension);
        }
    }
}

impl ToolCallContext<'_> {
    /// Prepares the reply of this call: a JSON value, or a [`ToolReply`]. Call it before `next`.
    ///
    /// `next` runs all inner layers as ever, and checks that the step offers the tool and that the arguments fit. Then
    /// the prepared reply is taken instead of running the handler, so the call never counts as started.
    /// [`ToolCallResult::prepared_by`](crate::ToolCallResult::prepared_by), the event `tool.completed` and the metadata
    /// `preparedBy` of the message name the extension. There is no event `tool.called`.
    ///
    /// ```
    /// use goondan::prelude::*;
    ///
    /// # struct DryRun;
    /// # #[goondan::extension(name = "dry-run")]
    /// # impl DryRun {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Lets no mail leave.
    /// #[middleware(toolCall)]
    /// async fn pretend(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
    ///     if ctx.tool_name() == "mail__send" {
    ///         ctx.answer_with("sent");
    ///     }
    ///     next.run(ctx).await
    /// }
    /// # }
    /// ```
    ///
    /// If several layers prepare a reply, the innermost one wins. A call that is run again starts without any. After
    /// `next`, the call logs a warning and changes nothing. A reply that no tool could give fails the call.
    // PREP-01
    pub fn answer_with(&mut self, reply: impl Into<ToolReply>) {
        match (reply.into().checked(), self.frame.extension()) {
            (Ok(reply), Some(extension)) => self.host.reply_with(reply, extension),
            (Err(error), _) => self.host.refuse(self.frame.blame(error)),
            (Ok(_), None) => {}
        }
    }
}
