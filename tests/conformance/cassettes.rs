//! A turn with tool calls, recorded with a provider, and played from its cassette.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use conformance_extensions::tools::Passing;
use goondan::agent::TurnUpdate;
use goondan::models::wire::{Chat, Dialect};
use goondan::models::{Cassette, HttpModel, ModelConfig, providers};
use goondan::{Agent, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::Log;

/// Answers one request after the other, and returns the address of the provider.
fn serve(answers: [Vec<Value>; 2]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = BufReader::new(&stream);
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                request.read_line(&mut line).unwrap();
                if let Some(number) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = number.trim().parse().unwrap();
                }
            }
            request.read_exact(&mut vec![0; length]).unwrap();
            let events: String = answer.iter().map(|event| format!("data: {event}\n\n")).collect();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            stream.write_all(format!("{head}{events}data: [DONE]\n\n").as_bytes()).unwrap();
        }
    });
    url
}

fn chunk(delta: Value, end: Value) -> Value {
    json!({ "id": "1", "model": "m", "choices": [{ "index": 0, "delta": delta, "finish_reason": end }] })
}

fn model(url: &str) -> HttpModel<Chat> {
    let mut config = ModelConfig::new("m");
    config.base_url = Some(url.to_owned());
    config.retries.max = 1;
    config.model(&providers::chat(&Dialect::OLLAMA), Chat::new(Dialect::OLLAMA)).unwrap()
}

/// Runs a turn. Returns what a watcher is sent, what the extension logs, and what is in the conversation, without ids
/// that are new in each run.
async fn turn(model: HttpModel<Chat>) -> Vec<String> {
    let log = Log::new();
    let agent = Agent::builder("assistant").model(model).with::<Passing>(log.config()).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut turn = instance.run_stream("hello");
    let mut seen = Vec::new();
    while let Some(update) = turn.next().await {
        seen.push(match update {
            TurnUpdate::Event(event) => event.name().to_owned(),
            TurnUpdate::Message(_) => continue,
            other => format!("{other:?}"),
        });
    }
    seen.push(turn.finish().await.unwrap().text().into_owned());
    seen.extend(log.take());
    let messages = instance.messages().await.unwrap();
    seen.extend(messages.iter().map(|message| serde_json::to_string(message.content()).unwrap()));
    seen
}

async fn recorded(path: &Path) -> Vec<String> {
    // Without an id, as some servers send calls.
    let call = json!({ "index": 0, "id": "", "function": { "name": "passing__declared", "arguments": "{}" } });
    let url = serve([
        vec![
            chunk(json!({ "role": "assistant", "content": "One " }), Value::Null),
            chunk(json!({ "content": "moment." }), Value::Null),
            chunk(json!({ "tool_calls": [call] }), Value::Null),
            chunk(json!({}), json!("tool_calls")),
        ],
        vec![chunk(json!({ "content": "Declared." }), Value::Null), chunk(json!({}), json!("stop"))],
    ]);
    turn(model(&url).with_cassette(Cassette::record(path).unwrap())).await
}

#[both_linkages]
#[covers("MODEL-04")]
async fn a_turn_with_calls_is_played_as_it_was_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("turn.jsonl");
    let recorded = recorded(&path).await;
    assert!(recorded.iter().any(|line| line == "Declared."), "{recorded:#?}");
    let texts = recorded.iter().filter(|line| line.starts_with("Text")).count();
    assert_eq!(texts, 3, "{recorded:#?}");

    let cassette = Cassette::replay(&path).unwrap();
    // Nothing listens there.
    let played = turn(model("http://127.0.0.1:1/v1").with_cassette(cassette.clone())).await;
    assert_eq!(played, recorded);
    cassette.finish().unwrap();
}
