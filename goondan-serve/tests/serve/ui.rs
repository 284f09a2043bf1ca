//! The message stream of AI SDK UI. `tests/clients` has the client itself.

use goondan::model::{ScriptItem, ScriptedModel};
use goondan::{Agent, Value, json};
use goondan_covers::covers;

use crate::support::{PIECES, Served, Shop, events, paced};

fn chat(id: &str, messages: Value) -> Value {
    json!({ "id": id, "messages": messages, "trigger": "submit-message" })
}

fn says(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] })
}

async fn chunks(served: &Served, body: &Value) -> Vec<Value> {
    let url = format!("{}/v1/agents/assistant/ui", served.url);
    let mut response = served.client.post(url).body(body.to_string()).send().await.unwrap();
    assert_eq!(response.headers()["x-vercel-ai-ui-message-stream"], "v1");
    let mut events = events(&mut response, usize::MAX).await;
    assert_eq!(events.pop().unwrap().data, "[DONE]");
    events.iter().map(crate::support::Sent::json).collect()
}

fn kinds(chunks: &[Value]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect()
}

#[tokio::test]
#[covers("SERVE-01", "SERVE-02")]
async fn a_message_is_answered_once_and_a_page_that_comes_back_reads_it_whole() {
    let (agent, model) = paced();
    let served = Served::new(agent).await;
    let body = chat("c1", json!([says("m1", "hello")]));
    let url = format!("{}/v1/agents/assistant/ui", served.url);
    let stream = format!("{url}/c1/stream");
    assert_eq!(served.get(&stream).await.0, 204, "nothing runs");
    let first = served.client.post(&url).body(body.to_string()).send().await.unwrap();
    model.let_through(2);
    drop(first);
    let mut resumed = served.client.get(&stream).send().await.unwrap();
    model.let_through(2);
    let resumed = events(&mut resumed, usize::MAX).await;
    let pieces = resumed.iter().filter(|event| event.data.contains("text-delta")).map(|event| event.json());
    assert_eq!(pieces.map(|it| it["delta"].as_str().unwrap().to_owned()).collect::<String>(), PIECES.concat());
    let again = chunks(&served, &body).await;
    let deltas = ["text-delta"; 4];
    let expected =
        [&["start", "start-step", "text-start"], &deltas[..], &["text-end", "finish-step", "finish"]].concat();
    assert_eq!(kinds(&again), expected);
    assert_eq!(model.asked.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert_eq!(served.get(&stream).await.0, 204);
}

#[tokio::test]
#[covers("SERVE-01", "ASK-01")]
#[expect(clippy::too_many_lines, reason = "it is told from its start to its end")]
async fn an_approval_goes_on_with_the_same_message() {
    let text = json!({ "type": "text", "text": "Let me see." });
    let call = |id: &str, tool: &str| json!({ "type": "tool-call", "toolCallId": id, "toolName": tool, "input": {} });
    let parts = [text, call("1", "shop__look"), call("2", "shop__refund")];
    let parts = parts.map(|part| serde_json::from_value(part).unwrap());
    let script = [ScriptItem::content(parts), ScriptItem::say("done")];
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).extension::<Shop>(json!({}));
    let served = Served::new(agent).await;
    let asked = chunks(&served, &chat("c1", json!([says("m1", "refund")]))).await;
    assert_eq!(
        kinds(&asked),
        [
            "start",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "tool-input-available",
            "tool-output-available",
            "tool-input-available",
            "tool-approval-request",
            "data-question",
            "finish-step",
            "finish"
        ]
    );
    let request = asked.iter().find(|chunk| chunk["type"] == "tool-approval-request").unwrap();
    let part = |approved: bool| {
        json!({
            "type": "dynamic-tool", "toolName": "shop__refund", "toolCallId": request["toolCallId"], "input": {},
            "state": "approval-responded", "approval": { "id": request["approvalId"], "approved": approved },
        })
    };
    let answer = json!({ "id": asked[0]["messageId"], "role": "assistant", "parts": [part(true)] });
    let done = chunks(&served, &chat("c1", json!([says("m1", "refund"), answer]))).await;
    assert_eq!(done[0]["messageId"], asked[0]["messageId"]);
    let output = done.iter().find(|chunk| chunk["type"] == "tool-output-available").unwrap();
    assert_eq!((&output["toolCallId"], &output["output"]), (&request["toolCallId"], &json!("paid back")));
    assert_eq!(
        kinds(&done),
        [
            "start",
            "start-step",
            "tool-output-available",
            "finish-step",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "finish"
        ],
        "what the page has is not told again"
    );
    let url = format!("{}/v1/agents/assistant/ui", served.url);
    let (status, _) = served.post(&url, &chat("c1", json!([says("m1", "refund"), answer]))).await;
    assert_eq!(status, 409, "it was decided");
    // A page that has nothing of it reads the whole, each part once.
    let whole = chunks(&served, &chat("c1", json!([says("m1", "refund")]))).await;
    let deltas: Vec<_> = whole.iter().filter_map(|chunk| chunk["delta"].as_str()).collect();
    assert_eq!(deltas, ["Let me see.", "done"]);
    let outputs: Vec<_> = whole.iter().filter_map(|chunk| chunk["output"].as_str()).collect();
    assert_eq!(outputs, ["found", "paid back"]);
}

#[tokio::test]
async fn failures_and_refusals_are_told() {
    let script =
        [ScriptItem::fail("overloaded", false), ScriptItem::call("shop__none", json!({})), ScriptItem::say("ok")];
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).extension::<Shop>(json!({}));
    let served = Served::new(agent).await;
    let failed = chunks(&served, &chat("c1", json!([says("m1", "one")]))).await;
    assert_eq!(kinds(&failed), ["start", "start-step", "finish-step", "error", "finish"]);
    assert_eq!(failed[3]["errorText"], "overloaded (E_MODEL)");
    let unknown = chunks(&served, &chat("c1", json!([says("m2", "two")]))).await;
    assert!(kinds(&unknown).contains(&"tool-output-error"), "{unknown:?}");
    let url = format!("{}/v1/agents/assistant/ui", served.url);
    for body in [
        json!({}),
        chat("c1", json!([])),
        chat("c1", json!([{ "id": "m", "role": "user", "parts": [] }])),
        chat("c1", json!([{ "id": "m", "role": "system", "parts": [] }])),
        chat("c1", json!([{ "id": "m", "role": "assistant", "parts": [{ "type": "text", "text": "hi" }] }])),
    ] {
        let (status, problem) = served.post(&url, &body).await;
        assert_eq!((status, &problem["code"]), (400, &json!("E_SERVE_REQUEST")), "{body}");
    }
}

#[tokio::test]
#[covers("SERVE-02", "BACK-01")]
async fn an_answer_is_made_again_and_a_failure_that_may_pass_is_tried_again() {
    let script = ["one", "two", "three", "four"].map(ScriptItem::say);
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script));
    let served = Served::new(agent).await;
    let text = |chunks: &[Value]| {
        let deltas = chunks.iter().filter(|chunk| chunk["type"] == "text-delta");
        deltas.map(|chunk| chunk["delta"].as_str().unwrap()).collect::<String>()
    };
    let again = |mut body: Value| {
        body["trigger"] = "regenerate-message".into();
        body
    };
    let first = chat("c1", json!([says("m1", "hello")]));
    assert_eq!(text(&chunks(&served, &first).await), "one");
    assert_eq!(text(&chunks(&served, &chat("c1", json!([says("m1", "hello"), says("m2", "more")]))).await), "two");
    // Of the first message: what came after it is taken back too.
    assert_eq!(text(&chunks(&served, &again(first.clone())).await), "three");
    let (_, messages) = served.get(&served.at("c1", "/messages")).await;
    assert_eq!(messages.as_array().unwrap().len(), 2);
    assert_eq!(text(&chunks(&served, &first).await), "three", "a page that is reloaded reads the newest answer");
    assert_eq!(text(&chunks(&served, &again(first)).await), "four");

    let overloaded = ScriptItem::fail("busy", true);
    let agent = Agent::builder("assistant").model(ScriptedModel::new([overloaded, ScriptItem::say("now")]));
    let served = Served::new(agent).await;
    let body = chat("c1", json!([says("m1", "hello")]));
    assert!(kinds(&chunks(&served, &body).await).contains(&"error"));
    let tried = chunks(&served, &again(body.clone())).await;
    assert_eq!(text(&tried), "now");
    let (_, messages) = served.get(&served.at("c1", "/messages")).await;
    assert_eq!(messages.as_array().unwrap().len(), 2, "one input, one answer");
}

#[tokio::test]
#[covers("SERVE-01")]
async fn a_page_that_goes_away_cancels_its_turn_where_it_is_configured_so() {
    let (agent, model) = paced();
    let store = std::sync::Arc::new(goondan::store::MemoryStore::new());
    let served = Served::with(agent, store, |service| service.cancel_on_disconnect(true)).await;
    let url = format!("{}/v1/agents/assistant/ui", served.url);
    let body = chat("c1", json!([says("m1", "hello")])).to_string();
    let mut page = served.client.post(&url).body(body).send().await.unwrap();
    model.let_through(1);
    events(&mut page, 1).await;
    let mut other = served.client.get(served.at("c1", "/events")).send().await.unwrap();
    drop(page);
    let mut told = Vec::new();
    while !told.iter().any(|event: &crate::support::Sent| event.json()["type"] == "turn") {
        told.extend(events(&mut other, 1).await);
    }
    assert_eq!(told.last().unwrap().json()["error"]["code"], "E_TURN_CANCELLED");
}

#[tokio::test]
#[covers("SERVE-01", "SERVE-02", "ASK-01")]
async fn after_a_restart_a_message_that_is_sent_again_has_its_whole_answer() {
    let store = std::sync::Arc::new(goondan::store::MemoryStore::new());
    let calls = |tool: &str| ScriptItem::call(tool, json!({}));
    let script = || [calls("shop__look"), ScriptItem::say("done"), calls("shop__refund"), ScriptItem::say("paid")];
    let agent = || Agent::builder("assistant").model(ScriptedModel::new(script())).extension::<Shop>(json!({}));
    let bodies = [chat("c1", json!([says("m1", "look")])), chat("c2", json!([says("m1", "refund")]))];
    let served = Served::with(agent(), store.clone(), |service| service).await;
    let mut first = Vec::new();
    for body in &bodies {
        first.push(chunks(&served, body).await);
    }
    served.service.drain(std::time::Duration::ZERO).await;
    drop(served);
    let restarted = Served::with(agent(), store, |service| service).await;
    for (body, first) in bodies.iter().zip(first) {
        let again = chunks(&restarted, body).await;
        // Steps and pieces are gone, and what they have told is not.
        let told = |chunks: &[Value]| {
            let told = chunks.iter().filter(|chunk| {
                let kind = chunk["type"].as_str().unwrap();
                kind.starts_with("tool-") || kind == "text-delta" || kind == "data-question" || kind == "finish"
            });
            told.map(|chunk| (chunk["type"].clone(), chunk["delta"].clone(), chunk["output"].clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(told(&again), told(&first));
        assert_eq!(again[0]["messageId"], first[0]["messageId"]);
    }
}
