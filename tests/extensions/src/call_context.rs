//! An extension that logs what a tool-call middleware knows of the call.

use goondan::prelude::*;
use goondan::tool::{Effect, ToolItem};

use super::LogConfig;

/// Logs the tool of each call, and leaves a note for it.
pub struct Curious {
    config: LogConfig,
}

#[goondan::extension(name = "curious")]
impl Curious {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { config }
    }

    /// Says it in another way in this step alone.
    #[middleware(step)]
    async fn describe(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if let Some(tool) = ctx.tool_catalog_mut().get_mut("curious__look") {
            tool.description = Some("Looks closely.".to_owned());
        }
        next.run(ctx).await
    }

    #[middleware(toolCall)]
    async fn know(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let known =
            |tool: &ToolItem| format!("{} {:?} {:?} {:?}", tool.name, tool.description, tool.effect, tool.source);
        self.config.log.write(ctx.tool().map_or_else(|| "no tool".to_owned(), known));
        let writable = ctx.tool().is_some_and(|tool| tool.effect != Effect::Read);
        let file = ctx.workdir()?.join("note.txt");
        if writable {
            std::fs::write(&file, "from the middleware")?;
        }
        let result = next.run(ctx).await;
        assert_eq!(ctx.workdir()?.join("note.txt"), file, "it stays readable after `next`");
        result
    }

    /// Looks.
    #[tool(effect = read)]
    async fn look(&self) -> Result<()> {
        Ok(())
    }

    /// Reads what the middleware wrote.
    #[tool]
    async fn read(&self, ctx: &ToolContext<'_>) -> Result<String> {
        Ok(std::fs::read_to_string(ctx.workdir()?.join("note.txt"))?)
    }
}
