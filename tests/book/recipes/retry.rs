//! Retry, and another model.

use std::time::Duration;

use goondan::json::Value;
use goondan::prelude::*;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The name of the model that answers in the last attempt.
    backup: String,
}

/// Runs a step again when its model failed: once with the same model, and then with another one.
pub struct Retry {
    backup: String,
}

#[goondan::extension(name = "retry")]
impl Retry {
    #[init]
    fn new(config: Config) -> Self {
        Self { backup: config.backup }
    }

    #[middleware(step)]
    async fn retry(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let attempt = ctx.metadata().get("attempt").and_then(Value::as_u64).unwrap_or(0);
        if attempt == 2 {
            ctx.set_model(self.backup.as_str());
        }
        match next.catch(ctx).await {
            Err(failure) if failure.error().is_retryable() && attempt < 2 => {
                let delay = Duration::from_secs(1 << attempt);
                Err(Error::retry_after(delay, "the model failed").caused_by(failure.into_error()))
            }
            outcome => Ok(outcome?),
        }
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::model::{ScriptItem, ScriptedModel};
    use goondan::testing::{Chat, time};

    use super::Retry;

    fn chat(script: [ScriptItem; 2]) -> goondan::testing::ChatBuilder {
        let backup = ScriptedModel::new([ScriptItem::say("from the backup").repeat()]);
        let chat = Chat::with::<Retry>(json!({ "backup": "small" })).script(script);
        chat.agent(|agent| agent.named_model("small", backup))
    }

    #[tokio::test]
    async fn the_second_attempt_asks_the_same_model() -> goondan::Result<()> {
        time::pause();
        let chat = chat([ScriptItem::fail("busy", true), ScriptItem::say("from the model")]).start().await?;
        let turn = chat.say("hello").await?;
        assert_eq!((&*turn.text(), turn.steps()), ("from the model", 2));
        Ok(())
    }

    #[tokio::test]
    async fn the_third_attempt_asks_another_model_for_this_step_alone() -> goondan::Result<()> {
        time::pause();
        let chat = chat([ScriptItem::fail("busy", true).repeat(), ScriptItem::say("unused")]).start().await?;
        let turn = chat.say("hello").await?;
        assert_eq!((&*turn.text(), turn.steps()), ("from the backup", 3));
        assert_eq!(chat.requests().len(), 2, "of the model that fails");
        assert_eq!(chat.say("again").await?.steps(), 3, "begins with the agent's model");
        Ok(())
    }

    #[tokio::test]
    async fn what_does_not_pass_is_not_tried_again() -> goondan::Result<()> {
        let chat = chat([ScriptItem::fail("no such model", false), ScriptItem::say("unused")]).start().await?;
        assert!(chat.say("hello").await.unwrap_err().to_string().contains("no such model"));
        assert_eq!(chat.requests().len(), 1);
        Ok(())
    }
}
