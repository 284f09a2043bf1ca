//! Redaction.

/// Hides words that look like mail addresses.
#[goondan::extension(name = "hide-addresses", guard)]
pub mod hide_addresses {
    use std::borrow::Cow;

    use goondan::middleware::{AnswerVerdict, ModelAnswer};
    use goondan::prelude::*;

    fn hidden(text: &str) -> Cow<'_, str> {
        let words = text.split(' ').map(|word| if word.contains('@') { "[address]" } else { word });
        words.collect::<Vec<_>>().join(" ").into()
    }

    #[init]
    fn init(api: ExtensionApi) -> Result<()> {
        api.pipeline().mask_inputs(|text: &str| text.contains('@').then(|| hidden(text).into_owned()))
    }

    #[middleware(step, priority = 1000)]
    async fn answer(ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        ctx.review_answer(|answer: &ModelAnswer| match answer.content().texts().any(|text| text.contains('@')) {
            true => AnswerVerdict::replace(answer.content().clone().map_text(hidden)),
            false => AnswerVerdict::Keep,
        });
        next.run(ctx).await
    }

    #[middleware(toolCall, priority = 1000)]
    async fn output(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let mut result = next.run(ctx).await?;
        // An error too.
        result.map_text(hidden);
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

    use super::hide_addresses;

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

        /// Lists persons.
        #[tool(effect = read)]
        async fn list() -> Result<goondan::Value> {
            Ok(goondan::json!({ "people": [{ "mail": "ada@example.org" }] }))
        }
    }

    #[tokio::test]
    async fn the_model_reads_no_addresses() -> goondan::Result<()> {
        let script = [
            ScriptItem::call("people__find", json!({})),
            ScriptItem::call("people__lose", json!({})),
            ScriptItem::call("people__list", json!({})),
            ScriptItem::say("it is ada@example.org").reasoning("bob@example.org asks"),
        ];
        let chat = Chat::with::<hide_addresses::Extension>(json!({})).with::<people::Extension>(json!({}));
        let chat = chat.script(script).start().await?;
        let letter = FilePart::new("text/plain", "https://example.org/letter").named("to ada@example.org.txt");
        let input = TextPart::new("I am bob@example.org and look for Ada");
        let said = chat.say(AgentEvent::content([input.into(), letter.into()])).await?;
        assert_eq!(said.text(), "it is [address]");
        let transcript = chat.last_request().transcript();
        assert_eq!(transcript[0], "user: I am [address] and look for Ada [text/plain to [address]]");
        assert_eq!(transcript[2], "tool: write to [address] or call");
        assert!(transcript[4].starts_with("tool: error E_EXT_RUNTIME: [address] is unknown"), "{transcript:?}");
        assert!(transcript[6].contains("[address]"), "{transcript:?}");
        let stored = format!("{:?}", chat.instance().messages().await?);
        assert!(!stored.contains('@'), "{stored}");
        Ok(())
    }
}
