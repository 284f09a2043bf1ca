//! The extension of `docs/writing-extensions.md` that judges answers.

use goondan::middleware::{AnswerVerdict, ModelAnswer};
use goondan::prelude::*;

pub struct Calm;

#[goondan::extension(name = "calm")]
impl Calm {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Lets the model promise nothing, and shout nothing.
    #[middleware(step)]
    async fn calm(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        ctx.transform_pieces(|piece: &str| piece.contains('!').then(|| piece.replace('!', ".")));
        ctx.review_answer(|answer: &ModelAnswer| match answer.text().contains("guarantee") {
            true => AnswerVerdict::ask_again("Answer without a guarantee."),
            false => AnswerVerdict::Keep,
        });
        next.run(ctx).await
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::model::ScriptItem;
    use goondan::testing::Chat;

    use super::Calm;

    #[tokio::test]
    async fn nothing_is_promised() -> goondan::Result<()> {
        let script = [ScriptItem::say("I guarantee it!"), ScriptItem::say("It works!")];
        let chat = Chat::with::<Calm>(json!({})).script(script).start().await?;
        assert_eq!(chat.say("Does it work?").await?.text(), "It works.");
        let transcript = chat.last_request().transcript();
        assert_eq!(transcript, ["user: Does it work?", "user: Answer without a guarantee."]);
        assert_eq!(chat.instance().messages().await?.len(), 2);
        Ok(())
    }
}
