//! Extensions with tools of every effect.

use std::path::PathBuf;

use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Tools of each effect that never end, and tools of each effect that fail.
pub struct Effects {
    log: Log,
}

impl Effects {
    async fn hang(&self, tool: &str) -> Result<()> {
        self.log.write(tool);
        std::future::pending().await
    }

    fn fail(&self, tool: &str) -> Result<()> {
        self.log.write(tool);
        Err(Error::msg("busy").retryable(true))
    }
}

#[goondan::extension(name = "effects")]
impl Effects {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    /// Looks, and never returns.
    #[tool(effect = read)]
    async fn look(&self) -> Result<()> {
        self.hang("look").await
    }

    /// Sets, and never returns.
    #[tool(effect = idempotent)]
    async fn set(&self) -> Result<()> {
        self.hang("set").await
    }

    /// Pays, and never returns.
    #[tool(timeout = "5s")]
    async fn pay(&self) -> Result<()> {
        self.hang("pay").await
    }

    /// Fails to look.
    #[tool(effect = read)]
    async fn look_busy(&self) -> Result<()> {
        self.fail("look_busy")
    }

    /// Fails to set.
    #[tool(effect = idempotent)]
    async fn set_busy(&self) -> Result<()> {
        self.fail("set_busy")
    }

    /// Fails to pay.
    #[tool(effect = once)]
    async fn pay_busy(&self) -> Result<()> {
        self.fail("pay_busy")
    }
}

/// Requests another attempt of every call that fails.
pub struct Insisting;

#[goondan::extension(name = "insisting")]
impl Insisting {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall)]
    async fn insist(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let result = next.run(ctx).await?;
        if result.error().is_some_and(|error| error.message == "busy") {
            return Err(Error::retry_after(std::time::Duration::ZERO, "busy"));
        }
        Ok(result)
    }
}

/// Reads the events file of its instance while a turn runs.
pub struct Prying {
    log: Log,
    events: PathBuf,
}

#[derive(Deserialize, JsonSchema)]
struct PryingConfig {
    log: Log,
    events: PathBuf,
}

impl Prying {
    fn pry(&self) -> Result<()> {
        let events = std::fs::read_to_string(&self.events)?;
        self.log.write(events.lines().last().unwrap_or_default().chars().take(16).collect::<String>());
        Ok(())
    }
}

#[goondan::extension(name = "prying")]
impl Prying {
    #[init]
    fn new(config: PryingConfig) -> Self {
        Self { log: config.log, events: config.events }
    }

    /// Acts once.
    #[tool]
    async fn once(&self) -> Result<()> {
        self.pry()
    }

    /// Acts any number of times.
    #[tool(effect = idempotent)]
    async fn often(&self) -> Result<()> {
        self.pry()
    }

    #[middleware(toolCall)]
    async fn around_call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        self.pry()?;
        next.run(ctx).await
    }
}
