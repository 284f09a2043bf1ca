//! An answer without the model.

/// Answers what has one answer, and asks the model everything else.
#[goondan::extension(name = "canned")]
pub mod canned {
    use goondan::prelude::*;

    #[middleware(step)]
    async fn answer(ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if ctx.step_index() == 0 && ctx.input().input.as_deref() == Some("What can you do?") {
            ctx.answer_with("I answer questions about tea.");
        }
        next.run(ctx).await
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::testing::Chat;

    use super::canned;

    #[tokio::test]
    async fn the_model_is_asked_everything_else() -> goondan::Result<()> {
        let chat = Chat::with::<canned::Extension>(json!({})).start().await?;
        assert_eq!(chat.say("What can you do?").await?.text(), "I answer questions about tea.");
        assert_eq!(chat.requests().len(), 0);
        chat.say("And what is tea?").await?;
        let sent = chat.last_request().transcript();
        assert_eq!(
            sent,
            ["user: What can you do?", "assistant: I answer questions about tea.", "user: And what is tea?"]
        );
        Ok(())
    }
}
