//! Who shares a connection, and how long it is kept.

use goondan::agent::AgentBuilder;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::testing::Chat;
use goondan::{Agent, Value, json};
use goondan_covers::{both_linkages, covers};

use super::support::{Odd, call, chat, tools};
use crate::linkage::WithPlugin;

fn without_server(name: &str) -> AgentBuilder {
    Agent::builder(name).model(ScriptedModel::new([ScriptItem::say("fine").repeat()]))
}

fn agent(name: &str, config: Value) -> AgentBuilder {
    without_server(name).plugin("odd", "mcp", config)
}

/// Returns how many servers run for two conversations of one agent, and one of another with a key of the first.
async fn running(odd: &Odd, scope: &str) -> usize {
    let config = odd.config_with(&[], json!({ "attach": { "scope": scope } }));
    let [one, two] = ["one", "two"].map(|name| agent(name, config.clone()).build().unwrap());
    let conversations = [one.instance("a").await, one.instance("b").await, two.instance("a").await];
    let running = odd.running().len();
    for conversation in conversations {
        conversation.unwrap().close().await.unwrap();
    }
    assert_eq!(odd.running(), [0; 0]);
    running
}

#[both_linkages]
#[covers("PATTERN-MCP-09")]
async fn the_scope_says_who_shares_a_connection() {
    for (scope, expected) in [("agent", 3), ("instance", 2), ("shared", 1)] {
        assert_eq!(running(&Odd::new(), scope).await, expected, "{scope}");
    }
}

#[both_linkages]
async fn ten_conversations_share_one_server_until_the_last_is_closed() {
    let odd = Odd::new();
    let agent = agent("one", odd.config_with(&[], json!({ "attach": { "scope": "shared" } }))).build().unwrap();
    let mut conversations = Vec::new();
    for index in 0..10 {
        conversations.push(agent.instance(&index.to_string()).await.unwrap());
    }
    let last = conversations.pop().unwrap();
    // Also the one that has opened it.
    for conversation in conversations {
        conversation.close().await.unwrap();
    }
    assert_eq!((odd.starts(), odd.running().len()), (1, 1));
    assert!(last.run("hello").await.is_ok());
    last.close().await.unwrap();
    assert_eq!(odd.running(), [0; 0]);
}

#[both_linkages]
#[covers("PATTERN-MCP-09")]
async fn without_state_there_is_a_connection_for_each_call() {
    let odd = Odd::new();
    let mut chat = chat(odd.config_with(&["child"], json!({ "attach": { "mode": "stateless" } }))).await;
    assert_eq!(odd.starts(), 1, "it was asked what it offers");
    for calls in 1..=3 {
        assert_eq!(call(&mut chat, "echo", json!({ "text": "hello" })).await, "hello");
        assert_eq!(odd.starts(), 1 + calls);
        odd.wait_for_end().await;
    }
}

#[both_linkages]
#[covers("PATTERN-MCP-11", "PATTERN-MCP-12")]
async fn a_reload_keeps_the_server_unless_its_transport_changes() {
    let odd = Odd::new();
    let first = agent("one", odd.config(&[])).build().unwrap();
    let conversation = first.instance("test").await.unwrap();
    let pid = odd.running();
    let same = agent("one", odd.config(&[]));
    let reordered = without_server("one").plugin("empty", "mcp", json!({})).plugin("odd", "mcp", odd.config(&[]));
    let limits = agent("one", odd.config_with(&[], json!({ "limits": { "outputChars": 5, "shutdownMs": 100 } })));
    let tools = agent("one", odd.config_with(&[], json!({ "tools": { "allow": ["echo"] } })));
    for next in [same, reordered, limits, tools] {
        let reloaded = first.reload(&next.build().unwrap()).await.unwrap();
        assert!(reloaded.refused.is_empty(), "{reloaded:?}");
        assert!(conversation.run("hello").await.is_ok());
        assert_eq!((odd.running(), odd.starts()), (pid.clone(), 1));
    }
    let offered = conversation.tools().await.unwrap();
    assert_eq!(offered.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["odd__echo"]);
    first.reload(&agent("one", odd.config(&["other"])).build().unwrap()).await.unwrap();
    assert!(conversation.run("hello").await.is_ok());
    let other = odd.running();
    assert_eq!((odd.starts(), other.len()), (2, 1));
    assert_ne!(other, pid);
    first.reload(&agent("one", odd.config_with(&[], json!({ "protocol": "legacy" }))).build().unwrap()).await.unwrap();
    assert!(conversation.run("hello").await.is_ok());
    assert_eq!((odd.starts(), odd.running().len()), (3, 1));
    // Removed.
    first.reload(&without_server("one").build().unwrap()).await.unwrap();
    assert!(conversation.run("hello").await.is_ok());
    assert_eq!(odd.running(), [0; 0]);
}

#[both_linkages]
async fn a_conversation_that_is_only_shown_starts_no_server() {
    let odd = Odd::new();
    let config = odd.config(&[]);
    let chat = Chat::builder().agent(|agent| agent.plugin("odd", "mcp", config).inspect()).start().await.unwrap();
    assert_eq!(tools(&chat).await, [""; 0]);
    assert_eq!(odd.log(), [""; 0]);
}

/// As in a program that builds an agent for each of its users.
#[both_linkages]
#[covers("PATTERN-MCP-09")]
async fn agents_with_one_name_that_store_in_different_places_share_a_server_only_if_the_scope_says_so() {
    for (scope, expected) in [("agent", 2), ("instance", 1), ("shared", 1)] {
        let odd = Odd::new();
        let config = odd.config_with(&[], json!({ "attach": { "scope": scope } }));
        // Without a store of its own, each is stored in memory, apart from the others.
        let [one, other] = [(); 2].map(|()| agent("one", config.clone()).build().unwrap());
        let conversations = [one.instance("a").await.unwrap(), other.instance("a").await.unwrap()];
        assert_eq!(odd.running().len(), expected, "{scope}");
        for conversation in conversations {
            conversation.close().await.unwrap();
        }
        assert_eq!(odd.running(), [0; 0]);
    }
}
