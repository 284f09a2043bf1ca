//! Limits of size: an answer without an end is refused while it arrives, and is not requested again.

use goondan::Agent;
use goondan_core::{Error, ErrorCode};
use goondan_covers::covers;
use goondan_models::wire::{Anthropic, Chat, Dialect, Wire};
use goondan_models::{Cassette, HttpModel, ModelConfig, Provider, providers};
use serde_json::json;

use crate::support::{Reply, Server, ask, config};

const KB: usize = 1 << 10;
const CHAT: Dialect = Dialect::OPENAI_COMPATIBLE;

/// A model with small limits, which would repeat a failed request.
fn limited<W: Wire>(server: &Server, provider: &Provider, wire: W) -> HttpModel<W> {
    let mut config: ModelConfig = config(server.url());
    config.retries.max = 3;
    (config.answer.max_bytes, config.answer.max_parts, config.answer.max_calls) = (512 * KB, 20, 10);
    config.model(provider, wire).unwrap()
}

/// Asks a model of Anthropic for an answer, which is repeated without an end.
async fn asked(answer: &str) -> Error {
    let server = Server::start([Reply::events(answer).endless()]).await;
    let error = ask(&limited(&server, &providers::ANTHROPIC, Anthropic)).await.unwrap_err();
    assert_eq!(server.requests().len(), 1, "{error}");
    error
}

fn event(event: &serde_json::Value) -> String {
    format!("data: {event}\n\n")
}

fn block(index: usize, block: &serde_json::Value) -> String {
    event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
}

#[tokio::test]
#[covers("SIZE-01")]
async fn an_answer_without_an_end_is_refused_and_not_requested_again() {
    let text = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "word " } });
    let blocks = |block_of: fn(usize) -> serde_json::Value| -> String {
        (0..100).map(|index| block(index, &block_of(index))).collect()
    };
    for (what, answer, limit) in [
        (
            "a text",
            block(0, &json!({ "type": "text", "text": "" })) + &event(&text).repeat(6000),
            "524288 bytes (`answer.maxBytes`)",
        ),
        ("an event", format!("data: {}", "x".repeat(16 * KB)), "524288 bytes (`answer.maxBytes`)"),
        ("comments", ": still here\n\n".repeat(1000), "524288 bytes (`answer.maxBytes`)"),
        ("parts", blocks(|_| json!({ "type": "text", "text": "hm" })), "20 parts (`answer.maxParts`)"),
        (
            "calls",
            blocks(|index| json!({ "type": "tool_use", "id": format!("c{index}"), "name": "a__b", "input": {} })),
            "10 tool calls (`answer.maxCalls`)",
        ),
    ] {
        let error = asked(&answer).await;
        assert_eq!((error.code(), error.is_retryable()), (&ErrorCode::MODEL_ANSWER, false), "{what}: {error}");
        assert!(error.message().contains(limit), "{what}: {error}");
        assert!(error.suggestion().unwrap().contains("`answer` of the model"), "{what}: {error}");
    }
}

#[tokio::test]
#[covers("SIZE-01")]
async fn values_count_as_what_they_take_in_memory() {
    // 400 kB of JSON take some 30 MB as values.
    let list = format!("[{}1]", "1,".repeat(200 * KB));
    let whole =
        format!(r#"data: {{"type":"content_block_start","index":0,"content_block":{{"type":"new","a":{list}}}}}"#);
    let error = asked(&format!("{whole}\n\n")).await;
    assert!(error.message().contains("`answer.maxBytes`"), "{error}");

    let few = json!({ "type": "content_block_delta", "index": 0,
                      "delta": { "type": "citations_delta", "citation": [[], [], [], [], [], [], [], []] } });
    let start = block(0, &json!({ "type": "text", "text": "" }));
    // Each event is small, and so are all of them together.
    let events = start + &event(&few).repeat(2000);
    assert!(events.len() < 300 * KB);
    let server = Server::start([Reply::events(&events)]).await;
    let error = ask(&limited(&server, &providers::ANTHROPIC, Anthropic)).await.unwrap_err();
    assert!(error.message().contains("`answer.maxBytes`"), "{error}");
}

#[tokio::test]
#[covers("SIZE-01")]
async fn what_a_cassette_records_is_limited_in_the_same_way() {
    let directory = tempfile::tempdir().unwrap();
    for (index, repeated) in [": still here\n\n", "data:\n\n", "data: {}\n\n"].into_iter().enumerate() {
        let tape = directory.path().join(format!("{index}.jsonl"));
        let server = Server::start([Reply::events(repeated).endless()]).await;
        let model = limited(&server, &providers::chat(&CHAT), Chat::new(CHAT));
        let model = model.with_cassette(Cassette::record(&tape).unwrap());
        let error = ask(&model).await.unwrap_err();
        assert!(error.message().contains("`answer.maxBytes`"), "{repeated:?}: {error}");
        let recorded = std::fs::metadata(&tape).unwrap().len();
        assert!(recorded < 512 << 10, "{repeated:?}: {recorded} bytes");
    }
}

#[tokio::test]
async fn the_conversation_goes_on_without_what_has_arrived() {
    let text = |text: &str| block(0, &json!({ "type": "text", "text": text }));
    let stop = event(&json!({ "type": "message_stop" }));
    let replies = [Reply::events(&text(&"a".repeat(KB))).endless(), Reply::events(&(text("fine") + &stop))];
    let server = Server::start(replies).await;
    let mut config = config(server.url());
    (config.answer.max_bytes, config.answer.max_parts) = (100 * KB, 1000);
    let model = config.model(&providers::ANTHROPIC, Anthropic).unwrap();
    let agent = Agent::builder("assistant").model(model).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    assert_eq!(*instance.run("hi").await.unwrap_err().code(), ErrorCode::MODEL_ANSWER);
    assert_eq!(instance.run("and now?").await.unwrap().text(), "fine");
    let messages = instance.messages().await.unwrap();
    assert!(messages.iter().all(|message| message.text().len() < 100), "{messages:?}");
}

#[tokio::test]
async fn an_answer_within_the_limits_is_an_answer() {
    let texts: String =
        (0..20).map(|index| block(index, &json!({ "type": "text", "text": "a".repeat(20 * KB) }))).collect();
    let server = Server::start([Reply::events(&(texts + &event(&json!({ "type": "message_stop" }))))]).await;
    let answer = ask(&limited(&server, &providers::ANTHROPIC, Anthropic)).await.unwrap();
    assert_eq!((answer.content.len(), answer.to_text().len()), (20, 400 * KB + 19));
}

#[tokio::test]
#[covers("SIZE-01")]
async fn long_lists_about_an_answer_are_not_compared_item_by_item() {
    // Compared with each other, they would take minutes.
    let list = |from: usize| (from..from + 100_000).collect::<Vec<_>>();
    let said = |more: serde_json::Value, numbers: Vec<usize>| {
        event(&json!({ "choices": [{ "index": 0, "delta": more }], "citations": numbers }))
    };
    let other = list(200_000);
    let events = said(json!({ "content": "fine" }), list(0))
        + &said(json!({}), list(0))
        + &said(json!({}), other)
        + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = Server::start([Reply::events(&events)]).await;
    let model = config(server.url()).model(&providers::chat(&CHAT), Chat::new(CHAT)).unwrap();
    let answer = ask(&model).await.unwrap();
    let about = json!(answer.content[0])["provider"]["rest"]["aboutAnswer"]["citations"].take();
    assert_eq!(about.as_array().unwrap().len(), 200_000);
}
