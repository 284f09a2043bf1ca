//! Edits of what the model is sent in one step.

use super::StepContext;
use crate::conversation::MessageEvent;

impl StepContext<'_> {
    /// Changes what the model is sent in this step, and nothing else. Call it before `next`.
    ///
    /// An edit is no message event of the conversation: [`conversation`](Self::conversation) does not show it, it is
    /// not stored, and the next step, also one that is run again, starts without it. So a turn that is cancelled or
    /// killed leaves nothing of it. What the model is sent is the conversation when `next` has reached it, with the
    /// edits of all layers in the order of the calls: an appended message comes last, and an edit may change or remove
    /// what one before it has added. A tool call whose result was removed is not sent, nor a result without its call.
    ///
    /// ```
    /// use goondan::prelude::*;
    ///
    /// # struct Search;
    /// # #[goondan::extension(name = "search")]
    /// # impl Search {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Tells the model the time, which no later step reads.
    /// #[middleware(step)]
    /// async fn now(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
    ///     let now = goondan::conversation::Timestamp::now();
    ///     ctx.project(MessageEvent::append(Message::system(format!("It is {now}."))));
    ///     next.run(ctx).await
    /// }
    /// # }
    /// ```
    ///
    /// An edit that cannot be applied fails the step before the model is called, as for [`emit`](Self::emit). One whose
    /// target is not there changes nothing and logs a warning, and so does a call after `next`.
    // PROJ-01
    pub fn project(&mut self, event: MessageEvent) {
        if let Err(error) = event.check_depth() {
            return self.host.refuse(self.frame.blame(event.refuse(error)));
        }
        if let Some(extension) = self.frame.extension() {
            self.host.project(event, extension);
        }
    }
}
