//! TOOL: what extensions offer the model.

use goondan::prelude::*;
use goondan::{BoxFuture, ErrorCode, ScriptItem, ToolContext, ToolHandler, ToolItem, Value, json};
use goondan_covers::covers;

use crate::support::{agent, one_turn};

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
