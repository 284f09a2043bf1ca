//! Extensions that steer turns.

use std::time::Duration;

use goondan::Value;
use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Logs every layer of every kind.
pub struct Tracing {
    log: Log,
}

#[goondan::extension(name = "tracing")]
impl Tracing {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let result = next.run(ctx).await;
        self.log.write("turn");
        result
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let index = ctx.step_index();
        let result = next.run(ctx).await;
        match &result {
            Ok(result) => self.log.write(format!(
                "step {index}: {:?}, tool calls: {}, {} of {} answered",
                result.status(),
                result.continues(),
                result.tool_results().len(),
                result.tool_calls().len(),
            )),
            Err(error) => self.log.write(format!("step {index}: {}", error.message())),
        }
        result
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        self.log.write(format!("call {} in step {}", ctx.tool_name(), ctx.step_index()));
        next.run(ctx).await
    }
}

/// Logs the two sides of each step, and the calls of its tool.
pub struct Surrounding {
    log: Log,
}

#[goondan::extension(name = "surrounding")]
impl Surrounding {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let index = ctx.step_index();
        self.log.write(format!("before step {index}"));
        let result = next.run(ctx).await;
        self.log.write(format!("after step {index}"));
        result
    }

    /// Acts.
    #[tool]
    async fn act(&self) -> Result<String> {
        self.log.write("the tool acts");
        Ok("done".to_owned())
    }
}

/// Ends or prolongs the turn from its step middleware.
pub struct Steering {
    prolong: bool,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct SteeringConfig {
    prolong: bool,
}

#[goondan::extension(name = "steering")]
impl Steering {
    #[init]
    fn new(config: SteeringConfig) -> Self {
        Self { prolong: config.prolong }
    }

    #[middleware(step)]
    async fn steer(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let first = ctx.step_index() == 0;
        let mut result = next.run(ctx).await?;
        result.set_continues(self.prolong && first);
        Ok(result)
    }
}

/// Requests another attempt as long as the error is retryable.
pub struct Retrying {
    log: Log,
}

#[goondan::extension(name = "retrying")]
impl Retrying {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(step)]
    async fn retry(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let attempt = ctx.metadata().get("attempt").cloned();
        let delay = Duration::from_secs(1 << attempt.as_ref().and_then(Value::as_u64).unwrap_or_default());
        self.log.write(format!("step {}, attempt {attempt:?}", ctx.step_index()));
        match next.catch(ctx).await {
            Err(failure) if failure.error().is_retryable() => {
                let message = failure.error().message().into_owned();
                Err(Error::retry_after(delay, message))
            }
            result => Ok(result?),
        }
    }
}
