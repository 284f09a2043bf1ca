//! Old tool results.

/// Shows the model what the newest five tool calls returned, and of older ones only that they did.
#[goondan::extension(name = "fade")]
pub mod fade {
    use goondan::conversation::{Part, ToolOutput};
    use goondan::prelude::*;

    #[middleware(step)]
    async fn fade(ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let results = ctx.conversation().iter().rev().filter(|message| message.role() == Role::Tool);
        let old: Vec<_> = results.skip(5).map(|message| message.to_message()).collect();
        for message in old {
            let mut parts = message.content().parts().to_vec();
            for part in &mut parts {
                if let Part::ToolResult(result) = part {
                    result.output = ToolOutput::Text("(left out: call the tool again if you need it)".to_owned());
                }
            }
            ctx.project(MessageEvent::replace(message.id().clone(), message.with_content(parts)));
        }
        next.run(ctx).await
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::model::ScriptItem;
    use goondan::testing::Chat;

    use super::fade;

    #[tokio::test]
    async fn the_model_reads_the_newest_results_and_the_conversation_keeps_all() -> goondan::Result<()> {
        let calls = (0..7).map(|_| ScriptItem::call("no__tool", json!({})));
        let script = calls.chain([ScriptItem::say("done")]);
        let chat = Chat::with::<fade::Extension>(json!({})).script(script).start().await?;
        chat.say("go").await?;
        let left_out = |lines: &[String]| lines.iter().filter(|line| line.contains("left out")).count();
        let sent = chat.last_request().transcript();
        assert_eq!((left_out(&sent), sent.len()), (2, 1 + 2 * 7), "{sent:?}");
        assert_eq!(left_out(&chat.transcript().await), 0);
        Ok(())
    }
}
