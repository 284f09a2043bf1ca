//! An output guard.

/// Withholds answers that hold a key.
#[goondan::extension(name = "output-guard", guard)]
pub mod withhold_keys {
    use goondan::prelude::*;

    #[middleware(step, priority = -100)]
    async fn guard(ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        ctx.hold_stream();
        let result = next.run(ctx).await?;
        let answer = ctx.conversation().iter().rev().find(|message| message.role() == Role::Assistant);
        // The texts of all parts: also what the model thought, and the arguments of its calls.
        let withheld = answer.filter(|answer| answer.texts().any(|text| text.contains("sk-")));
        if let Some(answer) = withheld.map(|answer| answer.to_message()) {
            let id = answer.id().clone();
            ctx.emit(MessageEvent::replace(id, answer.with_content("I cannot tell you that.")));
        }
        Ok(result)
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
