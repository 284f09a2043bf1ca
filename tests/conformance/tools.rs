//! TOOL: the tools that extensions offer the model.

use conformance_extensions::tools::{Delegating, Misdescribed, Passing, Rewriting, Running, Toolbox};
use goondan::agent::LocalRouter;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::tool::ToolItem;
use goondan::{Agent, ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent, one_turn};

/// Calls a tool and returns the result that the model is sent.
async fn result_of(tool: &str, arguments: Value) -> String {
    let record = tempfile::tempdir().unwrap();
    let path = record.path().join("requests.jsonl");
    let script = [ScriptItem::call(tool, arguments), ScriptItem::say("done")];
    let model = goondan::model::ScriptedModel::new(script).record(&path);
    let agent = goondan::Agent::builder("assistant").model(model).with::<Toolbox>(json!({}));
    one_turn(agent).await.unwrap();
    let requests = std::fs::read_to_string(&path).unwrap();
    let request: Value = serde_json::from_str(requests.lines().last().unwrap()).unwrap();
    let messages = request["messages"].as_array().unwrap();
    let (call, result) = (&messages[1], &messages[2]);
    // D-12: each call has one result message, right after the assistant's, with the same id.
    assert_eq!((&call["role"], &result["role"]), (&json!("assistant"), &json!("tool")));
    assert_eq!(call["content"][0]["toolCallId"], result["content"][0]["toolCallId"]);
    result["content"][0]["output"].to_string()
}

#[both_linkages]
#[covers("TOOL-03")]
async fn a_later_registration_replaces_an_earlier_one() {
    assert_eq!(result_of("box__twice", json!({})).await, r#"{"type":"text","value":"new"}"#);
}

#[both_linkages]
#[covers("TOOL-04", "TOOL-05", "LEGACY-TOOLDEF-01")]
async fn an_answer_that_is_not_text_is_sent_as_json() {
    let result = result_of("box__weather", json!({ "city": "Seoul" })).await;
    assert_eq!(result, r#"{"type":"json","value":{"sky":"clear"}}"#);
}

#[both_linkages]
async fn arguments_that_do_not_fit_never_reach_the_handler() {
    let result = result_of("box__weather", json!({ "days": "many" })).await;
    for part in ["E_TOOL_INVALID_ARGS", "/days", "city"] {
        assert!(result.contains(part), "{result}");
    }
}

#[both_linkages]
async fn an_error_of_a_handler_reaches_the_model_with_code_and_remedy() {
    let result = result_of("box__fragile", json!({})).await;
    assert!(result.contains("E_QUOTA: quota used up") && result.contains("wait a day"), "{result}");
}

#[both_linkages]
async fn a_panic_of_a_handler_reaches_the_model_as_an_error() {
    let result = result_of("box__fragile", json!({ "panic": true })).await;
    assert!(result.contains("E_EXT_PANIC") && result.contains("boom in box__fragile"), "{result}");
}

#[both_linkages]
async fn a_tool_outside_the_catalog_is_refused_with_a_list_of_the_catalog() {
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

#[both_linkages]
async fn parameters_that_are_not_a_schema_fail_the_start() {
    let error = one_turn(agent([]).with::<Misdescribed>(json!({}))).await.unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::SCHEMA_INVALID, "misdescribed"));
}

/// Calls a tool twice, with the ids `c1` and `c2`.
fn two_calls(tool: &str) -> ScriptItem {
    let call = |id: &str| json!({ "id": id, "name": tool, "args": {} });
    ScriptItem::raw(serde_json::from_value(json!({ "text": "now", "toolCalls": [call("c1"), call("c2")] })).unwrap())
}

#[both_linkages]
async fn calls_that_only_read_run_side_by_side_and_answer_in_request_order() {
    let log = Log::new();
    let agent = agent([two_calls("running__meet"), ScriptItem::say("done")]).with::<Running>(log.config());
    let agent = agent.build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let messages = instance.messages().await.unwrap();
    let answers: Vec<_> = messages[2..4].iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(answers, ["c1", "c2"], "D-06, D-12");
}

#[both_linkages]
async fn calls_that_change_something_run_one_after_another() {
    let log = Log::new();
    one_turn(agent([two_calls("running__change"), ScriptItem::say("done")]).with::<Running>(log.config()))
        .await
        .unwrap();
    assert_eq!(log.take(), ["c1 starts", "c1 ends", "c2 starts", "c2 ends"]);
}

#[both_linkages]
async fn the_text_of_an_error_is_cut_on_a_character_boundary() {
    let log = Log::new();
    for (characters, end) in [(1000, "éé"), (1001, "é... (truncated)"), (3000, "é... (truncated)")] {
        let script =
            [ScriptItem::call("running__complain", json!({ "characters": characters })), ScriptItem::say("done")];
        let agent = agent(script).with::<Running>(log.config()).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        instance.run("hello").await.unwrap();
        let messages = instance.messages().await.unwrap();
        let text = messages[2].text();
        let message = text.lines().next().unwrap().strip_prefix("error E_EXT_RUNTIME: ").unwrap();
        assert_eq!(message.chars().count(), 1000);
        assert!(message.ends_with(end), "{message}");
    }
}

#[both_linkages]
async fn a_handler_gets_its_call_and_a_directory() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new());
    let call = json!({ "text": "let me see", "toolCalls": [{ "id": "c1", "name": "running__look", "args": {} }] });
    let script = [ScriptItem::raw(serde_json::from_value(call).unwrap()), ScriptItem::say("done")];
    let agent = agent(script).with::<Running>(log.config()).store(FileStore::open(dir.path()).unwrap());
    let agent = agent.build().unwrap();
    let instance = agent.instance("user/1").await.unwrap();
    instance.run("hello").await.unwrap();
    let workdir = dir.path().join("instances/assistant:user%2F1/workspace");
    assert_eq!(std::fs::read_to_string(workdir.join("note.txt")).unwrap(), "was here");
    let expected = json!(["running__look", "let me see", [], workdir]);
    assert_eq!(instance.messages().await.unwrap()[2].text(), expected.to_string());
}

#[both_linkages]
async fn rewritten_arguments_are_recorded_on_the_result_and_the_call_keeps_its_own() {
    let script = [ScriptItem::call("box__weather", json!({ "city": "Seoul" })), ScriptItem::say("done")];
    let agent = agent(script).with::<Toolbox>(json!({})).with::<Rewriting>(json!({})).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let messages = instance.messages().await.unwrap();
    assert_eq!(json!(messages[1].content())[0]["input"], json!({ "city": "Seoul" }), "D-14");
    assert_eq!(messages[2].metadata()["rewrittenArgs"], json!({ "city": "Busan" }));
}

#[both_linkages]
#[covers("DISPATCH-01", "TOOL-05")]
async fn every_call_passes_the_tool_call_chain() {
    let (log, router) = (Log::new(), LocalRouter::new());
    let calls = ["passing__declared", "passing__dynamic", "no__tool"].map(|tool| (tool, json!({})));
    let worker = Agent::builder("worker")
        .model(ScriptedModel::new([ScriptItem::calls(calls), ScriptItem::say("done")]))
        .with::<Passing>(log.config())
        .router(router.clone());
    let worker = worker.build().unwrap();
    router.add(&worker);
    one_turn(agent([ScriptItem::say("done")]).with::<Delegating>(json!({})).router(router)).await.unwrap();
    assert_eq!(
        log.take(),
        [
            "passing__declared for worker: Some(String(\"by attribute\"))",
            "passing__dynamic for worker: Some(String(\"by hand\"))",
            "no__tool for worker: None",
        ]
    );
}
