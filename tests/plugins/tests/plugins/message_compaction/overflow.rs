//! Requests that are too long for the model.

use goondan::conversation::Role;
use goondan::middleware::ModelInfo;
use goondan::model::ModelResponse;
use goondan::testing::Chat;
use goondan::{Error, ErrorCode, json};
use goondan_covers::both_linkages;

use super::support::{Answering, Asked, builder, is_summary, lines, say_all};

/// A model that takes as many messages, and answers `ok`.
fn taking(messages: usize) -> Answering {
    Answering::with(move |asked: &Asked| {
        let problem = "the request is too long";
        let fits = asked.messages <= messages;
        Some(if fits {
            Ok(ModelResponse::text("ok"))
        } else {
            Err(Error::new(ErrorCode::MODEL_CONTEXT_OVERFLOW, problem))
        })
    })
}

async fn chat(model: Answering) -> Chat {
    builder(json!({ "retainLastMessages": 1 })).model(model).start().await.unwrap()
}

#[both_linkages]
async fn the_step_runs_again_after_an_overflow() {
    let chat = chat(taking(4)).await;
    say_all(&chat, ["input 1", "input 2"]).await;
    let turn = chat.say("input 3").await.unwrap();
    assert_eq!((&*turn.text(), turn.steps()), ("ok", 2));
    let transcript = chat.last_request().transcript();
    assert!(is_summary(&transcript[0]) && transcript.len() <= 4, "{transcript:?}");
    assert_eq!(transcript.last().unwrap(), "user: input 3");
    // A later overflow is treated in the same way, also in the same conversation.
    say_all(&chat, ["input 4", "input 5", "input 6"]).await;
    assert_eq!(lines(&chat, is_summary).len(), 1);
}

#[both_linkages]
async fn a_step_is_run_again_once() {
    let chat = chat(taking(1)).await;
    chat.say("input 1").await.unwrap();
    let error = chat.say("input 2").await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_CONTEXT_OVERFLOW);
    assert_eq!(chat.requests().len(), 3, "one that fits, one that does not, and that one again");
}

#[both_linkages]
async fn without_anything_to_replace_the_overflow_fails_the_turn() {
    let chat = chat(taking(0)).await;
    let error = chat.say("input 1").await.unwrap_err();
    assert_eq!((error.code(), chat.requests().len()), (&ErrorCode::MODEL_CONTEXT_OVERFLOW, 1));
    assert_eq!(error.message(), "the request is too long");
}

#[both_linkages]
async fn marked_messages_are_replaced_at_an_overflow_however_few_they_are() {
    let chat = builder(json!({ "candidates": "marked" })).model(taking(6)).start().await.unwrap();
    say_all(&chat, ["old 1", "old 2", "new", "go"]).await;
    assert_eq!(lines(&chat, |line| line.starts_with("user:")), ["user: new", "user: go"]);
    assert_eq!(lines(&chat, is_summary).len(), 1);
}

/// A model whose context window has 100 tokens. By estimate, a token is four bytes.
fn with_window() -> Answering {
    let mut info = ModelInfo::new("test", "tiny");
    info.context_window = Some(100);
    Answering::with(|_| Some(Ok(ModelResponse::text("ok")))).knowing(info)
}

#[both_linkages]
async fn four_fifths_of_a_known_context_window_are_used() {
    let chat = chat(with_window()).await;
    let text = |tokens: usize| "x".repeat(4 * tokens);
    chat.say(text(40)).await.unwrap();
    chat.say(text(39)).await.unwrap();
    assert_eq!(lines(&chat, is_summary).len(), 0, "80 tokens");
    chat.say(text(1)).await.unwrap();
    assert_eq!(lines(&chat, is_summary).len(), 1);
    let roles: Vec<_> = chat.last_request().messages.iter().map(|message| message.role).collect();
    assert_eq!(roles.first(), Some(&Role::System));
}

#[both_linkages]
async fn the_config_limits_tokens_too() {
    let config = json!({ "maxTokens": 20, "retainLastMessages": 1 });
    let chat = builder(config).model(with_window()).start().await.unwrap();
    chat.say("x".repeat(76)).await.unwrap();
    assert_eq!(lines(&chat, is_summary).len(), 0);
    chat.say("go").await.unwrap();
    assert_eq!(lines(&chat, is_summary).len(), 1);
}
