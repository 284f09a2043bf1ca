//! TOOL: what extensions offer the model.

use goondan::prelude::*;
use goondan::{
    Agent, AgentRequest, BoxFuture, ErrorCode, FileStore, LocalRouter, ScriptItem, ScriptedModel, ToolHandler,
    ToolItem, Value, json,
};
use goondan_covers::covers;

use crate::support::{Log, LogConfig, agent, one_turn};

/// Always gives the same answer.
pub(crate) struct Answer(pub(crate) Value);

impl ToolHandler for Answer {
    fn call<'a>(&'a self, _: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<Value>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

/// Fails, or panics if it is asked to.
struct Fragile;

impl ToolHandler for Fragile {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<Value>> {
        Box::pin(async move {
            assert_ne!(input["panic"], true, "boom in {}", ctx.tool_name());
            Err(Error::new("E_QUOTA", "quota used up").suggest("wait a day"))
        })
    }
}

/// Offers several tools.
struct Toolbox;

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

/// What the model is sent as the result of this call.
async fn result_of(tool: &str, arguments: Value) -> String {
    let record = tempfile::tempdir().unwrap();
    let path = record.path().join("requests.jsonl");
    let script = [ScriptItem::call(tool, arguments), ScriptItem::say("done")];
    let model = goondan::ScriptedModel::new(script).record(&path);
    let agent = goondan::Agent::builder("assistant").model(model).extension::<Toolbox>(json!({}));
    one_turn(agent).await.unwrap();
    let requests = std::fs::read_to_string(&path).unwrap();
    let request: Value = serde_json::from_str(requests.lines().last().unwrap()).unwrap();
    let messages = request["messages"].as_array().unwrap();
    let (call, result) = (&messages[1], &messages[2]);
    // D-12: one message a call, right behind the assistant's, joined by the id.
    assert_eq!((&call["role"], &result["role"]), (&json!("assistant"), &json!("tool")));
    assert_eq!(call["content"][0]["toolCallId"], result["content"][0]["toolCallId"]);
    result["content"][0]["output"].to_string()
}

#[tokio::test]
#[covers("TOOL-03")]
async fn a_later_registration_replaces_an_earlier_one() {
    assert_eq!(result_of("box__twice", json!({})).await, r#"{"type":"text","value":"new"}"#);
}

#[tokio::test]
#[covers("TOOL-04", "TOOL-05", "LEGACY-TOOLDEF-01")]
async fn an_answer_that_is_not_text_is_sent_as_json() {
    let result = result_of("box__weather", json!({ "city": "Seoul" })).await;
    assert_eq!(result, r#"{"type":"json","value":{"sky":"clear"}}"#);
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_handler() {
    let result = result_of("box__weather", json!({ "days": "many" })).await;
    for part in ["E_TOOL_INVALID_ARGS", "/days", "city"] {
        assert!(result.contains(part), "{result}");
    }
}

#[tokio::test]
async fn an_error_of_a_handler_reaches_the_model_with_code_and_remedy() {
    let result = result_of("box__fragile", json!({})).await;
    assert!(result.contains("E_QUOTA: quota used up") && result.contains("wait a day"), "{result}");
}

#[tokio::test]
async fn a_panic_of_a_handler_reaches_the_model_as_an_error() {
    let result = result_of("box__fragile", json!({ "panic": true })).await;
    assert!(result.contains("E_EXT_PANIC") && result.contains("boom in box__fragile"), "{result}");
}

#[tokio::test]
async fn a_tool_outside_of_the_catalog_is_refused_with_those_inside() {
    let result = result_of("box__other", json!({})).await;
    assert!(result.contains("E_TOOL_NOT_IN_CATALOG") && result.contains("box__weather"), "{result}");
}

#[tokio::test]
#[covers("TOOL-01")]
async fn a_tool_name_has_two_parts() {
    for name in ["plain", "a__b__c", "__b", "a__", "a b__c"] {
        assert_eq!(ToolItem::new(name).unwrap_err().code(), &ErrorCode::TOOL_NAME, "{name}");
    }
}

/// Registers a tool whose parameters are no schema.
struct Misdescribed;

#[goondan::extension(name = "misdescribed")]
impl Misdescribed {
    #[init]
    fn new(api: ExtensionApi) -> Result<Self> {
        let item = ToolItem::new("bad__schema")?.parameters(json!({ "type": "strng" }));
        api.tools().register(item, Answer(Value::Null))?;
        Ok(Self)
    }
}

#[tokio::test]
async fn parameters_that_are_no_schema_fail_the_start() {
    let error = one_turn(agent([]).extension::<Misdescribed>(json!({}))).await.unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::SCHEMA_INVALID, "misdescribed"));
}

/// Tools that show how calls run.
struct Running {
    log: Log,
    barrier: tokio::sync::Barrier,
}

#[goondan::extension(name = "running")]
impl Running {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log, barrier: tokio::sync::Barrier::new(2) }
    }

    /// Ends only when another call runs beside it.
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

    /// Fails at length.
    #[tool(effect = read)]
    async fn complain(&self) -> Result<()> {
        Err(Error::msg("é".repeat(3000)))
    }

    /// Looks around.
    #[tool]
    async fn look(&self, ctx: &ToolContext<'_>) -> Result<Value> {
        std::fs::write(ctx.workdir()?.join("note.txt"), "was here")?;
        ctx.logger().info("looked");
        Ok(json!([ctx.tool_name(), ctx.message().text(), ctx.runtime().list(), ctx.workdir()?]))
    }
}

/// Two calls, by ids of their own.
fn two_calls(tool: &str) -> ScriptItem {
    let call = |id: &str| json!({ "id": id, "name": tool, "args": {} });
    ScriptItem::raw(serde_json::from_value(json!({ "text": "now", "toolCalls": [call("c1"), call("c2")] })).unwrap())
}

#[tokio::test]
async fn calls_that_only_read_run_side_by_side_and_answer_in_request_order() {
    let log = Log::new("side by side");
    let agent = agent([two_calls("running__meet"), ScriptItem::say("done")]).extension::<Running>(log.config());
    let agent = agent.build().await.unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let messages = instance.messages().await;
    let answers: Vec<_> = messages[2..4].iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(answers, ["c1", "c2"], "D-06, D-12");
}

#[tokio::test]
async fn calls_that_change_something_run_one_after_another() {
    let log = Log::new("one after another");
    one_turn(agent([two_calls("running__change"), ScriptItem::say("done")]).extension::<Running>(log.config()))
        .await
        .unwrap();
    assert_eq!(log.take(), ["c1 starts", "c1 ends", "c2 starts", "c2 ends"]);
}

#[tokio::test]
async fn the_text_of_an_error_is_cut_on_a_character_boundary() {
    let log = Log::new("cut");
    let script = [ScriptItem::call("running__complain", json!({})), ScriptItem::say("done")];
    let agent = agent(script).extension::<Running>(log.config()).build().await.unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let messages = instance.messages().await;
    let text = messages[2].text();
    let message = text.lines().next().unwrap().strip_prefix("error E_EXT_RUNTIME: ").unwrap();
    assert_eq!(message.chars().count(), 1000);
    assert!(message.ends_with("é... (truncated)"), "{message}");
}

#[tokio::test]
async fn a_handler_knows_its_call_and_has_a_directory() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new("look"));
    let call = json!({ "text": "let me see", "toolCalls": [{ "id": "c1", "name": "running__look", "args": {} }] });
    let script = [ScriptItem::raw(serde_json::from_value(call).unwrap()), ScriptItem::say("done")];
    let agent = agent(script).extension::<Running>(log.config()).store(FileStore::open(dir.path()).unwrap());
    let agent = agent.build().await.unwrap();
    let instance = agent.instance("user/1").await.unwrap();
    instance.run("hello").await.unwrap();
    let workdir = dir.path().join("instances/assistant:user%2F1/workspace");
    assert_eq!(std::fs::read_to_string(workdir.join("note.txt")).unwrap(), "was here");
    let expected = json!(["running__look", "let me see", [], workdir]);
    assert_eq!(instance.messages().await[2].text(), expected.to_string());
}

/// Changes the arguments of every call.
struct Rewriting;

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

#[tokio::test]
async fn rewritten_arguments_are_recorded_on_the_result_and_the_call_keeps_its_own() {
    let script = [ScriptItem::call("box__weather", json!({ "city": "Seoul" })), ScriptItem::say("done")];
    let agent = agent(script).extension::<Toolbox>(json!({})).extension::<Rewriting>(json!({})).build().await.unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let messages = instance.messages().await;
    assert_eq!(json!(messages[1].content())[0]["input"], json!({ "city": "Seoul" }), "D-14");
    assert_eq!(messages[2].metadata()["rewrittenArgs"], json!({ "city": "Busan" }));
}

/// Counts what passes, and offers a tool by its attribute and one by hand.
struct Passing {
    log: Log,
}

#[goondan::extension(name = "passing")]
impl Passing {
    #[init]
    fn new(api: ExtensionApi, config: LogConfig) -> Result<Self> {
        api.tools().register(ToolItem::new("passing__dynamic")?, Answer(json!("by hand")))?;
        Ok(Self { log: config.log })
    }

    /// Says where it comes from.
    #[tool]
    async fn declared(&self) -> Result<&'static str> {
        Ok("by attribute")
    }

    #[middleware(toolCall)]
    async fn count(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let result = next.run(ctx).await?;
        self.log.write(format!("{} for {}: {:?}", ctx.tool_name(), ctx.agent_name(), result.output()));
        Ok(result)
    }
}

/// Has another agent work.
struct Delegating;

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

#[tokio::test]
#[covers("DISPATCH-01")]
async fn no_way_to_a_tool_leads_past_the_tool_call_chain() {
    let (log, router) = (Log::new("dispatch"), LocalRouter::new());
    let calls = ["passing__declared", "passing__dynamic", "no__tool"].map(|tool| (tool, json!({})));
    let worker = Agent::builder("worker")
        .model(ScriptedModel::new([ScriptItem::calls(calls), ScriptItem::say("done")]))
        .extension::<Passing>(log.config())
        .router(router.clone());
    let worker = worker.build().await.unwrap();
    router.add(&worker);
    one_turn(agent([ScriptItem::say("done")]).extension::<Delegating>(json!({})).router(router)).await.unwrap();
    assert_eq!(
        log.take(),
        [
            "passing__declared for worker: Some(String(\"by attribute\"))",
            "passing__dynamic for worker: Some(String(\"by hand\"))",
            "no__tool for worker: None",
        ]
    );
}
