//! Extensions that read and change their contexts.

use std::sync::Mutex;

use goondan::prelude::*;
use goondan::tool::{ToolHandler, ToolItem};
use goondan::{BoxFuture, Value, json};

use crate::{Log, LogConfig};

/// Returns its arguments.
struct Echo;

impl ToolHandler for Echo {
    fn call<'a>(&'a self, _: &'a goondan::tool::ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move { Ok(input.into()) })
    }
}

/// Logs everything that the contexts offer.
pub struct Probing {
    log: Log,
    /// The ids of the turn and of its trace.
    ids: Mutex<Value>,
}

#[goondan::extension(name = "probing")]
impl Probing {
    #[init]
    fn new(api: ExtensionApi, config: LogConfig) -> Result<Self> {
        api.tools().register(ToolItem::new("probe__echo")?.describe("Returns its arguments."), Echo)?;
        Ok(Self { log: config.log, ids: Mutex::default() })
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        *self.ids.lock().unwrap() = json!([ctx.turn_id(), ctx.trace_id()]);
        self.log.write(format!("turn {} {} {}", ctx.agent_name(), ctx.instance_key(), ctx.extension_name().unwrap()));
        self.log.write(format!("input {} {:?} {}", ctx.input().id, ctx.input().input, ctx.input().source.name));
        assert!(ctx.agents().list().is_empty());
        assert_eq!((ctx.conversation().len(), ctx.conversation().base().count()), (1, 0));
        let (turn, trace) = (ctx.turn_id().clone(), ctx.trace_id().clone());
        ctx.metadata_mut().insert("ids".into(), json!([turn, trace]));
        let result = next.run(ctx).await?;
        assert_eq!(result.turn_id(), &turn);
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        assert_eq!(ctx.metadata()["ids"], json!([ctx.turn_id(), ctx.trace_id()]));
        assert_eq!((&ctx.turn().turn, &ctx.turn().input.id), (ctx.turn_id(), &ctx.input().id));
        assert!(ctx.agents().list().is_empty());
        let tools: Vec<_> = ctx.tool_catalog().iter().map(|tool| tool.name.to_string()).collect();
        self.log.write(format!(
            "step {} {} {} {:?} {:?}",
            ctx.step_index(),
            ctx.agent_name(),
            ctx.instance_key(),
            ctx.input().input,
            tools
        ));
        next.run(ctx).await
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let args = Value::Object(ctx.args().clone());
        self.log.write(format!("call {} {} step {}", ctx.tool_name(), args, ctx.step_index()));
        self.log.write(format!("for {} {}", ctx.agent_name(), ctx.instance_key()));
        assert!(ctx.metadata().is_empty());
        assert_eq!(*self.ids.lock().unwrap(), json!([ctx.turn_id(), ctx.trace_id()]));
        let result = next.run(ctx).await?;
        assert_eq!(result.call_id(), ctx.call_id());
        self.log.write(format!("returned {}", result.output().unwrap()));
        Ok(result)
    }
}

/// Logs the trace id.
pub struct Tracer {
    log: Log,
}

#[goondan::extension(name = "tracer")]
impl Tracer {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.log.write(ctx.trace_id().as_str());
        next.run(ctx).await
    }
}

/// The outer one of two: writes metadata before `next` and reads it after.
pub struct Outer {
    log: Log,
}

#[goondan::extension(name = "outer")]
impl Outer {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        ctx.metadata_mut().insert("outer".into(), "set".into());
        let result = next.run(ctx).await?;
        self.log.write(format!("turn sees {}", Value::Object(ctx.metadata().clone())));
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        ctx.args_mut().insert("by".into(), "outer".into());
        ctx.metadata_mut().insert("call".into(), 1.into());
        let result = next.run(ctx).await?;
        self.log.write(format!("call sees {}", Value::Object(ctx.metadata().clone())));
        Ok(result)
    }
}

/// The inner one: reads what the outer one wrote, and changes it.
pub struct Inner;

#[goondan::extension(name = "inner")]
impl Inner {
    #[init]
    fn new(api: ExtensionApi) -> Result<Self> {
        api.tools().register(ToolItem::new("probe__echo")?, Echo)?;
        Ok(Self)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let steps = ctx.metadata().get("steps").and_then(Value::as_u64).unwrap_or_default() + 1;
        ctx.metadata_mut().insert("steps".into(), steps.into());
        next.run(ctx).await
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let by = ctx.args()["by"].clone();
        *ctx.args_mut() = goondan::Map::from_iter([("replaced, was".to_owned(), by)]);
        let seen = ctx.metadata()["call"].clone();
        ctx.metadata_mut().insert("inner saw".into(), seen);
        next.run(ctx).await
    }
}

/// Hides, adds and rewrites tools in its first step.
pub struct Curating;

#[goondan::extension(name = "curating")]
impl Curating {
    #[init]
    fn new(api: ExtensionApi) -> Result<Self> {
        api.tools().register(ToolItem::new("kept__tool")?, Echo)?;
        api.tools().register(ToolItem::new("hidden__tool")?, Echo)?;
        Ok(Self)
    }

    #[middleware(step)]
    async fn curate(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if ctx.step_index() == 0 {
            let catalog = ctx.tool_catalog_mut();
            catalog.retain(|tool| tool.name != "hidden__tool");
            catalog.get_mut("kept__tool").unwrap().description = Some("rewritten".to_owned());
            catalog.insert(ToolItem::new("added__tool")?);
        }
        next.run(ctx).await
    }
}
