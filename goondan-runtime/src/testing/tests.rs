//! Tests of the harness, with an extension that is written by hand.

mod notes;

use std::time::Duration;

use goondan_core::{ErrorCode, LogLevel, ToolCallStatus};
use notes::Notes;
use serde_json::json;

use super::chat::Chat;
use super::time;
use crate::memory_store::MemoryStore;
use crate::models::ScriptItem;
use crate::ports::model::ModelResponse;

#[tokio::test]
async fn a_turn_leaves_requests_messages_events_and_lines() {
    let script = [ScriptItem::call("notes__add", json!({ "text": "milk" })), ScriptItem::say("noted")];
    let chat = Chat::with::<Notes>(json!({})).script(script).agent(|agent| agent.system("be brief"));
    let chat = chat.start().await.unwrap();
    assert_eq!(chat.say("remember milk").await.unwrap().text(), "noted");

    let asked = ["user: remember milk", r#"assistant: [notes__add {"text":"milk"}]"#, r#"tool: {"count":1}"#];
    let [first, second] = &chat.requests()[..] else { panic!("{:?}", chat.requests()) };
    assert_eq!(
        (first.transcript(), second.transcript()),
        (vec![asked[0].to_owned()], asked.map(str::to_owned).to_vec())
    );
    assert_eq!((second.system.as_deref(), second.tool_names()), (Some("be brief"), vec!["notes__add", "notes__wait"]));
    assert_eq!(chat.transcript().await, [&asked[..], &["assistant: noted"]].concat());

    assert_eq!(chat.events("note.added")[0].args(), [json!("milk"), json!(1)]);
    assert_eq!(chat.events("turn.*").len(), 2);
    let line = chat.logs().into_iter().find(|line| line.extension.as_deref() == Some("notes")).unwrap();
    assert_eq!(
        (line.level, line.text.as_str(), json!(line.fields)),
        (LogLevel::Info, "added a note", json!({ "count": 1 }))
    );
    assert_eq!(line.context.keys().collect::<Vec<_>>(), ["agent", "instance", "turn", "step"]);
}

#[tokio::test]
async fn a_call_returns_what_the_model_is_sent() {
    let mut chat = Chat::with::<Notes>(json!({})).script([ScriptItem::say("mine")]).start().await.unwrap();
    let result = chat.call("notes__add", json!({ "text": "milk" })).await.unwrap();
    assert_eq!((result.status(), result.output()), (ToolCallStatus::Ok, Some(&json!({ "count": 1 }))));

    for (tool, args, code) in [
        ("notes__add", json!({ "text": 1 }), ErrorCode::TOOL_INVALID_ARGS),
        ("notes__add", json!({ "text": "" }), ErrorCode::from("E_NOTE_EMPTY")),
        ("notes__burn", json!({}), ErrorCode::TOOL_NOT_IN_CATALOG),
    ] {
        let result = chat.call(tool, args).await.unwrap();
        let error = result.error().unwrap();
        assert_eq!(error.code.as_deref(), Some(code.as_str()), "{error}");
    }
    assert_eq!(chat.say("hello").await.unwrap().text(), "mine", "the script waited");
}

#[tokio::test]
async fn a_call_without_a_result_is_an_error() {
    let mut chat = Chat::with::<Notes>(json!({})).start().await.unwrap();
    let error = chat.call("notes__add", "not an object").await.unwrap_err();
    assert!(error.message().contains("without a result of `notes__add`"), "{error}");
}

#[tokio::test]
async fn state_and_history_survive_a_restart() {
    let store = MemoryStore::new();
    let mut chat = Chat::with::<Notes>(json!({})).agent(|agent| agent.store(store.clone())).start().await.unwrap();
    chat.call("notes__add", json!({ "text": "milk" })).await.unwrap();
    chat.restart().await.unwrap();
    assert_eq!(chat.transcript().await.len(), 4);
    let result = chat.call("notes__add", json!({ "text": "bread" })).await.unwrap();
    assert_eq!(result.output(), Some(&json!({ "count": 2 })));
    assert_eq!(chat.events("note.ready").len(), 2, "what `#[init]` emits is recorded");
    assert_eq!(chat.events("extension.cleanup").len(), 1, "the harness hides its own");
}

#[tokio::test]
async fn events_from_outside_are_handled_when_emit_returns() {
    let chat = Chat::with::<Notes>(json!({})).start().await.unwrap();
    chat.emit("note.dropped", ("milk",)).await.unwrap();
    let line = chat.logs().into_iter().find(|line| line.text == "a note was dropped").unwrap();
    assert_eq!(line.fields["note"], "milk");
    assert_eq!(format!("{:?}", chat.events("note.dropped")[0]), r#"note.dropped [String("milk")]"#);
}

#[tokio::test]
async fn a_closed_chat_stays_readable() {
    let chat = Chat::with::<Notes>(json!({})).start().await.unwrap();
    chat.close().await.unwrap();
    assert_eq!(chat.say("hello").await.unwrap_err().code(), &ErrorCode::INSTANCE_CLOSED);
    assert_eq!(chat.events("extension.cleanup").len(), 1);
    assert!(chat.messages().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn fifteen_seconds_pass_at_once() {
    let began = std::time::Instant::now();
    let chat = Chat::with::<Notes>(json!({})).agent(|agent| agent.tool_timeout(Duration::from_secs(15)));
    let mut chat = chat.start().await.unwrap();
    let result = chat.call("notes__wait", json!({})).await.unwrap();
    assert_eq!(result.error().unwrap().code.as_deref(), Some("E_TOOL_TIMEOUT"));
    time::advance(Duration::from_secs(24 * 60 * 60)).await;
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn an_invalid_config_fails_the_start() {
    let error = Chat::with::<Notes>(json!({ "limit": "high" })).start().await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_CONFIG);
}

#[tokio::test]
async fn errors_do_not_name_the_harness() {
    let fails = [ScriptItem::fail("overloaded", true), ScriptItem::raw(ModelResponse::default()).repeat()];
    let chat = Chat::builder().script(fails).start().await.unwrap();
    assert_eq!(chat.say("hello").await.unwrap_err().extension(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_chats_record_only_their_own() {
    let start = || Chat::with::<Notes>(json!({})).start();
    let (one, other) = (start().await.unwrap(), start().await.unwrap());
    let (first, second) = tokio::join!(one.say("hello"), other.emit("note.dropped", ("milk",)));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!((one.events("turn.*").len(), other.events("turn.*").len()), (2, 0));
    assert_eq!((one.events("note.dropped").len(), other.events("note.dropped").len()), (0, 1));
    assert_eq!((one.requests().len(), other.requests().len()), (1, 0));
}
