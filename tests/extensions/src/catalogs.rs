//! A layer that changes the catalog of some steps, and one further in that reads it.

use goondan::prelude::*;
use goondan::tool::{ProviderTool, ToolCatalog, ToolItem};

use super::{Log, LogConfig};

/// Changes the catalog of the steps 1 and 3.
pub struct Recasting;

#[goondan::extension(name = "recasting")]
impl Recasting {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step, priority = -10)]
    async fn change(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        match ctx.step_index() {
            1 => ctx.tool_catalog_mut().insert(ToolItem::new("recasting__more")?),
            3 => ctx.tool_catalog_mut().get_mut("seeing__go").unwrap().description = Some("changed".to_owned()),
            _ => {}
        }
        next.run(ctx).await
    }
}

/// Logs the catalog that it is given, and hides all that it can do without.
pub struct Seeing {
    log: Log,
}

#[goondan::extension(name = "seeing")]
impl Seeing {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(step)]
    async fn see(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let given = line(ctx.tool_catalog());
        let tools = ctx.tool_catalog_mut();
        tools.retain(|tool| tool.name == "seeing__go");
        tools.get_mut("seeing__go").unwrap().description = Some("mine".to_owned());
        self.log.write(format!("{given}; {}", line(ctx.tool_catalog())));
        next.run(ctx).await
    }

    /// goes
    #[tool]
    async fn go(&self) -> Result<()> {
        Ok(())
    }

    /// stays
    #[tool]
    async fn stay(&self) -> Result<()> {
        Ok(())
    }
}

/// Has a tool that a provider defines, and makes it another one of that provider in the second step.
pub struct Provided {
    log: Log,
}

#[goondan::extension(name = "provided")]
impl Provided {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(step, priority = -10)]
    async fn change(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let index = ctx.step_index();
        let tool = ctx.tool_catalog_mut().get_mut("provided__run").unwrap();
        let members = ProviderTool::openai("shell").member("environment", goondan::json!({ "type": "local" }));
        match index {
            0 => *tool = tool.clone().provider_tool(ProviderTool::anthropic("bash_1", "bash")),
            1 => *tool = tool.clone().provider_tool(members),
            _ => {}
        }
        next.run(ctx).await
    }

    #[middleware(step)]
    async fn see(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let tool = ctx.tool_catalog().get("provided__run").unwrap();
        self.log.write(goondan::json!(tool.provider_tools).to_string());
        next.run(ctx).await
    }

    /// runs
    #[tool]
    async fn run(&self) -> Result<()> {
        Ok(())
    }
}

fn line(tools: &ToolCatalog) -> String {
    let tools = tools.iter().map(|tool| format!("{} {}", tool.name, tool.description.as_deref().unwrap_or_default()));
    tools.collect::<Vec<_>>().join(", ")
}
