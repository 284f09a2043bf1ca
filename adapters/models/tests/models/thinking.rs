//! Requests to Anthropic in the middle of a turn whose answers are not all signed.

use goondan_models::providers;
use goondan_models::wire::Anthropic;
use goondan_runtime::DeltaSink;
use serde_json::{Value, json};

use crate::support::{self, Asked, Reply, Server, config, data, result, text, weather};

const ANSWER: &str = "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"message_stop\"}\n\n";

/// Returns an answer with a call, after reasoning that `by` has signed.
fn answer(by: Option<&str>, id: &str) -> Value {
    let call = support::call(id, json!({}), None);
    let signed = |model| {
        let provider = data("anthropic", model, json!({ "signature": format!("by {model} for {id}") }));
        json!({ "type": "reasoning", "text": "hm", "provider": provider })
    };
    json!({ "role": "assistant", "content": by.map(signed).into_iter().chain([call]).collect::<Vec<_>>() })
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// Sends one request, and returns its body.
async fn sent(messages: Value, reasoning: Value) -> Value {
    let asked = Asked { tools: vec![weather()], ..Asked::messages(messages) };
    sent_with(asked, json!({ "reasoning": reasoning, "cache": "off" })).await
}

async fn sent_with(asked: Asked, options: Value) -> Value {
    let server = Server::start([Reply::events(ANSWER)]).await;
    let mut config = config(server.url());
    // A refused request would be repeated.
    config.retries.max = 4;
    let model = config.model(&providers::ANTHROPIC, Anthropic).unwrap();
    asked.options(options).of(&model, DeltaSink::none()).await.unwrap();
    let mut requests = server.requests();
    assert_eq!(requests.len(), 1);
    requests.remove(0).body
}

/// Returns how a request wants the model to reason, and the signatures in it.
fn reasoning_of(body: &Value) -> (&str, Vec<&str>) {
    let messages = body["messages"].as_array().unwrap();
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
    let signatures = blocks.filter_map(|block| block["signature"].as_str()).collect();
    (body["thinking"]["type"].as_str().unwrap(), signatures)
}

/// Anthropic's rule for the running turn, of which all its tool calls and results are a part. Its later answers need no
/// reasoning: models that do not reason between calls reason in the first one only.
#[tokio::test]
async fn a_turn_either_begins_with_reasoning_or_has_none() {
    let budget = json!({ "budgetTokens": 2048 });
    for (case, answers, reasoning, expected) in [
        ("all are signed", [Some("m"), Some("m")], &budget, ("enabled", vec!["by m for 1", "by m for 2"])),
        (
            "the model reasoned once, or another one took part later",
            [Some("m"), None],
            &budget,
            ("enabled", vec!["by m for 1"]),
        ),
        ("the reasoning of the first answer was dropped", [None, Some("m")], &budget, ("disabled", vec![])),
        ("another model began the turn", [Some("other"), Some("m")], &budget, ("disabled", vec![])),
        ("reasoning is turned off", [Some("m"), Some("m")], &json!({ "effort": "none" }), ("disabled", vec![])),
        (
            "a model that reasons as it sees fit needs no beginning",
            [None, Some("m")],
            &json!({ "effort": "high" }),
            ("adaptive", vec!["by m for 2"]),
        ),
    ] {
        let [first, second] = answers;
        let results = ["1", "2"].map(|id| result(id, text("done")));
        let messages = json!([user("a"), answer(first, "1"), results[0], answer(second, "2"), results[1]]);
        assert_eq!(reasoning_of(&sent(messages, reasoning.clone()).await), expected, "{case}");
    }
}

/// Anthropic wants the reasoning of turns before if there is any.
#[tokio::test]
async fn turns_before_need_no_reasoning() {
    let done = json!({ "role": "assistant", "content": "done" });
    let messages = json!([
        user("a"),
        answer(Some("m"), "1"),
        result("1", text("")),
        done,
        user("b"),
        answer(None, "2"),
        result("2", text("")),
        done,
        user("c"),
        answer(Some("m"), "3"),
        result("3", text("")),
    ]);
    let body = sent(messages, json!({ "budgetTokens": 2048 })).await;
    assert_eq!(reasoning_of(&body), ("enabled", vec!["by m for 1", "by m for 3"]));
}

/// An answer that was reasoning alone leaves no message without content behind.
#[tokio::test]
async fn an_answer_of_reasoning_alone_goes_with_it() {
    let mut alone = answer(Some("m"), "2");
    alone["content"].as_array_mut().unwrap().truncate(1);
    let messages = json!([user("a"), answer(None, "1"), result("1", text("")), alone, user("b")]);
    let body = sent(messages, json!({ "effort": "none" })).await;
    let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
}

/// With a budget, Anthropic refuses to reason before a call that is forced.
#[tokio::test]
async fn a_forced_call_begins_without_reasoning() {
    let budget = json!({ "budgetTokens": 2048 });
    for (choice, reasoning, expected) in [
        (json!("auto"), &budget, ("enabled", vec!["by m for 1"])),
        (json!("none"), &budget, ("enabled", vec!["by m for 1"])),
        (json!("required"), &budget, ("disabled", vec![])),
        (json!({ "tool": "weather__today" }), &budget, ("disabled", vec![])),
        (json!("required"), &json!({ "effort": "high" }), ("adaptive", vec!["by m for 1"])),
    ] {
        let messages = json!([user("a"), answer(Some("m"), "1"), result("1", text("done"))]);
        let asked = Asked { tools: vec![weather()], ..Asked::messages(messages) };
        let body = sent_with(asked, json!({ "reasoning": reasoning, "toolChoice": choice, "cache": "off" })).await;
        assert_eq!(reasoning_of(&body), expected, "{choice}");
    }
}
