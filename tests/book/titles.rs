//! An extension of `docs/writing-extensions.md` that asks a model.

use goondan::agent::AgentRequest;
use goondan::prelude::*;

pub struct Titles {
    api: ExtensionApi,
}

#[goondan::extension(name = "titles")]
impl Titles {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api }
    }

    /// Logs what the conversation is about.
    #[middleware(turn)]
    async fn title(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let result = next.run(ctx).await?;
        let texts: Vec<_> = ctx.conversation().iter().map(|message| message.text().into_owned()).collect();
        let request = AgentRequest::model(None).system("Answer with a title.").input(texts.join("\n"));
        match ctx.agents().request(request).await {
            Ok(answer) => self.api.logger().info(answer.response),
            Err(error) => self.api.logger().warn(format!("no title: {error}")),
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::model::ScriptItem;
    use goondan::testing::Chat;

    use super::Titles;

    #[tokio::test]
    async fn the_model_is_asked_for_a_title() -> goondan::Result<()> {
        let script = [ScriptItem::say("it is blue"), ScriptItem::say("A colour").when("it is blue")?];
        let chat = Chat::with::<Titles>(json!({})).script(script).start().await?;
        assert_eq!(chat.say("which colour?").await?.text(), "it is blue");
        assert!(chat.logs().iter().any(|line| line.text == "A colour"));
        assert_eq!(chat.transcript().await, ["user: which colour?", "assistant: it is blue"]);
        Ok(())
    }
}
