//! A summary of what was said.

use goondan::agent::AgentRequest;
use goondan::prelude::*;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// How many messages may be before the newest input.
    max_messages: usize,
    /// The model that summarizes; the agent's own if there is none.
    model: Option<String>,
}

/// Replaces the messages before the newest input by a summary when they have become many.
pub struct Summary {
    config: Config,
}

#[goondan::extension(name = "summary")]
impl Summary {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    #[middleware(turn, priority = -50)]
    async fn shorten(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>, api: &ExtensionApi) -> Result<TurnResult> {
        // A turn that was interrupted and goes on has its summary.
        if !ctx.is_repeated() && ctx.conversation().len() > self.config.max_messages + 1 {
            let mut old: Vec<_> = ctx.conversation().iter().map(|message| message.to_message()).collect();
            old.pop();
            let texts: Vec<_> = old.iter().map(|message| format!("{:?}: {}", message.role(), message.text())).collect();
            let request = AgentRequest::model(self.config.model.as_deref())
                .system("Summarize the conversation. Keep names, numbers and decisions.")
                .input(texts.join("\n"));
            match ctx.agents().request(request).await {
                Ok(answer) => {
                    let summary = Message::user(format!("What was said before: {}", answer.response));
                    if let Some(last) = old.pop() {
                        ctx.emit(MessageEvent::replace(last.id().clone(), summary));
                    }
                    for message in old {
                        ctx.emit(MessageEvent::remove(message.id().clone()));
                    }
                }
                Err(error) => api.logger().warn(format!("nothing was summarized: {error}")),
            }
        }
        next.run(ctx).await
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::model::{ScriptItem, ScriptedModel};
    use goondan::testing::Chat;

    use super::Summary;

    #[tokio::test]
    async fn many_messages_become_one() -> goondan::Result<()> {
        let config = json!({ "maxMessages": 3, "model": "small" });
        let small = ScriptedModel::new([ScriptItem::say("they like tea").when("User: I like tea")?]);
        let chat = Chat::with::<Summary>(config).agent(|agent| agent.named_model("small", small)).start().await?;
        chat.say("I like tea").await?;
        chat.say("and rice").await?;
        chat.say("what do I like?").await?;
        let expected = ["user: What was said before: they like tea", "user: what do I like?"];
        assert_eq!(chat.last_request().transcript(), expected);
        Ok(())
    }

    #[tokio::test]
    async fn without_the_summary_nothing_is_lost() -> goondan::Result<()> {
        let chat = Chat::with::<Summary>(json!({ "maxMessages": 0, "model": "missing" })).start().await?;
        chat.say("one").await?;
        chat.say("two").await?;
        assert_eq!(chat.last_request().transcript(), ["user: one", "assistant: ok", "user: two"]);
        assert!(chat.logs().iter().any(|line| line.text.contains("nothing was summarized")));
        Ok(())
    }
}
