//! CTX: what middlewares see and may change.

use goondan::prelude::*;
use goondan::{AgentEvent, BoxFuture, ScriptItem, ToolHandler, ToolItem, Value, json};
use goondan_covers::covers;

use crate::support::{Log, LogConfig, agent, one_turn};

/// Answers with the arguments that it got.
struct Echo;

impl ToolHandler for Echo {
    fn call<'a>(&'a self, _: &'a goondan::ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<Value>> {
        Box::pin(async move { Ok(input) })
    }
}

/// Logs everything that the contexts offer.
struct Probing {
    log: Log,
}

#[goondan::extension(name = "probing")]
impl Probing {
    #[init]
    fn new(api: ExtensionApi, config: LogConfig) -> Result<Self> {
        api.tools().register(ToolItem::new("probe__echo")?.describe("Says what it hears."), Echo)?;
        Ok(Self { log: config.log })
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
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
        let result = next.run(ctx).await?;
        assert_eq!(result.call_id(), ctx.call_id());
        self.log.write(format!("gave {}", result.output().unwrap()));
        Ok(result)
    }
}

#[tokio::test]
#[covers("CTX-01", "CTX-02", "CTX-14", "CTX-03", "CTX-11", "CTX-12", "CTX-13", "LEGACY-CTX-01", "ENTRY-09", "TOOL-02")]
async fn contexts_tell_where_the_run_is() {
    let log = Log::new("contexts");
    let script = [ScriptItem::call("probe__echo", json!({ "a": 1 })), ScriptItem::say("done")];
    let agent = agent(script).extension::<Probing>(log.config()).build().await.unwrap();
    let event = AgentEvent::input("hello");
    let id = event.id.clone();
    agent.instance("user:1").await.unwrap().run(event).await.unwrap();
    assert_eq!(
        log.take(),
        [
            "turn assistant user:1 probing".to_owned(),
            format!("input {id} Some(\"hello\") local"),
            "step 0 assistant user:1 Some(\"hello\") [\"probe__echo\"]".to_owned(),
            "call probe__echo {\"a\":1} step 0".to_owned(),
            "for assistant user:1".to_owned(),
            "gave {\"a\":1}".to_owned(),
            "step 1 assistant user:1 Some(\"hello\") [\"probe__echo\"]".to_owned(),
        ]
    );
}

#[tokio::test]
async fn the_trace_of_the_event_is_kept() {
    let log = Log::new("trace");
    let agent = agent([ScriptItem::say("hi").repeat()]).extension::<Tracer>(log.config()).build().await.unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut event = AgentEvent::input("hello");
    event.trace_id = Some("0123456789abcdef0123456789abcdef".into());
    instance.run(event).await.unwrap();
    instance.run("hello").await.unwrap();
    let traces = log.take();
    assert_eq!(traces[0], "0123456789abcdef0123456789abcdef");
    assert!(traces[1].len() == 32 && traces[1] != traces[0], "{traces:?}");
}

/// Logs the trace id.
struct Tracer {
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
struct Outer {
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
struct Inner;

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

#[tokio::test]
#[covers("CTX-07", "CTX-08", "CTX-09", "CTX-15")]
async fn metadata_and_arguments_are_shared_inward_and_outward() {
    let log = Log::new("metadata");
    let script = [
        ScriptItem::call("probe__echo", json!({})),
        ScriptItem::say("done").when(r#"^\{"replaced, was":"outer"\}$"#).unwrap(),
    ];
    let agent = agent(script).extension::<Outer>(log.config()).extension::<Inner>(json!({}));
    assert_eq!(one_turn(agent).await.unwrap().text(), "done");
    assert_eq!(
        log.take(),
        [
            r#"call sees {"call":1,"inner saw":1}"#,
            // D-15: one map for the turn and its steps, another for each call.
            r#"turn sees {"outer":"set","steps":2}"#,
        ]
    );
}

/// Hides, adds and rewrites tools in its first step.
struct Curating;

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

#[tokio::test]
#[covers("CTX-05", "CTX-06", "LEGACY-POINTS-03")]
async fn a_step_shows_the_model_what_its_middlewares_left_in_the_catalog() {
    let record = tempfile::tempdir().unwrap();
    let path = record.path().join("requests.jsonl");
    let call = |name: &str| ScriptItem::call(name, json!({}));
    let script = [
        ScriptItem::calls([("hidden__tool", json!({})), ("added__tool", json!({}))]),
        call("hidden__tool"),
        ScriptItem::say("done"),
    ];
    let model = goondan::ScriptedModel::new(script).record(&path);
    let agent = goondan::Agent::builder("assistant").model(model).extension::<Curating>(json!({}));
    let turn = one_turn(agent).await.unwrap();
    let statuses: Vec<_> = turn.tool_calls().iter().map(|call| json!(call.status)).collect();
    assert_eq!(statuses, ["error", "error", "ok"], "hidden in step 0, without handler, and shown again in step 1");

    let requests = std::fs::read_to_string(&path).unwrap();
    let requests: Vec<Value> = requests.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        requests[0]["tools"],
        json!([{ "name": "kept__tool", "description": "rewritten" }, { "name": "added__tool" }])
    );
    assert_eq!(requests[1]["tools"], json!([{ "name": "kept__tool" }, { "name": "hidden__tool" }]));
    let refusals: Vec<_> = requests[1]["messages"].as_array().unwrap()[2..].iter().map(Value::to_string).collect();
    assert!(refusals[0].contains("E_TOOL_NOT_IN_CATALOG"), "{refusals:?}");
    assert!(refusals[1].contains("E_TOOL_NOT_FOUND"), "{refusals:?}");
}
