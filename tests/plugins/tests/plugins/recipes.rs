//! The recipes of `docs/recipes` whose extensions use the newest members of the contract.

use std::num::NonZeroU32;

use goondan::agent::{AgentBuilder, BackgroundUpdate, LocalRouter, TurnUpdate};
use goondan::decision::Decision;
use goondan::event::{AgentEvent, Auth, Principal, TokenUsage};
use goondan::model::{ModelResponse, ScriptItem, ScriptedModel};
use goondan::testing::{Chat, ChatBuilder};
use goondan::{Agent, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::WithPlugin;

fn chat(extension: &'static str, config: Value) -> ChatBuilder {
    Chat::builder().agent(|agent: AgentBuilder| agent.recipe(extension, config))
}

#[both_linkages]
async fn a_limit_per_user_counts_in_all_conversations() {
    let chat = chat("user-limit", json!({ "maxTurns": 2 })).start().await.unwrap();
    let from = |user: &str| {
        let mut event = AgentEvent::input("hello");
        event.auth = Some(Auth::new(Principal::new("user", user)));
        event
    };
    let other = chat.agent().instance("other").await.unwrap();
    chat.say(from("ada")).await.unwrap();
    other.run(from("ada")).await.unwrap();
    assert_eq!(chat.say(from("ada")).await.unwrap_err().code(), "USER_LIMIT");
    chat.say(from("bob")).await.unwrap();
}

#[both_linkages]
async fn a_budget_of_tokens_outlasts_a_restart() {
    let answer = ModelResponse::text("ok").with_usage(TokenUsage::new(50, 10));
    let chat = chat("token-budget", json!({ "maxTokens": 100 })).script([ScriptItem::raw(answer).repeat()]);
    let mut chat = chat.start().await.unwrap();
    chat.say("one").await.unwrap();
    chat.restart().await.unwrap();
    chat.say("two").await.unwrap();
    assert_eq!(chat.say("three").await.unwrap_err().code(), "TOKEN_BUDGET");
}

/// A layer of the turn sees the whole usage.
#[both_linkages]
#[covers("WORK-02")]
async fn a_budget_of_tokens_counts_the_agents_that_are_asked() {
    let answer = |text: &str| ModelResponse::text(text).with_usage(TokenUsage::new(50, 10));
    let router = LocalRouter::new();
    let worker = Agent::builder("worker").model(ScriptedModel::new([ScriptItem::raw(answer("done")).repeat()]));
    let worker = worker.build().unwrap();
    router.add(&worker);
    let tasks = json!({ "tasks": [{ "agent": "worker", "task": "one" }, { "agent": "worker", "task": "two" }] });
    let script = [ScriptItem::call("subagents__run", tasks), ScriptItem::raw(answer("ok")).repeat()];
    let chat = chat("token-budget", json!({ "maxTokens": 180 })).script(script);
    let chat = chat.agent(|agent| {
        agent.plugin("subagents", "subagents", json!({ "agents": { "worker": "works" } })).router(router)
    });
    let chat = chat.start().await.unwrap();
    chat.say("one").await.unwrap();
    let error = chat.say("two").await.unwrap_err();
    assert_eq!(error.code(), "TOKEN_BUDGET");
    assert_eq!(error.message(), "180 of 180 tokens are used");
}

#[both_linkages]
async fn context_from_a_search_is_in_no_later_request() {
    let documents = json!({ "documents": ["tea grows in Assam", "rice grows in Bali"] });
    let chat = chat("search", documents).start().await.unwrap();
    chat.say("and tea").await.unwrap();
    chat.say("and rice").await.unwrap();
    let transcript = chat.last_request().transcript();
    assert_eq!(transcript.last().unwrap(), "user: Found: rice grows in Bali");
    assert_eq!(transcript.iter().filter(|line| line.contains("Found")).count(), 1, "{transcript:?}");
}

#[both_linkages]
async fn a_call_waits_for_a_form() {
    let form = json!({ "reason": "it was broken", "account": "shop" });
    for (decision, read) in [(Some(form), "paid back, because: it was broken"), (None, "E_TOOL_REJECTED: not today")] {
        let script = [ScriptItem::call("shop__refund", json!({ "sum": 5.0 })), ScriptItem::say("done")];
        let chat = chat("refund-form", json!({})).agent(|agent| agent.recipe("shop", json!({}))).script(script);
        let chat = chat.start().await.unwrap();
        let call = chat.instance().run("refund it").await.unwrap().waits()[0].call.clone();
        let decision = match decision {
            Some(form) => Decision::new(call, form),
            None => Decision::reject(call, "not today"),
        };
        chat.instance().decide([decision]).await.unwrap();
        let transcript = chat.last_request().transcript();
        assert!(transcript[2].contains(read), "{transcript:?}");
    }
}

#[both_linkages]
async fn a_cache_answers_the_second_call() {
    let chat = chat("cache", json!({})).agent(|agent| agent.recipe("weather", json!({})));
    let mut chat = chat.start().await.unwrap();
    for _ in 0..3 {
        let result = chat.call("weather__today", json!({})).await.unwrap();
        assert_eq!(result.output().unwrap(), "it rains");
    }
    assert_eq!(chat.events("tool.called").len(), 1);
}

#[both_linkages]
async fn a_guard_withholds_keys_from_the_stream_too() {
    for (said, answer) in [("it is sk-1234567", "I cannot tell you that."), ("there is none", "there is none")] {
        let script = [ScriptItem::say(said).pieces(NonZeroU32::new(4).unwrap())];
        let chat = chat("output-guard", json!({})).script(script).start().await.unwrap();
        let mut turn = chat.instance().run_stream("What is the key?");
        let mut read = Vec::new();
        while let Some(update) = turn.next().await {
            if let TurnUpdate::Text { text, .. } = update {
                read.push(text);
            }
        }
        assert_eq!(read, [answer]);
        assert_eq!(turn.finish().await.unwrap().text(), answer);
    }
}

#[both_linkages]
async fn a_tool_begins_another_turn() {
    let plan = ScriptItem::call("follow-up__plan", json!({ "text": "check the oven" }));
    let script = [plan, ScriptItem::say("later"), ScriptItem::say("it is hot")];
    let chat = chat("follow-up", json!({})).script(script).start().await.unwrap();
    let mut turns = chat.agent().subscribe_turns();
    assert_eq!(chat.say("bake").await.unwrap().text(), "later");
    let Some(BackgroundUpdate::Ended(turn)) = turns.next().await else { panic!("a turn was planned") };
    assert_eq!(turn.outcome.as_ref().unwrap().text(), "it is hot");
}
