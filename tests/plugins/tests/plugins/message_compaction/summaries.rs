//! Summaries by a model: what it is asked, what comes of its answer, and what happens if there is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use goondan::agent::TurnUpdate;
use goondan::event::{RuntimeEvent, TokenUsage};
use goondan::model::{ModelResponse, ScriptItem};
use goondan::testing::Chat;
use goondan::{Error, ErrorCode, Value, json};
use goondan_covers::both_linkages;

use super::support::{Answering, Asked, builder, is_summary, lines, say_all};

/// A config that replaces everything but the newest input as soon as there are five messages.
fn config(summary: Value) -> Value {
    json!({ "maxMessages": 4, "keepShare": 0, "retainLastMessages": 0, "summary": summary })
}

/// Opens a conversation whose summaries are written by `summarizer`.
async fn chat(config: Value, summarizer: &Answering) -> Chat {
    let named = summarizer.clone();
    builder(config).agent(|agent| agent.named_model("small", named)).start().await.unwrap()
}

async fn inputs(chat: &Chat, numbers: impl IntoIterator<Item = u32>) {
    say_all(chat, numbers.into_iter().map(|number| format!("input {number}"))).await;
}

#[both_linkages]
async fn a_model_writes_the_summary_and_earlier_ones_are_part_of_the_next() {
    let small = Answering::with(|asked| Some(Ok(ModelResponse::text(format!(" point {}\n", asked.number)))));
    let chat = chat(config(json!({ "model": "Model/small", "instructions": "Keep the weather." })), &small).await;
    inputs(&chat, 1..=3).await;
    let expected = ["system: [message-compaction] Summary of 4 earlier messages:\n\npoint 1", "user: input 3"];
    assert_eq!(chat.last_request().transcript(), expected);
    inputs(&chat, 4..=5).await;
    let expected = ["system: [message-compaction] Summary of 8 earlier messages:\n\npoint 2", "user: input 5"];
    assert_eq!(chat.last_request().transcript(), expected);

    let [first, second] = &small.asked()[..] else { panic!("{:?}", small.asked()) };
    assert!(first.system.contains("Do not continue the conversation"), "{first:?}");
    assert!(first.system.ends_with("Keep the weather."), "{first:?}");
    assert!(first.input.starts_with("<conversation>\nuser: input 1\nassistant: ok\nuser: input 2\n"), "{first:?}");
    let earlier = "summary of what was before: [message-compaction] Summary of 4 earlier messages:\n\npoint 1\n";
    assert!(second.input.contains(earlier), "{second:?}");

    let done: Vec<Value> = chat.events("compaction.done").iter().map(|event| event.args()[0].clone()).collect();
    assert_eq!(
        (&done[0]["model"], &done[0]["written"], &done[0]["removed"]),
        (&json!("small"), &json!(true), &json!(4))
    );
    assert_eq!(done[0]["before"], json!({ "messages": 5, "characters": 25 }));
    assert_eq!(done[0]["after"]["messages"], 2);
}

#[both_linkages]
async fn a_summary_is_in_the_usage_of_the_turn_and_not_in_its_stream() {
    let small = Answering::with(|_| {
        Some(Ok(ModelResponse::text("a secret of the summary").with_usage(TokenUsage::new(100, 10))))
    });
    let answer = ModelResponse::text("fine").with_usage(TokenUsage::new(5, 2));
    let named = small.clone();
    let chat = builder(config(json!({ "model": "small" })))
        .agent(|agent| agent.named_model("small", named))
        .script([ScriptItem::raw(answer).repeat()])
        .start()
        .await
        .unwrap();
    inputs(&chat, 1..=2).await;
    let mut turn = chat.instance().run_stream("input 3");
    let mut texts = String::new();
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Text { text, .. } = update {
            texts.push_str(&text);
        }
    }
    turn.finish().await.unwrap();
    assert_eq!((&*texts, small.asked().len()), ("fine", 1));
    let completed = chat.events("turn.completed");
    let RuntimeEvent::TurnCompleted { token_usage, .. } = completed.last().unwrap().payload().unwrap() else {
        panic!("{completed:?}")
    };
    assert_eq!(token_usage, Some(TokenUsage::new(105, 12)));
    let done: Value = chat.events("compaction.done")[0].args()[0].clone();
    assert_eq!(done["usage"]["totalTokens"], 110);
}

#[both_linkages]
async fn the_agents_own_model_writes_the_summary_if_none_is_named() {
    let answers = ["one", "two", "the summary", "three"].map(ScriptItem::say);
    let chat = builder(config(json!({}))).script(answers).start().await.unwrap();
    inputs(&chat, 1..=3).await;
    let expected = ["system: [message-compaction] Summary of 4 earlier messages:\n\nthe summary", "user: input 3"];
    assert_eq!(chat.last_request().transcript(), expected);
}

#[both_linkages]
async fn a_summary_that_is_too_long_is_cut() {
    let small = Answering::with(|_| Some(Ok(ModelResponse::text("ä".repeat(50)))));
    let chat = chat(config(json!({ "model": "small", "maxCharacters": 10 })), &small).await;
    inputs(&chat, 1..=3).await;
    assert!(lines(&chat, is_summary)[0].ends_with(&format!("\n\n{}", "ä".repeat(10))));
    assert!(small.asked()[0].system.contains("at most 10 characters"));
}

/// How a summarizing model fails.
fn failing(how: &'static str) -> Answering {
    Answering::with(move |_| match how {
        "fails" => Some(Err(Error::new(ErrorCode::MODEL, "out of order"))),
        "answers nothing" => Some(Ok(ModelResponse::text(" \n"))),
        _ => None,
    })
}

#[both_linkages]
async fn a_failing_model_means_what_on_failure_says() {
    for (how, code) in
        [("fails", ErrorCode::MODEL), ("answers nothing", ErrorCode::MODEL_ANSWER), ("hangs", ErrorCode::MODEL_TIMEOUT)]
    {
        for on_failure in ["keep", "count", "fail"] {
            let mut config = config(json!({ "model": "small", "timeoutMs": 20 }));
            config["onFailure"] = json!(on_failure);
            let chat = chat(config, &failing(how)).await;
            inputs(&chat, 1..=2).await;
            let outcome = chat.say("input 3").await;
            let warned = chat.logs().iter().any(|line| line.text.starts_with("no summary was written"));
            match on_failure {
                "fail" => assert_eq!(*outcome.unwrap_err().code(), code, "{how}"),
                "keep" => assert!(warned && chat.last_request().messages.len() == 5, "{how}: {:?}", chat.logs()),
                _ => {
                    let counted = "4 earlier messages (18 characters) were removed without a summary.";
                    let expected = [format!("system: [message-compaction] {counted}"), "user: input 3".to_owned()];
                    assert_eq!(chat.last_request().transcript(), expected, "{how}");
                    assert!(warned, "{how}: {:?}", chat.logs());
                }
            }
        }
    }
}

#[both_linkages]
async fn a_summary_that_failed_is_tried_again_in_the_next_turn_and_not_before() {
    let small = failing("fails");
    let named = small.clone();
    let script = (0..5).map(|_| ScriptItem::call("no__tool", json!({}))).chain([ScriptItem::say("done").repeat()]);
    let mut config = config(json!({ "model": "small" }));
    config["onFailure"] = json!("keep");
    let builder = builder(config).script(script).agent(|agent| agent.named_model("small", named));
    let chat = builder.start().await.unwrap();
    inputs(&chat, [1]).await;
    assert_eq!((small.asked().len(), chat.last_request().messages.len()), (1, 11));
    inputs(&chat, [2]).await;
    assert_eq!((small.asked().len(), chat.last_request().messages.len()), (2, 13));
}

#[both_linkages]
async fn what_a_model_wrote_stays_when_the_next_summary_fails() {
    let small = Answering::with(|asked| {
        Some(if asked.number == 1 { Ok(ModelResponse::text("it rains")) } else { Err(Error::msg("out of order")) })
    });
    let chat = chat(config(json!({ "model": "small" })), &small).await;
    inputs(&chat, 1..=5).await;
    let summary = &lines(&chat, is_summary)[0];
    assert!(summary.contains("it rains") && summary.ends_with("removed without a summary."), "{summary}");
}

#[both_linkages]
async fn after_two_failures_in_a_row_no_model_is_asked_until_the_conversation_was_short() {
    let working = Arc::new(AtomicU32::new(0));
    let small = {
        let working = Arc::clone(&working);
        Answering::with(move |_| match working.load(Ordering::Relaxed) {
            0 => Some(Err(Error::msg("out of order"))),
            _ => Some(Ok(ModelResponse::text("it rains"))),
        })
    };
    let mut config = config(json!({ "model": "small" }));
    config["onFailure"] = json!("keep");
    let mut chat = chat(config, &small).await;
    inputs(&chat, 1..=4).await;
    assert_eq!((small.asked().len(), chat.last_request().messages.len()), (2, 7));
    // The count survives a restart.
    chat.restart().await.unwrap();
    inputs(&chat, [5]).await;
    assert_eq!((small.asked().len(), chat.last_request().messages.len()), (2, 2));
    working.store(1, Ordering::Relaxed);
    inputs(&chat, 6..=7).await;
    assert_eq!(small.asked().len(), 3);
    assert!(lines(&chat, is_summary)[0].ends_with("it rains"), "{:?}", chat.last_request());
}

#[both_linkages]
async fn results_of_tools_are_cut_and_older_ones_halved_until_the_summarizing_model_can_read_them() {
    let overflow = || Error::new(ErrorCode::MODEL_CONTEXT_OVERFLOW, "too long");
    let small = Answering::with(move |asked| {
        Some(if asked.number < 4 { Err(overflow()) } else { Ok(ModelResponse::text("short")) })
    });
    let named = small.clone();
    let long = "y".repeat(3_000);
    let call = || ScriptItem::call("no__tool", json!({ "text": long.clone() }));
    let script = [call(), ScriptItem::say("one"), call(), ScriptItem::say("two"), ScriptItem::say("three")];
    let summary = json!({ "model": "small" });
    let config = json!({
        "maxMessages": 8, "maxCharacters": 100_000, "keepShare": 0, "retainLastMessages": 0, "summary": summary
    });
    let builder = builder(config).script(script).agent(|agent| agent.named_model("small", named));
    let chat = builder.start().await.unwrap();
    inputs(&chat, 1..=3).await;
    assert!(lines(&chat, is_summary)[0].ends_with("short"), "{:?}", chat.last_request());
    // The arguments of the older call, and those of the newer one, in each of the four requests.
    let cuts = |asked: &Asked| -> Vec<usize> {
        let calls = asked.input.lines().filter(|line| line.starts_with("assistant calls"));
        calls.map(|line| line.matches('y').count()).collect()
    };
    let expected: Vec<_> = [2_000, 1_000, 500, 250].map(|older| vec![older - 9, 2_000 - 9]).into();
    assert_eq!(small.asked().iter().map(cuts).collect::<Vec<_>>(), expected);
}
