//! A limit per conversation.

use goondan::prelude::*;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    max_turns: u32,
}

/// Answers a number of inputs in each conversation, and refuses the others.
pub struct TurnLimit {
    max: u32,
}

#[goondan::extension(name = "turn-limit")]
impl TurnLimit {
    #[init]
    fn new(config: Config) -> Self {
        Self { max: config.max_turns }
    }

    #[middleware(turn, priority = -100)]
    async fn count(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>, api: &ExtensionApi) -> Result<TurnResult> {
        let turns = api.state().update(|turns: &mut u32| {
            // A turn that was interrupted and goes on has been counted.
            *turns += u32::from(!ctx.is_repeated());
            *turns
        })?;
        if turns > self.max {
            let problem = format!("this conversation has had its {} turns", self.max);
            return Err(Error::new("TURN_LIMIT", problem).suggest("begin another conversation"));
        }
        next.run(ctx).await
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::testing::Chat;

    use super::TurnLimit;

    #[tokio::test]
    async fn the_count_survives_a_restart() -> goondan::Result<()> {
        let mut chat = Chat::with::<TurnLimit>(json!({ "maxTurns": 2 })).start().await?;
        chat.say("one").await?;
        chat.restart().await?;
        chat.say("two").await?;
        assert_eq!(chat.say("three").await.unwrap_err().code(), "TURN_LIMIT");
        assert_eq!(chat.requests().len(), 2);
        assert_eq!(chat.transcript().await.last().unwrap(), "user: three");
        Ok(())
    }
}
