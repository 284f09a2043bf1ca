//! What the extension says about a server when a program asks.

use goondan::json;
use goondan::testing::Chat;
use goondan_covers::both_linkages;

use super::support::{Odd, call, chat, refused};

/// Returns the newest answer.
async fn status(chat: &Chat) -> String {
    chat.emit("status.request", ()).await.unwrap();
    let reports = chat.events("status.report");
    let report = reports.last().unwrap().args()[0].clone();
    assert_eq!(report["extension"], "odd");
    report["text"].as_str().unwrap().to_owned()
}

#[both_linkages]
async fn a_program_can_ask_how_the_server_is() {
    let odd = Odd::new();
    let mut chat = chat(odd.config_with(&[], json!({ "limits": { "restarts": 1 } }))).await;
    let connected = "MCP server odd: connected, 24 tools";
    assert_eq!(status(&chat).await, connected);
    assert_eq!(refused(&mut chat, "die", json!({})).await.0, "E_MCP_GONE");
    let ended = "MCP server odd: not connected; it ended: exit status: 7";
    let text = status(&chat).await;
    assert!(text.starts_with(ended) && !text.contains("left alone"), "{text}");
    assert_eq!(call(&mut chat, "echo", json!({ "text": "again" })).await, "again");
    assert_eq!(status(&chat).await, connected);
    for _ in 0..2 {
        assert_eq!(refused(&mut chat, "die", json!({})).await.0, "E_MCP_GONE");
    }
    let text = status(&chat).await;
    assert!(text.starts_with(ended) && text.contains("; left alone for "), "{text}");
}

#[both_linkages]
async fn a_server_that_is_not_there_or_not_kept_has_a_state_too() {
    let odd = Odd::new();
    let absent = chat(odd.config_with(&["fail"], json!({ "required": false }))).await;
    let text = status(&absent).await;
    assert!(text.starts_with("MCP server: not connected; ") && text.contains("exit status: 3"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let mut stateless = chat(odd.config_with(&[], json!({ "attach": { "mode": "stateless" } }))).await;
    assert_eq!(status(&stateless).await, "MCP server odd: connected for each call, 24 tools");
    assert_eq!(refused(&mut stateless, "die", json!({})).await.0, "E_MCP_GONE");
    let text = status(&stateless).await;
    assert!(text.starts_with("MCP server odd: not connected; it ended: exit status: 7"), "{text}");
    assert_eq!(call(&mut stateless, "echo", json!({ "text": "again" })).await, "again");
    assert_eq!(status(&stateless).await, "MCP server odd: connected for each call, 24 tools");
    // Nothing to say without a server.
    let none = chat(json!({})).await;
    none.emit("status.request", ()).await.unwrap();
    assert!(none.events("status.report").is_empty());
}
