//! SIZE: what the process grows by when a ready-made extension is given or asked for too much.

use std::io::{Read, Write};
use std::net::TcpListener;

use goondan::model::{ModelResponse, ScriptItem};
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};
use goondan_growth::{Case, check, of_bytes};

use crate::call::open;
use crate::linkage::{Linkage, WithPlugin};

/// Calls a tool of `extension` in processes that measure. `arguments` are for too much of it, and otherwise as long.
async fn calls(test: &str, extension: &'static str, tool: &str, limit: usize, arguments: impl Fn(&Case) -> Value) {
    let test = format!("growth::{test}::{}", Linkage::of_case());
    check(
        &test,
        of_bytes(limit),
        || tool.to_owned(),
        async |case| {
            let mut chat = open(extension, json!({})).await;
            let arguments = arguments(case);
            case.begin();
            let tool = format!("{extension}__{}", case.prepared);
            let result = chat.call(&tool, arguments).await.unwrap();
            assert_eq!(result.error().is_some(), case.passed_on, "{result:?}");
        },
    )
    .await;
}

#[both_linkages]
#[covers("SIZE-01")]
async fn texts_that_are_made() {
    const LIMIT: usize = 4 << 20;
    const TIMES: usize = 20_000;
    for tool in ["replace", "join"] {
        calls("texts_that_are_made", "text-transform", tool, LIMIT, |case| {
            let new = "b".repeat(if case.passed_on { case.times * LIMIT / TIMES } else { 1 });
            match &*case.prepared {
                "replace" => json!({ "text": "a".repeat(TIMES), "search": "a", "replacement": new, "all": true }),
                _ => json!({ "parts": vec![""; TIMES], "delimiter": new }),
            }
        })
        .await;
    }
}

#[both_linkages]
#[covers("SIZE-01")]
async fn json_that_is_read() {
    const VALUES: usize = 200_000;
    // What that many values take.
    const LIMIT: usize = 100 * VALUES;
    calls("json_that_is_read", "json-query", "count", LIMIT, |case| {
        // Not more than arguments may have.
        let values = case.times.min(10) * VALUES;
        let data =
            if case.passed_on { format!("[{}1]", "1,".repeat(values)) } else { format!("\"{}\"", "1,".repeat(values)) };
        json!({ "data": data })
    })
    .await;
}

/// Returns the URL of a server in a thread of this process. The path is the number of bytes that it answers with.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut request) = (stream.unwrap(), [0; 4096]);
            let length = stream.read(&mut request).unwrap();
            let path = String::from_utf8_lossy(&request[..length]).split(' ').nth(1).unwrap().to_owned();
            let bytes: usize = path[1..].parse().unwrap();
            let body = "some text\n".repeat(bytes / 10);
            // A client that has read enough closes the connection.
            _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\nconnection: close\r\n\r\n{body}");
        }
    });
    url
}

#[both_linkages]
#[covers("SIZE-01")]
async fn many_bodies_that_are_fetched() {
    /// What is read of a body, and how many are read at a time.
    const BODY: usize = 500_000;
    const CALLS: usize = 16;
    let test = format!("growth::many_bodies_that_are_fetched::{}", Linkage::of_case());
    check(&test, of_bytes(CALLS * BODY), server, async |case| {
        let bytes = if case.passed_on { case.times / 10 * BODY } else { 10 };
        let args = json!({ "url": format!("{}/{bytes}", case.prepared) });
        let call = |at| json!({ "id": format!("c{at}"), "name": "http-fetch__get", "args": args });
        // More than are read at a time.
        let calls: Vec<_> = (0..40).map(call).collect();
        let calls = ScriptItem::raw(json::from_value::<ModelResponse>(json!({ "toolCalls": calls })).unwrap());
        let config = json!({ "allowHosts": ["127.0.0.1"] });
        let chat = Chat::builder().agent(|agent| agent.plugin("http-fetch", "http-fetch", config));
        let chat = chat.script([calls, ScriptItem::say("done")]).start().await.unwrap();
        case.begin();
        assert_eq!(chat.say("go").await.unwrap().text(), "done");
    })
    .await;
}
