//! BACK-01: conversations with the ready-made extensions are taken back.

use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::{ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::WithPlugin;

/// A conversation whose model calls a tool in each turn, before it answers.
async fn chat(extension: &'static str, config: Value) -> Chat {
    let call = |number: usize| ScriptItem::call("a__b", json!({ "number": number }));
    let script = (0..9).flat_map(|number| [call(number), ScriptItem::say(format!("answer {number}"))]);
    Chat::builder().agent(|agent| agent.plugin(extension, extension, config)).script(script).start().await.unwrap()
}

async fn turns(chat: &Chat, inputs: &[&str]) -> Vec<goondan::name::TurnId> {
    let mut turns = Vec::new();
    for input in inputs {
        turns.push(chat.say(*input).await.unwrap().turn_id().clone());
    }
    turns
}

/// Asserts that each call of the next request has its result, and each result its call.
async fn goes_on(chat: &Chat) {
    chat.say("and now?").await.unwrap();
    let transcript = chat.last_request().transcript();
    let calls = transcript.iter().filter(|message| message.contains("[a__b")).count();
    let results = transcript.iter().filter(|message| message.starts_with("tool: ")).count();
    assert_eq!(calls, results, "{transcript:?}");
}

#[both_linkages]
#[covers("BACK-01", "PAIR-01")]
async fn what_a_window_has_dropped_stays_dropped() {
    let chat = chat("message-window", json!({ "maxMessages": 8 })).await;
    let all = turns(&chat, &["one", "two", "three", "four"]).await;
    let error = chat.instance().rewind(&all[0]).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::REWIND);
    let earliest = error.details()["earliest"].as_str().unwrap().to_owned();
    assert_eq!(earliest, all[1].as_str());
    chat.instance().rewind(&all[2]).await.unwrap();
    let left = chat.transcript().await;
    assert!(
        left.last().unwrap().contains("answer 2") && !left.iter().any(|message| message.contains("one")),
        "{left:?}"
    );
    goes_on(&chat).await;
}

#[both_linkages]
#[covers("BACK-01", "PAIR-01")]
async fn a_summary_stays_and_is_a_limit() {
    for place in ["first", "end"] {
        let config = json!({ "maxMessages": 9, "retainLastMessages": 4, "place": place });
        let chat = chat("message-compaction", config).await;
        let all = turns(&chat, &["one", "two", "three", "four"]).await;
        let summaries =
            |transcript: &[String]| transcript.iter().filter(|m| m.contains("[message-compaction]")).count();
        assert_eq!(summaries(&chat.transcript().await), 1);
        let error = chat.instance().rewind(&all[0]).await.unwrap_err();
        let earliest = error.details()["earliest"].as_str().unwrap().to_owned();
        chat.instance().rewind(&earliest.as_str().into()).await.unwrap();
        let left = chat.transcript().await;
        assert_eq!(summaries(&left), 1, "{left:?}");
        assert!(!left.iter().any(|message| message.contains("four")), "{left:?}");
        goes_on(&chat).await;
    }
}
