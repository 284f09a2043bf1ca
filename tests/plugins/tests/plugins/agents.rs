//! F-AGENTS: the tools that ask other agents.

use goondan::agent::LocalRouter;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::testing::Chat;
use goondan::tool::Effect;
use goondan::{Agent, json};
use goondan_covers::{both_linkages, covers};

use crate::call::{call, effects, open, refused};
use crate::linkage::WithPlugin;

/// Opens a conversation with an agent that has the tools, and can ask the agent `writer`.
async fn beside_a_writer(script: impl IntoIterator<Item = ScriptItem>) -> (Chat, Agent) {
    let router = LocalRouter::new();
    let writer = Agent::builder("writer").model(ScriptedModel::new([ScriptItem::say("a poem").repeat()]));
    let writer = writer.router(router.clone()).build().unwrap();
    router.add(&writer);
    let to = router.clone();
    let chat = Chat::builder().agent(|agent| agent.plugin("agents", "agents", json!({})).router(to));
    let chat = chat.script(script).start().await.unwrap();
    router.add(chat.agent());
    (chat, writer)
}

/// Returns what the agent `writer` was told in the conversation with this key.
async fn told(writer: &Agent, key: &str) -> Vec<String> {
    let messages = writer.instance(key).await.unwrap().messages().await.unwrap();
    messages.iter().map(|message| message.text().into_owned()).collect()
}

#[both_linkages]
#[covers("AGENTS-01")]
async fn another_agent_answers_in_the_conversation_with_the_same_key_or_another() {
    let (mut chat, writer) = beside_a_writer([ScriptItem::say("fine").repeat()]).await;
    let expected = [
        ("agents__request", Effect::Idempotent),
        ("agents__send", Effect::Idempotent),
        ("agents__list", Effect::Read),
        ("agents__catalog", Effect::Read),
    ];
    assert_eq!(effects(&chat).await, expected.map(|(name, effect)| (name.to_owned(), effect)));
    let key = chat.instance().key().to_string();
    let answer = call(&mut chat, "agents__request", json!({ "target": "writer", "input": "write" })).await;
    let expected = json!({ "target": "writer", "accepted": true, "async": false, "response": "a poem" });
    assert_eq!(answer, expected);
    assert_eq!(told(&writer, &key).await, ["write", "a poem"]);
    let other = json!({ "target": "writer", "input": "more", "instanceKey": "b", "timeoutMs": 60000, "metadata": {} });
    assert_eq!(call(&mut chat, "agents__request", other).await["response"], "a poem");
    assert_eq!(told(&writer, "b").await, ["more", "a poem"]);
}

#[both_linkages]
async fn an_answer_can_come_later_or_not_at_all() {
    let later = json!({ "target": "writer", "input": "write", "async": true });
    let script = [ScriptItem::call("agents__request", later), ScriptItem::say("fine").repeat()];
    let (mut chat, writer) = beside_a_writer(script).await;
    chat.say("ask").await.unwrap();
    // The answer comes before a step of this turn or a later one.
    while !chat.transcript().await.iter().any(|line| line.contains("a poem")) {
        chat.say("and?").await.unwrap();
    }
    let transcript = chat.transcript().await;
    let receipt = transcript.iter().find(|line| line.starts_with("tool:")).unwrap();
    for part in [r#""accepted":true"#, r#""async":true"#, r#""correlationId":""#, r#""response":null"#] {
        assert!(receipt.contains(part), "{receipt}");
    }
    let sent = call(&mut chat, "agents__send", json!({ "target": "writer", "input": "bye", "instanceKey": "c" })).await;
    assert_eq!(sent, json!({ "target": "writer", "accepted": true }));
    while told(&writer, "c").await != ["bye", "a poem"] {
        tokio::task::yield_now().await;
    }
    let sent = call(&mut chat, "agents__send", json!({ "target": "nobody", "input": "hello" })).await;
    assert_eq!(sent, json!({ "target": "nobody", "accepted": false }));
}

#[both_linkages]
async fn the_catalog_tells_who_there_is() {
    let (mut chat, _writer) = beside_a_writer([ScriptItem::say("fine").repeat()]).await;
    let (name, key) = (chat.agent().name().to_string(), chat.instance().key().to_string());
    let list = call(&mut chat, "agents__list", json!({})).await;
    assert_eq!(list, json!({ "count": 1, "agents": ["writer"] }));
    let mut all = [name.as_str(), "writer"];
    all.sort_unstable();
    let expected = json!({
        "selfAgent": name, "instanceKey": key, "availableCount": 2, "callableCount": 1,
        "availableAgents": all, "callableAgents": ["writer"],
    });
    assert_eq!(call(&mut chat, "agents__catalog", json!({})).await, expected);
    let mut alone = open("agents", json!({})).await;
    assert_eq!(call(&mut alone, "agents__list", json!({})).await, json!({ "count": 0, "agents": [] }));
}

#[both_linkages]
async fn what_cannot_be_asked_is_an_error_that_the_model_reads() {
    let (mut chat, _writer) = beside_a_writer([ScriptItem::say("fine").repeat()]).await;
    let name = chat.agent().name().to_string();
    for (arguments, code) in [
        (json!({ "target": "writer" }), "E_TOOL_INVALID_ARGS"),
        (json!({ "target": "writer", "input": "" }), "E_TOOL_INVALID_ARGS"),
        (json!({ "target": "writer", "input": " " }), "E_INPUT"),
        (json!({ "target": "writre", "input": "write" }), "AGENT_NOT_FOUND"),
        (json!({ "target": name, "input": "write" }), "CIRCULAR_CALL_DETECTED"),
        (json!({ "target": "writer", "input": "write", "timeoutMs": 0 }), "E_TOOL_INVALID_ARGS"),
    ] {
        assert_eq!(refused(&mut chat, "agents__request", arguments.clone()).await.0, code, "{arguments}");
    }
    for input in ["", " "] {
        let (code, _) = refused(&mut chat, "agents__send", json!({ "target": "writer", "input": input })).await;
        assert!(["E_TOOL_INVALID_ARGS", "E_INPUT"].contains(&code.as_str()), "{code}");
    }
}
