//! Redaction.

/// Hides words that look like mail addresses from the model.
#[goondan::extension(name = "redact", guard)]
pub mod redact {
    use std::borrow::Cow;

    use goondan::prelude::*;

    fn redacted(text: &str) -> Cow<'_, str> {
        let words = text.split(' ').map(|word| if word.contains('@') { "[address]" } else { word });
        words.collect::<Vec<_>>().join(" ").into()
    }

    #[middleware(turn, priority = -100)]
    async fn input(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        // All parts: the texts, and the names of files.
        let redacted = ctx.conversation().iter().next_back().and_then(|message| message.map_text(redacted));
        if let Some(message) = redacted {
            ctx.emit(MessageEvent::replace(message.id().clone(), message));
        }
        next.run(ctx).await
    }

    #[middleware(toolCall, priority = -100)]
    async fn output(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let mut result = next.run(ctx).await?;
        // An error too.
        result.map_text(redacted);
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use goondan::conversation::{FilePart, TextPart};
    use goondan::event::AgentEvent;
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

        /// Has no answer.
        #[tool(effect = read)]
        async fn lose() -> Result<()> {
            Err(Error::msg("ada@example.org is unknown"))
        }
    }

    #[tokio::test]
    async fn the_model_reads_no_addresses() -> goondan::Result<()> {
        let script = [
            ScriptItem::call("people__find", json!({})),
            ScriptItem::call("people__lose", json!({})),
            ScriptItem::say("done"),
        ];
        let chat = Chat::with::<redact::Extension>(json!({})).with::<people::Extension>(json!({}));
        let chat = chat.script(script).start().await?;
        let letter = FilePart::new("text/plain", "https://example.org/letter").named("to ada@example.org.txt");
        let input = TextPart::new("I am bob@example.org and look for Ada");
        chat.say(AgentEvent::content([input.into(), letter.into()])).await?;
        let transcript = chat.last_request().transcript();
        assert_eq!(transcript[0], "user: I am [address] and look for Ada [text/plain to [address]]");
        assert_eq!(transcript[2], "tool: write to [address] or call");
        assert!(transcript[4].starts_with("tool: error E_EXT_RUNTIME: [address] is unknown"), "{transcript:?}");
        Ok(())
    }
}
