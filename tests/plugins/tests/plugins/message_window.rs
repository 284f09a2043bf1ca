//! PATTERN-WINDOW: the messages that the window removes and keeps.

use goondan::model::ScriptItem;
use goondan::testing::{Chat, ChatBuilder};
use goondan::{Error, ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::WithPlugin;

fn builder(config: Value) -> ChatBuilder {
    Chat::builder().agent(|agent| agent.plugin("message-window", "message-window", config))
}

/// Starts a chat with a model that numbers its answers.
async fn chat(config: Value) -> Chat {
    let answers = (1..=9).map(|number| ScriptItem::say(format!("answer {number}")));
    builder(config).script(answers).start().await.unwrap()
}

#[both_linkages]
#[covers("PATTERN-WINDOW-01", "PATTERN-WINDOW-02")]
async fn the_oldest_messages_go_before_the_model_is_asked() {
    let chat = chat(json!({ "maxMessages": 3 })).await;
    for input in ["one", "two", "three"] {
        chat.say(input).await.unwrap();
    }
    // Five messages are too many, and the newest half of three stays.
    assert_eq!(chat.last_request().transcript(), ["assistant: answer 2", "user: three"]);
    // The answer is appended after the window was applied.
    assert_eq!(chat.transcript().await, ["assistant: answer 2", "user: three", "assistant: answer 3"]);
}

#[both_linkages]
#[covers("PATTERN-WINDOW-03")]
async fn a_conversation_that_fits_is_left_alone() {
    let chat = chat(json!({ "maxMessages": 3 })).await;
    chat.say("one").await.unwrap();
    let before = chat.messages().await;
    chat.say("two").await.unwrap();
    assert_eq!(chat.last_request().transcript(), ["user: one", "assistant: answer 1", "user: two"]);
    assert_eq!(chat.messages().await[..2], before, "the same messages, in the same places");
}

#[both_linkages]
async fn a_window_of_one_holds_the_input() {
    let chat = chat(json!({ "maxMessages": 1 })).await;
    for input in ["one", "two"] {
        chat.say(input).await.unwrap();
        assert_eq!(chat.last_request().transcript(), [format!("user: {input}")]);
    }
}

#[both_linkages]
async fn the_window_stays_after_a_restart() {
    let mut chat = chat(json!({ "maxMessages": 2 })).await;
    chat.say("one").await.unwrap();
    chat.restart().await.unwrap();
    chat.say("two").await.unwrap();
    assert_eq!(chat.last_request().transcript(), ["user: two"]);
}

#[both_linkages]
#[covers("CACHE-01")]
async fn once_messages_went_none_goes_until_there_are_too_many_again() {
    let chat = builder(json!({ "maxMessages": 20 })).start().await.unwrap();
    let mut lengths = Vec::new();
    for _ in 0..25 {
        chat.say("hello").await.unwrap();
        lengths.push(chat.last_request().messages.len());
    }
    let cuts = lengths.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert_eq!((cuts, lengths.iter().max(), lengths[10]), (3, Some(&20), 10), "{lengths:?}");
}

#[both_linkages]
async fn a_tool_result_goes_with_its_call() {
    let calls = [("no__a", json!({})), ("no__b", json!({}))];
    let script = [ScriptItem::calls(calls), ScriptItem::say("neither").repeat()];
    let chat = builder(json!({ "maxMessages": 5 })).script(script).start().await.unwrap();
    chat.say("use both").await.unwrap();
    assert_eq!(chat.messages().await.len(), 5);
    chat.say("again").await.unwrap();
    // Of six messages, three stay: the input, the message with the calls and one result are removed, and so is the other
    // result.
    assert_eq!(chat.last_request().transcript(), ["assistant: neither", "user: again"]);
    assert!(!chat.logs().iter().any(|line| line.text.contains("kept from the model")), "{:?}", chat.logs());
}

#[both_linkages]
async fn without_a_config_a_turn_starts_with_forty_messages_at_most() {
    let chat = builder(Value::Null).start().await.unwrap();
    for (turns, messages) in [(20, 39), (1, 20)] {
        for _ in 0..turns {
            chat.say("hello").await.unwrap();
        }
        assert_eq!(chat.last_request().messages.len(), messages);
    }
}

#[both_linkages]
async fn a_config_that_makes_no_sense_is_refused() {
    for (config, path) in [
        (json!({ "maxMessages": 0 }), "maxMessages"),
        (json!({ "maxMessages": "many" }), "maxMessages"),
        (json!({ "max_messages": 5 }), "max_messages"),
    ] {
        let error: Error = builder(config).start().await.unwrap_err();
        assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_CONFIG, "message-window"));
        assert!(error.message().contains(path), "{error}");
    }
}
