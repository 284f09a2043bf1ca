//! Extensions that offer tools.

use goondan::agent::AgentRequest;
use goondan::prelude::*;
use goondan::tool::{ToolHandler, ToolItem};
use goondan::{BoxFuture, Value, json};

use crate::{Log, LogConfig};

/// Always returns the same value.
pub(crate) struct Answer(pub(crate) Value);

impl ToolHandler for Answer {
    fn call<'a>(&'a self, _: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async { Ok(self.0.clone().into()) })
    }
}

/// Fails, or panics if its arguments say so.
struct Fragile;

impl ToolHandler for Fragile {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move {
            assert_ne!(input["panic"], true, "boom in {}", ctx.tool_name());
            Err(Error::new("E_QUOTA", "quota used up").suggest("wait a day"))
        })
    }
}

/// Offers several tools.
pub struct Toolbox;

#[goondan::extension(name = "toolbox")]
impl Toolbox {
    #[init]
    fn new(api: ExtensionApi) -> Result<Self> {
        api.tools().register(ToolItem::new("box__twice")?, Answer(json!("old")))?;
        api.tools().register(ToolItem::new("box__fragile")?, Fragile)?;
        let schema = json!({
            "type": "object",
            "properties": { "city": { "type": "string" }, "days": { "type": "integer" } },
            "required": ["city"],
        });
        api.tools().register(ToolItem::new("box__weather")?.parameters(schema), Answer(json!({ "sky": "clear" })))?;
        api.tools().register(ToolItem::new("box__twice")?, Answer(json!("new")))?;
        Ok(Self)
    }
}

/// Registers a tool whose parameters are not a schema.
pub struct Misdescribed;

#[goondan::extension(name = "misdescribed")]
impl Misdescribed {
    #[init]
    fn new(api: ExtensionApi) -> Result<Self> {
        let item = ToolItem::new("bad__schema")?.parameters(json!({ "type": "strng" }));
        api.tools().register(item, Answer(Value::Null))?;
        Ok(Self)
    }
}

/// Offers tools that show in which order calls run, and what a handler gets.
pub struct Running {
    log: Log,
    barrier: tokio::sync::Barrier,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Complaint {
    characters: usize,
}

#[goondan::extension(name = "running")]
impl Running {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log, barrier: tokio::sync::Barrier::new(2) }
    }

    /// Returns only when another call runs at the same time.
    #[tool(effect = read)]
    async fn meet(&self, ctx: &ToolContext<'_>) -> Result<String> {
        self.barrier.wait().await;
        Ok(ctx.call_id().to_string())
    }

    /// Changes something.
    #[tool(effect = idempotent)]
    async fn change(&self, ctx: &ToolContext<'_>) -> Result<()> {
        self.log.write(format!("{} starts", ctx.call_id()));
        tokio::task::yield_now().await;
        self.log.write(format!("{} ends", ctx.call_id()));
        Ok(())
    }

    /// Fails with a message of so many characters.
    #[tool(effect = read)]
    async fn complain(&self, input: Complaint) -> Result<()> {
        Err(Error::msg("é".repeat(input.characters)))
    }

    /// Returns what its context offers, and writes into its directory.
    #[tool]
    async fn look(&self, ctx: &ToolContext<'_>) -> Result<Value> {
        std::fs::write(ctx.workdir()?.join("note.txt"), "was here")?;
        ctx.logger().info("looked");
        Ok(json!([ctx.tool_name(), ctx.message().text(), ctx.agents().list(), ctx.workdir()?]))
    }
}

/// Changes the arguments of every call.
pub struct Rewriting;

#[goondan::extension(name = "rewriting")]
impl Rewriting {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall)]
    async fn rewrite(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        ctx.args_mut().insert("city".into(), "Busan".into());
        next.run(ctx).await
    }
}

/// Logs the calls that pass, and offers one tool by its attribute and one by registration.
pub struct Passing {
    log: Log,
}

#[goondan::extension(name = "passing")]
impl Passing {
    #[init]
    fn new(api: ExtensionApi, config: LogConfig) -> Result<Self> {
        api.tools().register(ToolItem::new("passing__dynamic")?, Answer(json!("by hand")))?;
        Ok(Self { log: config.log })
    }

    /// Returns how it was registered.
    #[tool]
    async fn declared(&self) -> Result<&'static str> {
        Ok("by attribute")
    }

    #[middleware(toolCall)]
    async fn log_call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let result = next.run(ctx).await?;
        self.log.write(format!("{} for {}: {:?}", ctx.tool_name(), ctx.agent_name(), result.output()));
        Ok(result)
    }
}

/// Sends a request to another agent.
pub struct Delegating;

#[goondan::extension(name = "delegating")]
impl Delegating {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn delegate(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        ctx.agents().request(AgentRequest::new("worker").input("work")).await?;
        next.run(ctx).await
    }
}
