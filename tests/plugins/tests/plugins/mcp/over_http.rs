//! The odd server at a URL.

use std::process::{Child, Command, Stdio};

use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use super::support::{Odd, call, chat, chat_with, refused, tools};
use crate::linkage::WithPlugin;

/// A server that listens, until this is dropped.
pub(super) struct Listening {
    pub(super) odd: Odd,
    process: Child,
    pub(super) port: String,
}

impl Listening {
    pub(super) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    pub(super) async fn start_with(options: &[&str]) -> Self {
        let odd = Odd::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_odd-server"));
        command.arg("http").args(options).arg(format!("log={}", odd.path("log").display())).stdin(Stdio::null());
        let process = command.spawn().unwrap();
        odd.wait_for("port").await;
        let port = odd.logged("port").remove(0);
        Self { odd, process, port }
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub(super) fn config(&self, mut settings: Value) -> Value {
        settings["transport"] =
            json!({ "type": "http", "endpoint": self.endpoint(), "headers": { "X-Odd": "a header" } });
        settings
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[both_linkages]
#[covers("PATTERN-MCP-08")]
async fn the_tools_of_a_server_at_a_url_are_called_with_the_headers() {
    let server = Listening::start().await;
    let mut chat = chat(server.config(json!({}))).await;
    assert_eq!(tools(&chat).await[..2], ["odd__echo", "odd__pid"]);
    assert_eq!(call(&mut chat, "echo", json!({ "text": "hello" })).await, "hello");
    let (code, message) = refused(&mut chat, "refuse", json!({})).await;
    assert_eq!((code.as_str(), message.as_str()), ("E_MCP_REFUSED", "not today"));
    chat.close().await.unwrap();
    let headers = server.odd.logged("header");
    assert!(headers.len() >= 5 && headers.iter().all(|header| header == "a header"), "{headers:?}");
}

#[both_linkages]
async fn a_call_over_http_that_hangs_ends_at_its_deadline_and_the_server_is_told() {
    let server = Listening::start().await;
    let mut chat = chat(server.config(json!({ "tools": { "timeoutMs": 2000 } }))).await;
    assert_eq!(refused(&mut chat, "hang", json!({})).await.0, "E_TOOL_TIMEOUT");
    server.odd.wait_for("cancelled").await;
    assert_eq!(call(&mut chat, "echo", json!({ "text": "go on" })).await, "go on");
}

#[both_linkages]
async fn a_tool_that_a_server_at_a_url_adds_is_called_in_the_next_step() {
    let server = Listening::start().await;
    let script = [("add", json!({ "name": "new" })), ("new", json!({}))];
    let script = script.map(|(tool, arguments)| ScriptItem::call(format!("odd__{tool}"), arguments));
    let chat = chat_with(server.config(json!({})), script.into_iter().chain([ScriptItem::say("done")])).await;
    chat.say("go").await.unwrap();
    let results: Vec<_> = chat.transcript().await.into_iter().filter(|line| line.starts_with("tool: ")).collect();
    assert!(results[1].contains("new {}"), "{results:?}");
}

#[both_linkages]
async fn a_server_at_a_url_that_is_gone_is_an_error() {
    let mut server = Listening::start().await;
    let mut chat = chat(server.config(json!({}))).await;
    server.process.kill().unwrap();
    server.process.wait().unwrap();
    let (code, message) = refused(&mut chat, "echo", json!({ "text": "?" })).await;
    assert_eq!(code, "E_MCP_GONE", "{message}");
    chat.close().await.unwrap();
    let config = server.config(json!({}));
    let error = Chat::builder().agent(|agent| agent.plugin("odd", "mcp", config)).start().await.unwrap_err();
    let report = error.report().to_string();
    assert!(report.contains("E_MCP_START") && !report.contains(&server.port), "{report}");
}

#[both_linkages]
#[covers("PATTERN-MCP-08")]
async fn an_endpoint_or_a_header_that_cannot_be_sent_is_refused() {
    let transport =
        |endpoint: &str, header: &str| json!({ "type": "http", "endpoint": endpoint, "headers": { header: "x" } });
    for (transport, about) in [
        (transport("not a url", "a"), "`transport.endpoint` is not a URL"),
        (transport("http://127.0.0.1/", "a b"), "the header `a b` cannot be sent"),
    ] {
        let config = json!({ "transport": transport });
        let error = Chat::builder().agent(|agent| agent.plugin("odd", "mcp", config)).start().await.unwrap_err();
        let report = error.report().to_string();
        assert!(report.contains("E_EXT_CONFIG") && report.contains(about), "{report}");
    }
}

/// Announcements and answers come in different responses, so that their order is not known.
#[both_linkages]
async fn a_tool_that_a_server_without_a_handshake_adds_at_a_url_is_offered() {
    let server = Listening::start_with(&["modern"]).await;
    let mut chat = chat(server.config(json!({}))).await;
    assert_eq!(call(&mut chat, "add", json!({ "name": "new" })).await, "added");
    while !tools(&chat).await.contains(&"odd__new".to_owned()) {
        chat.say("hello").await.unwrap();
    }
    assert_eq!(call(&mut chat, "new", json!({})).await, "new {}");
    assert_eq!(server.odd.logged("version"), ["2026-07-28"]);
    chat.close().await.unwrap();
}
