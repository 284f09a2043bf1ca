//! F-TURN: answers that are refused, too long or interrupted, in a turn with an extension.

use conformance_extensions::answers::Compacting;
use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::{ErrorCode, Value, json};
use goondan_covers::both_linkages;

use crate::linkage::Extended;
use crate::support::Log;

fn raw(response: Value) -> ScriptItem {
    ScriptItem::raw(serde_json::from_value(response).unwrap())
}

/// Starts a conversation with the extension, which logs to the returned file.
async fn start(script: impl IntoIterator<Item = ScriptItem>) -> (Chat, Log) {
    let log = Log::new();
    let chat = Chat::builder().script(script).agent(|agent| agent.with::<Compacting>(log.config()));
    (chat.start().await.unwrap(), log)
}

#[both_linkages]
async fn a_middleware_shortens_a_conversation_that_overflows_and_the_next_step_succeeds() {
    let overflow = || raw(json!({ "finishReason": "context-full" }));
    let (chat, log) = start([ScriptItem::say("fine"), overflow(), ScriptItem::say("now it fits")]).await;
    chat.say("one").await.unwrap();
    log.take();
    let turn = chat.say("two").await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps()), ("now it fits", 2));
    assert_eq!(log.take(), ["E_MODEL_CONTEXT_OVERFLOW, retryable: false", "None, the end"]);
    let lengths: Vec<_> = chat.requests().iter().map(|request| request.messages.len()).collect();
    assert_eq!(lengths, [1, 3, 1], "the model was asked again with the newest message alone");
    assert_eq!(chat.messages().await.len(), 2, "nothing of the failed answer is kept");
}

#[both_linkages]
async fn a_refusal_fails_the_turn_with_a_code_that_middlewares_see() {
    for reason in ["refusal", "content-filter"] {
        let (chat, log) = start([raw(json!({ "finishReason": reason })), ScriptItem::say("hello")]).await;
        let error = chat.say("do harm").await.unwrap_err();
        assert_eq!((error.code(), error.turn().unwrap().steps), (&ErrorCode::MODEL_REFUSED, 1));
        assert_eq!(log.take(), ["E_MODEL_REFUSED, retryable: false"]);
        assert_eq!(chat.say("hi").await.unwrap().text(), "hello", "the conversation goes on");
        assert_eq!(chat.requests().len(), 2, "the model was not asked to correct the refusal");
    }
    let (chat, log) = start([raw(json!({ "text": "I had rather not", "finishReason": "refusal" }))]).await;
    assert_eq!(chat.say("do harm").await.unwrap().text(), "I had rather not", "an answer like any other");
    assert_eq!(log.take(), ["Some(Refusal), the end"]);
}

#[both_linkages]
async fn a_pause_keeps_the_answer_and_asks_again_without_a_word_of_the_user() {
    let half = json!({ "text": "the first half", "finishReason": "pause" });
    let (chat, log) = start([raw(half), raw(json!({ "text": "the second", "finishReason": "stop" }))]).await;
    let turn = chat.say("tell me").await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps()), ("the second", 2));
    assert_eq!(log.take(), ["Some(Pause), another step", "Some(Stop), the end"]);
    let sent: Vec<_> = chat.last_request().messages.iter().map(|message| message.content.text().into_owned()).collect();
    assert_eq!(sent, ["tell me", "the first half"]);
    let kept: Vec<_> = chat.messages().await.iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(kept, ["tell me", "the first half", "the second"]);
}

#[both_linkages]
async fn a_name_that_is_too_long_for_a_tool_is_stored_cut() {
    // The extension has no tool: any name is made up.
    let name = format!("no__{}", "ö".repeat(100_000));
    let (chat, log) = start([ScriptItem::call(&name, json!({})), ScriptItem::say("sorry")]).await;
    let turn = chat.say("go").await.unwrap();
    let cut = format!("no__{}…", "ö".repeat(30));
    assert_eq!((turn.text().as_ref(), turn.tool_calls()[0].name.as_str()), ("sorry", cut.as_str()));
    let stored = goondan::json::to_string(&chat.messages().await).unwrap();
    assert!(stored.len() < 2_000 && stored.contains(&cut) && stored.contains("E_TOOL_NOT_IN_CATALOG"), "{stored}");
    log.take();
}

#[both_linkages]
async fn an_answer_of_blanks_is_no_answer() {
    let blanks = || raw(json!({ "text": " \n\u{a0}\t" }));
    let (chat, log) = start([blanks(), ScriptItem::say("hello").when("the answer is empty").unwrap()]).await;
    let turn = chat.say("hi").await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps()), ("hello", 2));
    assert_eq!(log.take(), ["None, another step", "None, the end"]);
    let (chat, _log) = start([ScriptItem::call("no__tool", json!({})), blanks()]).await;
    assert_eq!(chat.say("hi").await.unwrap().text(), "", "there is nothing to add");
    assert_eq!(chat.messages().await.len(), 3);
}
