//! An output guard.

/// Withholds answers that hold a key.
#[goondan::extension(name = "output-guard", guard)]
pub mod withhold_keys {
    use goondan::middleware::{AnswerVerdict, ModelAnswer};
    use goondan::prelude::*;

    #[middleware(step, priority = -100)]
    async fn guard(ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        // What the model thinks too: a reviewer holds only what it says.
        ctx.hold_stream();
        // The texts of all parts: also the arguments of its calls.
        ctx.review_answer(|answer: &ModelAnswer| match answer.content().texts().any(|text| text.contains("sk-")) {
            true => AnswerVerdict::replace("I cannot tell you that."),
            false => AnswerVerdict::Keep,
        });
        next.run(ctx).await
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use goondan::agent::TurnUpdate;
    use goondan::json;
    use goondan::model::ScriptItem;
    use goondan::testing::Chat;

    use super::withhold_keys;

    #[tokio::test]
    async fn nobody_reads_the_key() -> goondan::Result<()> {
        for (said, answer) in [("it is sk-1234567", "I cannot tell you that."), ("there is none", "there is none")] {
            let pieces = NonZeroU32::new(4).unwrap();
            let script = [ScriptItem::say(said).pieces(pieces)];
            let chat = Chat::with::<withhold_keys::Extension>(json!({})).script(script).start().await?;
            let mut turn = chat.instance().run_stream("What is the key?");
            let mut read = Vec::new();
            while let Some(update) = turn.next().await {
                if let TurnUpdate::Text { text, .. } = update {
                    read.push(text);
                }
            }
            assert_eq!(read, [answer]);
            assert_eq!(turn.finish().await?.text(), answer);
            assert_eq!(chat.instance().messages().await?[1].text(), answer);
        }
        Ok(())
    }
}
