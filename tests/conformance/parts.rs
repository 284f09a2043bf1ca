//! Parts of messages: what models think, files, and what only a provider interprets.

use std::num::NonZeroU32;

use conformance_extensions::parts::Handling;
use goondan::agent::TurnUpdate;
use goondan::conversation::{FilePart, Part, TextPart};
use goondan::event::AgentEvent;
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::{Agent, BoxFuture, Error, ErrorCode, Result, Value, json};
use goondan_covers::{both_linkages, interruptible};

use crate::linkage::Extended;
use crate::support::agent;

fn thinking_content() -> Value {
    let provider = json!({ "api": "scripted", "model": "m1", "rest": { "signature": "c2ln", "later": [1, 2.5] } });
    json!([
        { "type": "reasoning", "text": "they greet me", "provider": provider },
        { "type": "text", "text": "hello" },
        { "type": "provider", "provider": { "api": "scripted", "model": "m1", "rest": { "type": "search" } } },
        { "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo=", "name": "dot.png" },
    ])
}

fn thinking() -> ScriptItem {
    ScriptItem::content(serde_json::from_value::<Vec<Part>>(thinking_content()).unwrap())
}

/// Returns the assistant's message in the second request.
#[interruptible]
async fn second_request(mode: &str) -> (Result<String>, Value) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("requests.jsonl");
    let model = ScriptedModel::new([thinking(), ScriptItem::say("again")]).record(&path);
    let agent = Agent::builder("assistant").model(model).with::<Handling>(json!({ "mode": mode }));
    let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().unwrap();
    let turn = agent.instance("test").await.unwrap().run("hi").await.unwrap();
    assert_eq!(turn.text(), "hello", "reasoning, files and blocks are no text");
    // From the disk.
    agent.close().await.unwrap();
    let outcome = agent.instance("test").await.unwrap().run("hi again").await;
    let requests = std::fs::read_to_string(&path).unwrap();
    let last: Value = serde_json::from_str(requests.lines().last().unwrap()).unwrap();
    let answer = last["messages"].as_array().unwrap().iter().find(|message| message["role"] == "assistant");
    (outcome.map(|turn| turn.text().into_owned()), answer.cloned().unwrap_or_default())
}

#[both_linkages]
async fn what_a_model_thought_returns_to_it_unchanged_or_not_at_all() {
    let written: Vec<Value> = serde_json::from_value(thinking_content()).unwrap();
    let (outcome, answer) = second_request("copy").await;
    assert_eq!((outcome.unwrap().as_str(), &answer["content"]), ("again", &json!(written)));
    let (outcome, answer) = second_request("drop").await;
    assert_eq!((outcome.unwrap().as_str(), &answer["content"]), ("again", &json!(written[1..])));
    for mode in ["make", "change"] {
        let (outcome, _) = second_request(mode).await;
        assert_eq!(outcome.unwrap_err().code(), &ErrorCode::MESSAGE_PART, "{mode}");
    }
}

#[tokio::test]
async fn a_stream_has_every_piece_in_order() {
    let pieces = NonZeroU32::new(10_000).unwrap();
    let text: String = (0..12_000).map(|number| char::from_u32(0xAC00 + number % 9000).unwrap()).collect();
    let args = json!({ "text": text });
    let script = [
        ScriptItem::call("no__tool", args.clone()).reasoning(text.clone()).pieces(pieces),
        ScriptItem::say(text.clone()).pieces(pieces),
    ];
    let agent = agent(script).build().unwrap();
    let mut turn = agent.instance("test").await.unwrap().run_stream("hello");
    let (mut thought, mut said, mut json, mut count) = (String::new(), String::new(), String::new(), 0);
    let mut called = None;
    while let Some(update) = turn.next().await {
        match update {
            TurnUpdate::Reasoning { step: 0, part: 0, text } => {
                assert!(called.is_none());
                thought += &text;
            }
            TurnUpdate::ToolCall { step: 0, part: 1, id, name } => called = Some((id, name)),
            TurnUpdate::Arguments { step: 0, part: 1, json: piece } => json += &piece,
            TurnUpdate::Text { step: 1, part: 0, text } => said += &text,
            TurnUpdate::Event(_) | TurnUpdate::Message(_) | TurnUpdate::Output { .. } => continue,
            other => panic!("{other:?}"),
        }
        count += 1;
    }
    assert_eq!((&thought, &said), (&text, &text));
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), args);
    assert_eq!(count, 3 * 10_000 + 1);
    let turn = turn.finish().await.unwrap();
    assert_eq!(turn.text(), text);
    assert_eq!(called.unwrap(), (turn.tool_calls()[0].id.clone(), "no__tool".to_owned()));
}

/// A model that says something, and then ends as its variant says.
enum Interrupted {
    Hangs,
    Fails,
    StartsAnew,
}

impl Model for Interrupted {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, deltas: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        deltas.send(ModelDelta::Reasoning { part: 0, text: "hm" });
        deltas.send(ModelDelta::Text { part: 1, text: "half an " });
        deltas.send(ModelDelta::Text { part: 1, text: "answer" });
        match self {
            Self::Hangs => Box::pin(std::future::pending()),
            Self::Fails => Box::pin(async { Err(Error::msg("the connection was cut")) }),
            Self::StartsAnew => {
                deltas.send(ModelDelta::Restart { reason: "the connection was cut", wait: None });
                Box::pin(std::future::pending())
            }
        }
    }
}

#[tokio::test]
async fn what_a_model_said_of_an_answer_is_kept_as_partial() {
    for (model, kept) in [(Interrupted::Hangs, true), (Interrupted::Fails, true), (Interrupted::StartsAnew, false)] {
        let dir = tempfile::tempdir().unwrap();
        let agent = Agent::builder("assistant").model(model).store(FileStore::open(dir.path()).unwrap());
        let agent = agent.build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        let mut turn = instance.run_stream("hello");
        let mut restarted = false;
        while let Some(update) = turn.next().await {
            restarted |= matches!(update, TurnUpdate::Restart { .. });
            if matches!(&update, TurnUpdate::Text { text, .. } if kept && text == "answer") || restarted {
                break;
            }
        }
        // In the middle of the answer, unless the turn has failed by itself.
        turn.cancel().await.unwrap();
        agent.close().await.unwrap();
        let instance = agent.instance("test").await.unwrap();
        let messages = instance.messages().await.unwrap();
        let texts: Vec<_> = messages.iter().map(|message| message.text().into_owned()).collect();
        if kept {
            assert_eq!(texts, ["hello", "half an answer"]);
            assert_eq!(messages[1].metadata()["partial"], true);
            assert_eq!(messages[1].content().parts(), [Part::Text(TextPart::new("half an answer"))]);
        } else {
            assert_eq!(texts, ["hello"]);
        }
        agent.close().await.unwrap();
    }
}

#[tokio::test]
async fn an_input_has_text_and_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("requests.jsonl");
    let model = ScriptedModel::new([ScriptItem::say("a dot").when("^What is this").unwrap()]).record(&path);
    let agent = Agent::builder("assistant").model(model).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let text = Part::Text(TextPart::new("What is this?"));
    let png = b"\x89PNG\r\n\x1a\n";
    let file = |content: &[u8]| Part::from(FilePart::from_bytes("image/png", content).named("dot.png"));
    let event = AgentEvent::content([text.clone(), file(png)]);
    assert_eq!(instance.run(event).await.unwrap().text(), "a dot");
    let request: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let content = json!([
        { "type": "text", "text": "What is this?" },
        { "type": "file", "mediaType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo=", "name": "dot.png" },
    ]);
    assert_eq!(request["messages"], json!([{ "role": "user", "content": content }]));

    let thought = serde_json::from_value(json!({ "type": "reasoning", "text": "mine" })).unwrap();
    let large = file(&[&png[..], &vec![7; 6 << 20]].concat());
    for (part, code) in [(large, ErrorCode::INPUT_FILE), (thought, ErrorCode::MESSAGE_PART)] {
        let error = instance.run(AgentEvent::content([text.clone(), part])).await.unwrap_err();
        assert_eq!(error.code(), &code);
    }
    assert_eq!(instance.messages().await.unwrap().len(), 2, "no turn began");
}
