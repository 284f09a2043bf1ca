//! A budget of tokens.

use goondan::event::TokenUsage;
use goondan::prelude::*;

/// Refuses steps once a conversation has used up its tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenBudget {
    max_tokens: u64,
}

#[goondan::extension(name = "token-budget")]
impl TokenBudget {
    #[init]
    fn new(config: TokenBudget) -> Self {
        config
    }

    #[middleware(step)]
    async fn check(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>, api: &ExtensionApi) -> Result<StepResult> {
        let used: u64 = api.state().get()?.unwrap_or_default();
        if used >= self.max_tokens {
            return Err(Error::new("TOKEN_BUDGET", format!("{used} of {} tokens are used", self.max_tokens)));
        }
        let result = next.run(ctx).await?;
        let tokens = result.usage().map_or(0, |usage| usage.total_tokens);
        api.state().update(|used: &mut u64| *used += tokens)?;
        Ok(result)
    }

    /// Counts the agents that the turn has asked.
    #[middleware(turn)]
    async fn others(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>, api: &ExtensionApi) -> Result<TurnResult> {
        let result = next.run(ctx).await?;
        let total = |usage: Option<TokenUsage>| usage.map_or(0, |usage| usage.total_tokens);
        let of_others = total(result.whole_usage()).saturating_sub(total(result.usage()));
        api.state().update(|used: &mut u64| *used += of_others)?;
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use goondan::event::TokenUsage;
    use goondan::json;
    use goondan::model::{ModelResponse, ScriptItem};
    use goondan::testing::Chat;

    use super::TokenBudget;

    #[tokio::test]
    async fn the_turn_after_the_last_token_is_refused() -> goondan::Result<()> {
        let answer = ModelResponse::text("ok").with_usage(TokenUsage::new(50, 10));
        let script = [ScriptItem::raw(answer).repeat()];
        let mut chat = Chat::with::<TokenBudget>(json!({ "maxTokens": 100 })).script(script).start().await?;
        chat.say("one").await?;
        chat.restart().await?;
        chat.say("two").await?;
        let error = chat.say("three").await.unwrap_err();
        assert_eq!((&*error.code().to_string(), &*error.message()), ("TOKEN_BUDGET", "120 of 100 tokens are used"));
        Ok(())
    }
}
