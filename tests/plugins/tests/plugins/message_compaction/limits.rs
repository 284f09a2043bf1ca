//! `candidates: all`: the oldest messages are replaced when the conversation exceeds a limit.

use goondan::model::ScriptItem;
use goondan::{ErrorCode, json};
use goondan_covers::{both_linkages, covers};

use super::support::{builder, chat, is_paired, is_summary, lines, say_all};

fn inputs(count: usize) -> impl Iterator<Item = String> {
    (1..=count).map(|number| format!("input {number}"))
}

#[both_linkages]
#[covers("PATTERN-COMPACT-01", "PATTERN-COMPACT-06", "COMPACT-01")]
async fn more_messages_than_the_limit_are_reduced_to_its_share() {
    let chat = chat(json!({ "maxMessages": 8, "retainLastMessages": 2 })).await;
    say_all(&chat, inputs(4)).await;
    assert_eq!(lines(&chat, is_summary).len(), 0, "seven messages with the input");
    chat.say("input 5").await.unwrap();
    let summary = "system: [message-compaction] 6 earlier messages (27 characters) were removed without a summary.";
    let expected = [summary, "user: input 4", "assistant: ok", "user: input 5"];
    assert_eq!(chat.last_request().transcript(), expected);
}

#[both_linkages]
#[covers("PATTERN-COMPACT-06")]
async fn more_characters_than_the_limit_are_reduced_to_its_share() {
    let chat = chat(json!({ "maxCharacters": 100, "retainLastMessages": 1 })).await;
    let long = "x".repeat(30);
    say_all(&chat, [&long, &long, &long]).await;
    assert_eq!(lines(&chat, is_summary).len(), 0, "94 characters");
    chat.say("go").await.unwrap();
    assert_eq!(lines(&chat, is_summary).len(), 0, "98 characters");
    chat.say(long.as_str()).await.unwrap();
    let left = lines(&chat, |line| !is_summary(line));
    assert_eq!(left, ["assistant: ok", "user: go", "assistant: ok", &format!("user: {long}")]);
}

#[both_linkages]
async fn without_a_config_there_are_forty_messages() {
    let chat = chat(json!({})).await;
    say_all(&chat, inputs(20)).await;
    assert_eq!(chat.last_request().messages.len(), 39);
    chat.say("input 21").await.unwrap();
    // Half of 40, the summary included.
    assert_eq!(chat.last_request().messages.len(), 20);
    let long = "x".repeat(12_000);
    chat.say(long).await.unwrap();
    assert_eq!(chat.last_request().messages.len(), 9, "the newest eight, and the summary");
}

#[both_linkages]
async fn pinned_messages_and_the_newest_input_stay() {
    let chat = chat(json!({ "maxMessages": 4, "keepShare": 0, "retainLastMessages": 0 })).await;
    say_all(&chat, ["pin", "b", "c", "d", "e"]).await;
    let transcript = chat.last_request().transcript();
    assert!(transcript.len() == 3 && is_summary(&transcript[1]), "{transcript:?}");
    assert_eq!((&*transcript[0], &*transcript[2]), ("user: pin", "user: e"));
}

#[both_linkages]
async fn a_reopened_conversation_has_the_same_summary() {
    let mut chat = chat(json!({ "maxMessages": 4 })).await;
    say_all(&chat, inputs(3)).await;
    let before = chat.transcript().await;
    assert!(before.iter().any(|line| is_summary(line)), "{before:?}");
    chat.restart().await.unwrap();
    assert_eq!(chat.transcript().await, before);
}

#[both_linkages]
async fn a_turn_with_many_tool_calls_is_compacted_while_it_runs() {
    let call = || ScriptItem::calls([("no__a", json!({})), ("no__b", json!({}))]);
    let script = (0..30).map(|_| call()).chain([ScriptItem::say("done")]);
    let chat = builder(json!({ "maxMessages": 12, "retainLastMessages": 3 })).script(script).start().await.unwrap();
    let turn = chat.say("task").await.unwrap();
    assert_eq!((&*turn.text(), turn.steps()), ("done", 31));
    for request in chat.requests() {
        assert!(request.messages.len() <= 12, "{request:?}");
        assert!(is_paired(&request.messages), "{request:?}");
        let transcript = request.transcript();
        assert_eq!(transcript.iter().filter(|line| *line == "user: task").count(), 1, "{transcript:?}");
        assert!(transcript.iter().filter(|line| is_summary(line)).count() <= 1, "{transcript:?}");
    }
    // Nothing was left for the runtime to hide from the model.
    assert!(!chat.logs().iter().any(|line| line.text.contains("kept from the model")), "{:?}", chat.logs());
}

#[both_linkages]
#[covers("PATTERN-COMPACT-06", "PATTERN-COMPACT-07")]
async fn a_config_that_makes_no_sense_is_refused() {
    for (config, path) in [
        (json!({ "maxMessages": 0 }), "maxMessages"),
        (json!({ "maxCharacters": "many" }), "maxCharacters"),
        (json!({ "keepShare": 1 }), "keepShare"),
        (json!({ "place": "middle" }), "place"),
        (json!({ "summary": { "maxCharacters": 0 } }), "maxCharacters"),
        (json!({ "summary": { "modle": "Model/small" } }), "modle"),
        // `maxTokens` has kept its old name, the others have not.
        (json!({ "maxTokens": 8000, "maxChars": 32000 }), "maxChars"),
        (json!({ "enableLogging": true }), "enableLogging"),
    ] {
        let error = builder(config).start().await.unwrap_err();
        let extension = error.extension().map(|extension| extension.as_str());
        assert_eq!((error.code(), extension), (&ErrorCode::EXT_CONFIG, Some("message-compaction")));
        assert!(error.message().contains(path), "{error}");
    }
}
