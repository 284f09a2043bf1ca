//! Tools that ask live questions.

use std::time::Duration;

use goondan::agent::AgentRequest;
use goondan::decision::{Question, Unanswered};
use goondan::prelude::*;
use goondan::{Secret, Value};

use crate::Log;

/// Tools that wait for an answer within their calls, and log what they got.
pub struct ToolsAskLive {
    log: Log,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Config {
    log: Log,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct How {
    /// The kind of question.
    how: String,
}

fn side() -> Question {
    Question::choose("Heads or tails?", ["heads", "tails"])
}

#[goondan::extension(name = "tools-ask-live")]
impl ToolsAskLive {
    #[init]
    fn new(config: Config) -> Self {
        Self { log: config.log }
    }

    /// Asks, and may run again.
    #[tool(effect = read, asks, timeout = "2s", present = "asks, {how}")]
    async fn guess(&self, input: How, ctx: &ToolContext<'_>) -> Result<String> {
        self.ask(&input.how, ctx).await
    }

    /// Asks, and must not run twice.
    #[tool(asks, timeout = "2s")]
    async fn act(&self, input: How, ctx: &ToolContext<'_>) -> Result<String> {
        self.ask(&input.how, ctx).await
    }

    /// Asks, and its declaration does not say so.
    #[tool(effect = read)]
    async fn secretly(&self, _: How, ctx: &ToolContext<'_>) -> Result<String> {
        ctx.ask_live(side()).await
    }

    /// Lets another agent work.
    #[tool(effect = read, timeout = "3s")]
    async fn delegate(&self, input: How, ctx: &ToolContext<'_>) -> Result<String> {
        let request = AgentRequest::new("worker").input(input.how).timeout(Duration::from_secs(1));
        Ok(ctx.agents().request(request).await?.response)
    }

    async fn ask(&self, how: &str, ctx: &ToolContext<'_>) -> Result<String> {
        self.log.write("runs");
        let answer = match how {
            "secret" => {
                let code: Secret = ctx.ask_live(Question::for_secret("The code?")).await?;
                format!("{} characters", code.expose().len())
            }
            "without end" => loop {
                _ = ctx.ask_live::<Value>(side()).await?;
            },
            "expires" => ctx.ask_live(side().expires_after(Duration::from_secs(60))).await?,
            "or tails" => ctx.ask_live(side().unanswered(Unanswered::Value("tails".into()))).await?,
            "or not" => ctx.ask_live(side().unanswered(Unanswered::Reject)).await?,
            "badly" => ctx.ask_live(Question::new("?").expecting_schema(7.into())).await?,
            "much" => ctx.ask_live(Question::new("?".repeat(1 << 20))).await?,
            "a file" => ctx.ask_live(Question::for_address("?", "file:///etc/passwd")).await?,
            "as a number" => ctx.ask_live::<u32>(side()).await?.to_string(),
            "and works" => {
                let side: String = ctx.ask_live(side()).await?;
                tokio::time::sleep(Duration::from_secs(5)).await;
                side
            }
            _ => ctx.ask_live(side()).await?,
        };
        self.log.write(format!("got {answer}"));
        Ok(answer)
    }
}
