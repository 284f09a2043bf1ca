//! Redaction.

/// Hides words that look like mail addresses from the model.
#[goondan::extension(name = "redact", guard)]
pub mod redact {
    use goondan::json::Value;
    use goondan::prelude::*;

    fn redacted(text: &str) -> String {
        let words = text.split(' ').map(|word| if word.contains('@') { "[address]" } else { word });
        words.collect::<Vec<_>>().join(" ")
    }

    #[middleware(turn, priority = -100)]
    async fn input(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let newest = ctx.conversation().iter().next_back().map(|message| message.to_message());
        if let Some(message) = newest {
            let (id, text) = (message.id().clone(), redacted(&message.text()));
            ctx.emit(MessageEvent::replace(id, message.with_content(text)));
        }
        next.run(ctx).await
    }

    #[middleware(toolCall, priority = -100)]
    async fn output(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let mut result = next.run(ctx).await?;
        if let Some(Value::String(text)) = result.output() {
            let text = redacted(text);
            result.set_output(text);
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::model::ScriptItem;
    use goondan::testing::Chat;

    use super::redact;

    /// Has something to hide.
    #[goondan::extension(name = "people")]
    mod people {
        use goondan::prelude::*;

        /// Finds a person.
        #[tool(effect = read)]
        async fn find() -> Result<&'static str> {
            Ok("write to ada@example.org or call")
        }
    }

    #[tokio::test]
    async fn the_model_reads_no_addresses() -> goondan::Result<()> {
        let script = [ScriptItem::call("people__find", json!({})), ScriptItem::say("done")];
        let chat = Chat::with::<redact::Extension>(json!({})).with::<people::Extension>(json!({}));
        let chat = chat.script(script).start().await?;
        chat.say("I am bob@example.org and look for Ada").await?;
        let transcript = chat.last_request().transcript();
        assert_eq!(transcript[0], "user: I am [address] and look for Ada");
        assert_eq!(transcript[2], "tool: write to [address] or call");
        Ok(())
    }
}
