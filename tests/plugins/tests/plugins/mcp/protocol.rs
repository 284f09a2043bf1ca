//! Which version of the protocol is spoken with which server.

use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use super::support::{Odd, call, chat, chat_with, logs, refused, tools};
use crate::linkage::WithPlugin;

fn config(odd: &Odd, options: &[&str], protocol: &str) -> Value {
    odd.config_with(options, json!({ "protocol": protocol }))
}

/// Returns the error of a conversation that cannot be opened.
async fn refusal(config: Value) -> String {
    let error = Chat::builder().agent(|agent| agent.plugin("odd", "mcp", config)).start().await.unwrap_err();
    error.report().to_string()
}

#[both_linkages]
#[covers("PATTERN-MCP-04", "PATTERN-MCP-05")]
async fn a_server_without_a_handshake_is_spoken_to_in_its_version() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&["modern"])).await;
    assert_eq!(tools(&chat).await[..2], ["odd__echo", "odd__pid"]);
    assert_eq!(call(&mut chat, "echo", json!({ "text": "hello" })).await, "hello");
    let (code, message) = refused(&mut chat, "refuse", json!({})).await;
    assert_eq!((code.as_str(), message.as_str()), ("E_MCP_REFUSED", "not today"));
    chat.close().await.unwrap();
    assert_eq!((odd.starts(), odd.running()), (1, vec![]));
    assert_eq!(odd.logged("version"), ["2026-07-28"]);
    assert_eq!(odd.logged("capabilities"), [r#"{"elicitation":{"form":{},"url":{}}}"#]);
}

#[both_linkages]
async fn a_server_with_a_handshake_is_asked_first_and_not_started_again() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&[])).await;
    assert_eq!(call(&mut chat, "echo", json!({ "text": "hello" })).await, "hello");
    assert_eq!(
        (odd.logged("unknown"), odd.logged("version")),
        (vec!["server/discover".into()], vec!["2025-11-25".into()])
    );
    assert_eq!(odd.starts(), 1);
}

/// As servers with the first SDKs do.
#[both_linkages]
async fn a_server_that_does_not_survive_the_question_is_started_again() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&["strict"])).await;
    assert_eq!(odd.starts(), 2);
    assert_eq!(refused(&mut chat, "die", json!({})).await.0, "E_MCP_GONE");
    assert_eq!(call(&mut chat, "echo", json!({ "text": "again" })).await, "again");
    assert_eq!((odd.starts(), odd.logged("unknown").len()), (3, 1), "it is not asked again");
}

#[both_linkages]
async fn the_config_says_which_version_is_spoken() {
    for (protocol, version) in [("legacy", "2025-11-25"), ("2025-11-25", "2025-11-25"), ("2024-11-05", "2024-11-05")] {
        let odd = Odd::new();
        let mut chat = chat(config(&odd, &["strict"], protocol)).await;
        assert_eq!(call(&mut chat, "echo", json!({ "text": "hello" })).await, "hello");
        assert_eq!((odd.starts(), odd.logged("version")), (1, vec![version.to_owned()]));
    }
    let odd = Odd::new();
    for (options, protocol) in [(&["modern"][..], "legacy"), (&[][..], "2026-07-28")] {
        let report = refusal(config(&odd, options, protocol)).await;
        assert!(report.contains("E_MCP_START"), "{report}");
    }
    let report = refusal(config(&odd, &[], "2023-01-01")).await;
    assert!(report.contains("E_EXT_CONFIG") && report.contains("protocol"), "{report}");
}

#[both_linkages]
#[covers("LATE-01")]
async fn an_announcement_to_a_subscription_is_not_overtaken_by_the_answer_after_it() {
    let odd = Odd::new();
    let names: Vec<_> = (0..20).map(|index| format!("new{index}")).collect();
    let script = names.iter().flat_map(|name| {
        let add = ScriptItem::call("odd__add", json!({ "name": name }));
        [add, ScriptItem::call(format!("odd__{name}"), json!({})), ScriptItem::say("done")]
    });
    let chat = chat_with(odd.config(&["modern"]), script).await;
    for _ in &names {
        chat.say("go").await.unwrap();
    }
    let results: Vec<_> = chat.transcript().await.into_iter().filter(|line| line.starts_with("tool: ")).collect();
    for (name, results) in names.iter().zip(results.chunks(2)) {
        assert!(results[1].contains(&format!("{name} {{}}")), "{results:?}");
    }
    assert_eq!(odd.logged("call").len(), 2 * names.len());
}

#[both_linkages]
#[covers("LATE-01")]
async fn a_subscription_that_the_server_ends_is_made_again() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&["modern"])).await;
    assert_eq!(call(&mut chat, "unsubscribe", json!({})).await, "unsubscribed");
    // Nothing is announced now.
    assert_eq!(call(&mut chat, "add", json!({ "name": "new" })).await, "added");
    while odd.log().iter().filter(|line| *line == "subscription").count() < 2 {
        tokio::task::yield_now().await;
    }
    while !tools(&chat).await.contains(&"odd__new".to_owned()) {
        chat.say("hello").await.unwrap();
    }
    assert_eq!(call(&mut chat, "new", json!({})).await, "new {}");
    assert_eq!(odd.starts(), 1, "{:?}", logs(&chat));
}

#[both_linkages]
async fn a_server_without_a_handshake_that_fails_is_an_error_like_any_other() {
    let odd = Odd::new();
    let mut hanging = chat(odd.config_with(&["modern"], json!({ "tools": { "timeoutMs": 2000 } }))).await;
    assert_eq!(refused(&mut hanging, "hang", json!({})).await.0, "E_TOOL_TIMEOUT");
    odd.wait_for("cancelled").await;
    hanging.close().await.unwrap();

    let odd = Odd::new();
    let options = ["modern", "stubborn", "child"];
    let mut chat = chat(odd.config_with(&options, json!({ "limits": { "shutdownMs": 100 } }))).await;
    assert_eq!(refused(&mut chat, "die", json!({})).await.0, "E_MCP_GONE");
    assert_eq!(call(&mut chat, "echo", json!({ "text": "again" })).await, "again");
    assert_eq!(odd.starts(), 2);
    chat.close().await.unwrap();
    odd.wait_for_end().await;
}
