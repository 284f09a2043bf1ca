//! The JSON of updates and results: written, read, and of later versions.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use goondan::conversation::{Message, MessageEvent};
use goondan::event::{AgentEvent, RuntimeEvent};
use goondan::middleware::FinishReason;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::wire::{Reported, TurnEnd, Update, Updates};
use goondan::{Agent, Error, ErrorCode, Value, json};
use goondan_covers::covers;

#[test]
fn each_update_has_its_json() {
    let turn_id = "t1";
    for written in [
        json!({ "type": "text", "turnId": turn_id, "stepIndex": 0, "part": 1, "text": "Hel" }),
        json!({ "type": "reasoning", "turnId": turn_id, "stepIndex": 0, "part": 0, "text": "hm" }),
        json!({
            "type": "tool-call", "turnId": turn_id, "stepIndex": 0, "part": 0, "toolCallId": "c1",
            "toolName": "notes__add",
        }),
        json!({ "type": "arguments", "turnId": turn_id, "stepIndex": 0, "part": 0, "json": "{\"a\":" }),
        json!({ "type": "restart", "turnId": turn_id, "stepIndex": 0, "reason": "busy", "wait": 1500 }),
        json!({ "type": "restart", "turnId": turn_id, "stepIndex": 0, "reason": "again" }),
        json!({
            "type": "progress", "turnId": turn_id, "toolCallId": "c1", "done": 1.5, "total": null, "text": "half",
        }),
        json!({ "type": "message", "turnId": turn_id, "event": MessageEvent::append(Message::user("hello")) }),
        json!({
            "type": "child", "turnId": turn_id, "toolCallId": "c1", "agentName": "clerk", "instanceKey": "task:1",
            "update": { "type": "text", "turnId": "t2", "stepIndex": 0, "part": 0, "text": "h" },
        }),
        json!({
            "type": "turn", "turnId": turn_id, "finishReason": "text_response", "response": "hi", "steps": 1,
            "toolCalls": [],
        }),
    ] {
        let update: Update = serde_json::from_value(written.clone()).unwrap();
        assert_ne!(update, Update::Other, "{written}");
        assert_eq!(serde_json::to_string(&update).unwrap(), written.to_string(), "also the order of the members");
    }
}

#[test]
fn what_a_later_version_adds_is_read() {
    let later = |line: Value| serde_json::from_value::<Update>(line).unwrap();
    assert_eq!(later(json!({ "type": "later", "turnId": "t1" })), Update::Other);
    let event = json!({ "type": "turn.later", "turnId": "t1" });
    let update = later(json!({ "type": "event", "event": event }));
    assert_eq!(update, Update::Event { event: Reported::Unknown(event) });
    let text = json!({ "type": "text", "turnId": "t1", "stepIndex": 0, "part": 0, "text": "a", "later": 1 });
    assert!(matches!(later(text), Update::Text { .. }));
}

#[test]
fn an_error_is_the_end_of_a_turn() {
    let error = Error::new(ErrorCode::MODEL_AUTH, "no key").suggest("set one");
    let end = json!(TurnEnd::of(&Err(error)));
    assert_eq!((&end["turnId"], &end["finishReason"], &end["steps"]), (&Value::Null, &json!("error"), &json!(0)));
    let (code, suggestion) = (&end["error"]["code"], &end["error"]["suggestion"]);
    assert_eq!((code, suggestion), (&json!("E_MODEL_AUTH"), &json!("set one")));
}

#[tokio::test]
#[covers("OBSERVE-01")]
async fn the_stream_of_a_turn_is_written_and_read() {
    let model = ScriptedModel::new([ScriptItem::call("no__tool", json!({ "a": 1 })), ScriptItem::say("hi")]);
    let agent = Agent::builder("assistant").model(model).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let mut turn = instance.run_stream(AgentEvent::input("hello").with_id("e1"));
    let (mut updates, mut written) = (Updates::default(), Vec::new());
    while let Some(update) = turn.next().await {
        written.extend(updates.next(update));
    }
    written.push(Update::Turn(Box::new(TurnEnd::of(&turn.finish().await))));
    let lines: Vec<_> = written.iter().map(|update| serde_json::to_string(update).unwrap()).collect();
    let read: Vec<Update> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read.len(), written.len());
    let (mut messages, mut text, mut ids) = (Vec::new(), String::new(), Vec::new());
    for update in &read {
        match update {
            Update::Message { turn_id, event } => {
                ids.push(turn_id.clone());
                messages.push(event.appended().unwrap().clone());
            }
            Update::Text { turn_id, text: piece, .. } => {
                ids.push(turn_id.clone());
                text += piece;
            }
            Update::Event { event: Reported::Known(event) } => {
                ids.push(event.scope().turn_id.clone());
                if let RuntimeEvent::TurnCompleted { duration, .. } = &**event {
                    assert!(*duration > Duration::ZERO);
                }
            }
            _ => {}
        }
    }
    assert_eq!(messages, instance.messages().await.unwrap());
    let Some(Update::Turn(end)) = read.last() else { panic!("{read:?}") };
    assert_eq!((end.response.as_deref(), end.finish_reason), (Some(&*text), FinishReason::TextResponse));
    assert!(ids.iter().all(|id| Some(id) == end.turn_id.as_ref()));
    assert_eq!(end.tool_calls.len(), 1);
}
