//! Guards, and an extension that reaches other agents in every way.

use std::time::Duration;

use goondan::agent::AgentRequest;
use goondan::event::{AgentDelegate, AgentDelegationResult};
use goondan::name::AgentName;
use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Lets no call of `roaming__act` through.
pub struct Covering {
    log: Log,
}

#[goondan::extension(name = "covering", guard)]
impl Covering {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    // As far inside as possible.
    #[middleware(toolCall, priority = 1000)]
    async fn refuse(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if ctx.tool_name() == "roaming__act" {
            self.log.write(format!("refused in {}", ctx.agent_name()));
            return Err(Error::new("E_REFUSED", "not in this swarm"));
        }
        next.run(ctx).await
    }
}

/// Wants to be outside of everything.
pub struct Pushing;

#[goondan::extension(name = "pushing")]
impl Pushing {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall, priority = -1000)]
    async fn push(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        next.run(ctx).await
    }
}

/// Says that it is outside of the guard.
pub struct Contradicting;

#[goondan::extension(name = "contradicting")]
impl Contradicting {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall, before = "covering")]
    async fn contradict(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        next.run(ctx).await
    }
}

/// Reaches another agent as the input of the turn says, and has a tool that acts.
pub struct Roaming {
    api: ExtensionApi,
    config: Config,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Config {
    log: Log,
    #[serde(default)]
    target: Option<String>,
}

#[goondan::extension(name = "roaming", requires = ["agents"])]
impl Roaming {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Self {
        Self { api, config }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let Some(target) = &self.config.target else { return next.run(ctx).await };
        let how = ctx.input().input.clone().unwrap_or_default();
        let request = AgentRequest::new(target).input(how.as_str()).timeout(Duration::from_secs(5));
        let told = match how.as_str() {
            "request" => ctx.agents().request(request).await.map(|answer| answer.response),
            "later" => ctx.agents().request_later(request).map(|_| "asked".to_owned()),
            "send" => ctx.agents().send(request).await.map(|accepted| format!("accepted: {accepted}")),
            _ => {
                self.api.events().delegate(AgentDelegate::new(AgentName::new(target)?, how));
                Ok("delegated".to_owned())
            }
        };
        self.config.log.write(told.unwrap_or_else(|error| format!("{} {}", error.code(), error.message())));
        next.run(ctx).await
    }

    #[on("agent.delegationResult")]
    async fn result(&self, event: &Event) -> Result<()> {
        let result: AgentDelegationResult = event.payload()?;
        self.config.log.write(result.error_code.map_or("done".to_owned(), |code| code.to_string()));
        Ok(())
    }

    /// Acts.
    #[tool(effect = read)]
    async fn act(&self, ctx: &ToolContext<'_>) -> Result<String> {
        self.config.log.write(format!("acted in {}", ctx.agent_name()));
        Ok("acted".into())
    }
}
