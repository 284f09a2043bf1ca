//! The Agent-User Interaction protocol. `tests/clients` has the client itself.

use goondan::model::{ScriptItem, ScriptedModel};
use goondan::{Agent, Value, json};
use goondan_covers::covers;

use crate::support::{Sent, Served, Shop, events};

fn input(run: &str, message: Value) -> Value {
    json!({ "threadId": "t1", "runId": run, "messages": [message], "tools": [], "context": [] })
}

fn user(content: impl Into<Value>) -> Value {
    json!({ "id": "m1", "role": "user", "content": content.into() })
}

async fn run(served: &Served, body: &Value) -> Vec<Value> {
    let url = format!("{}/v1/agents/assistant/ag-ui", served.url);
    let mut response = served.client.post(url).body(body.to_string()).send().await.unwrap();
    events(&mut response, usize::MAX).await.iter().map(Sent::json).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
#[covers("SERVE-01", "SERVE-02", "ASK-01")]
async fn a_run_is_interrupted_and_goes_on() {
    let calls = ScriptItem::calls([("shop__look", json!({})), ("shop__refund", json!({}))]);
    let script = [calls.reasoning("Hm."), ScriptItem::say("done")];
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).extension::<Shop>(json!({}));
    let served = Served::new(agent).await;
    let asked = run(&served, &input("r1", user("refund"))).await;
    let call = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"];
    let reasoning = [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
    ];
    let expected = [
        &["RUN_STARTED", "STEP_STARTED"],
        &reasoning[..],
        &call,
        &["TOOL_CALL_RESULT"],
        &call,
        &["STEP_FINISHED", "RUN_FINISHED"],
    ];
    assert_eq!(kinds(&asked), expected.concat());
    let interrupt = asked.last().unwrap()["outcome"]["interrupts"][0].clone();
    assert_eq!(interrupt["message"], "Pay the money back?");
    // The same run again is the same turn.
    assert_eq!(run(&served, &input("r1", user("refund"))).await, asked);
    let told = json!({ "id": "a", "role": "assistant", "toolCalls": [
        { "id": asked.iter().find(|event| event["type"] == "TOOL_CALL_START").unwrap()["toolCallId"] },
        { "id": interrupt["toolCallId"] },
    ] });
    let mut body = input("r2", told);
    body["resume"] = json!([{ "interruptId": interrupt["id"], "status": "resolved", "payload": true }]);
    let done = run(&served, &body).await;
    let text = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"];
    let expected = [
        &["RUN_STARTED", "STEP_STARTED", "TOOL_CALL_RESULT", "STEP_FINISHED", "STEP_STARTED"],
        &text[..],
        &["STEP_FINISHED", "RUN_FINISHED"],
    ];
    assert_eq!(kinds(&done), expected.concat(), "what the front end has is not told again");
    assert_eq!((&done[0]["runId"], &done.last().unwrap()["outcome"]["type"]), (&json!("r2"), &json!("success")));
}

#[tokio::test]
async fn files_go_with_a_message_and_what_is_not_understood_is_refused() {
    let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("ok").repeat()]));
    let served = Served::new(agent).await;
    let source = json!({ "type": "data", "value": "aGk=", "mimeType": "text/plain" });
    let parts = json!([{ "type": "text", "text": "read" }, { "type": "document", "source": source }]);
    let events = run(&served, &input("r1", user(parts))).await;
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
    let (_, messages) = served.get(&served.at("t1", "/messages")).await;
    assert_eq!(messages[0]["data"]["content"][1]["mediaType"], "text/plain");
    let url = format!("{}/v1/agents/assistant/ag-ui", served.url);
    let mut with_tools = input("r2", user("hi"));
    with_tools["tools"] = json!([{ "name": "a", "description": "b" }]);
    let mut resumes = input("r2", user("hi"));
    resumes["resume"] = json!([{ "interruptId": "none", "status": "resolved" }]);
    for (body, status) in [
        (json!({}), 400),
        (input("r2", user(json!([]))), 400),
        (input("r2", json!({ "id": "m", "role": "system", "content": "x" })), 400),
        (with_tools, 422),
        (resumes, 409),
    ] {
        assert_eq!(served.post(&url, &body).await.0, status, "{body}");
    }
}
