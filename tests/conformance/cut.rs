//! CUT-01: answers that the limit of tokens cuts off, and turns without a usable answer, as an extension sees them.

use conformance_extensions::cut::Cut;
use goondan::conversation::{Part, Role};
use goondan::middleware::FinishReason;
use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::{ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::Log;

fn raw(response: Value) -> ScriptItem {
    ScriptItem::raw(serde_json::from_value(response).unwrap())
}

/// An answer that was cut off.
fn cut(mut response: Value) -> ScriptItem {
    response["finishReason"] = "length".into();
    raw(response)
}

/// A call whose arguments were cut off.
fn half() -> Value {
    json!({ "id": "half", "name": "no__tool", "args": "{\"text\": \"Once upon" })
}

/// Starts a conversation with the extension, which logs to the returned file.
async fn start(script: impl IntoIterator<Item = ScriptItem>) -> (Chat, Log) {
    let log = Log::new();
    let chat = Chat::builder().script(script).agent(|agent| agent.with::<Cut>(log.config()));
    (chat.start().await.unwrap(), log)
}

#[both_linkages]
#[covers("CUT-01")]
async fn what_was_said_before_the_limit_of_tokens_is_the_answer() {
    let answers = [json!({ "text": "Once upon" }), json!({ "text": "Once upon", "toolCalls": [half()] })];
    for answer in answers {
        let (chat, log) = start([cut(answer).reasoning("a fairy tale"), ScriptItem::say("fine")]).await;
        let turn = chat.say("tell me").await.unwrap();
        assert_eq!((turn.text().as_ref(), turn.finish_reason()), ("Once upon", FinishReason::Length));
        assert_eq!((turn.steps(), turn.tool_calls().len(), chat.requests().len()), (1, 0, 1), "nothing is asked again");
        assert_eq!(log.take(), ["Length: Once upon"]);
        let messages = chat.messages().await;
        let [_, said] = &messages[..] else { panic!("{messages:?}") };
        let [Part::Reasoning(reasoning), Part::Text(_)] = said.content().parts() else { panic!("{said:?}") };
        assert_eq!(reasoning.text(), "a fairy tale");
        assert_eq!(chat.say("and then?").await.unwrap().finish_reason(), FinishReason::TextResponse);
    }
}

#[both_linkages]
#[covers("CUT-01")]
async fn whole_calls_run_and_half_a_call_does_not() {
    let whole = json!({ "id": "whole", "name": "no__tool", "args": {} });
    let (chat, log) = start([cut(json!({ "toolCalls": [whole, half()] })), ScriptItem::say("done")]).await;
    let turn = chat.say("do it").await.unwrap();
    let calls: Vec<_> = turn.tool_calls().iter().map(|call| call.id.as_str()).collect();
    assert_eq!((calls, turn.steps(), turn.finish_reason()), (vec!["whole"], 2, FinishReason::TextResponse));
    assert_eq!(log.take(), ["TextResponse: done"]);
}

#[both_linkages]
#[covers("CUT-01")]
async fn a_limit_of_tokens_that_leaves_no_answer_fails_the_turn_and_says_which_option_to_raise() {
    let thought = cut(json!({})).reasoning("hm");
    let call = cut(json!({ "toolCalls": [half()] }));
    for (answer, place) in [(thought, "while it reasoned"), (call, "in the middle of a tool call")] {
        let (chat, log) = start([answer, ScriptItem::say("fine")]).await;
        let error = chat.say("tell me").await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::MODEL_LENGTH);
        assert!(error.message().contains(place) && !error.is_retryable(), "{error}");
        assert!(error.suggestion().unwrap().contains("`maxOutputTokens`"), "{error:?}");
        assert_eq!(log.take(), ["E_MODEL_LENGTH"]);
        assert_eq!(chat.say("in short").await.unwrap().text(), "fine", "the conversation goes on");
        assert_eq!(chat.requests().len(), 2, "nothing is asked again under the same limit");
    }
    // After the result of a tool, nothing is otherwise an answer.
    let (chat, _log) = start([ScriptItem::call("no__tool", json!({})), cut(json!({}))]).await;
    assert_eq!(*chat.say("do it").await.unwrap_err().code(), ErrorCode::MODEL_LENGTH);
}

#[both_linkages]
#[covers("CUT-01")]
async fn a_turn_without_a_usable_answer_fails_and_puts_no_words_into_the_models_mouth() {
    let (chat, log) = start([raw(json!({})), raw(json!({})), raw(json!({})), ScriptItem::say("fine")]).await;
    let error = chat.say("hello").await.unwrap_err();
    assert_eq!((error.code(), error.turn().unwrap().steps), (&ErrorCode::MODEL_UNUSABLE, 3));
    assert!(error.message().contains("the answer is empty"), "{error}");
    assert_eq!(log.take(), ["E_MODEL_UNUSABLE"]);
    assert!(chat.messages().await.iter().all(|message| message.role() != Role::Assistant));
    assert_eq!(chat.say("hello?").await.unwrap().text(), "fine", "the conversation goes on");
}
