//! What happens when a server fails: the table of `docs/mcp.md`, row by row.

use goondan::testing::Chat;
use goondan::{ErrorCode, json};
use goondan_covers::{both_linkages, covers};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::support::{Odd, call, chat, logs, refused, tools};
use crate::linkage::{Linkage, WithPlugin};

#[both_linkages]
async fn a_server_that_ends_at_once_is_an_error_with_its_last_words() {
    let odd = Odd::new();
    let start = |config| Chat::builder().agent(|agent| agent.plugin("odd", "mcp", config)).start();
    let error = start(odd.config(&["fail"])).await.unwrap_err();
    let report = error.report().to_string();
    assert_eq!(*error.code(), ErrorCode::EXT_INIT);
    for text in ["E_MCP_START", "exit status: 3", "\nline 11\n", "\nline 30"] {
        assert!(report.contains(text), "{text}: {report}");
    }
    assert!(!report.contains("line 10\n"), "{report}");
    let nowhere = json!({ "transport": { "type": "stdio", "command": ["/no/such/program"] } });
    let report = start(nowhere).await.unwrap_err().report().to_string();
    assert!(report.contains("`/no/such/program` cannot be started"), "{report}");
}

#[both_linkages]
async fn a_server_that_is_not_required_is_tried_again_in_later_steps() {
    let odd = Odd::new();
    let flag = odd.path("flag");
    // It ends at once until the file exists.
    let log = format!("log={}", odd.path("log").display());
    let script =
        format!("test -e {} && exec {} {log}; echo not yet >&2", flag.display(), env!("CARGO_BIN_EXE_odd-server"));
    let transport = json!({ "type": "stdio", "command": ["sh", "-c", script] });
    let mut chat = chat(json!({ "transport": transport, "required": false })).await;
    assert_eq!(tools(&chat).await, [""; 0]);
    assert!(logs(&chat)[0].contains("not yet"), "{:?}", logs(&chat));
    std::fs::write(flag, "").unwrap();
    assert_eq!(call(&mut chat, "echo", json!({ "text": "now" })).await, "now");
}

#[both_linkages]
async fn a_server_that_never_answers_is_an_error_within_the_time_to_connect() {
    for option in ["silent", "mute"] {
        let odd = Odd::new();
        let config =
            odd.config_with(&[option, "stubborn"], json!({ "limits": { "connectMs": 300, "shutdownMs": 20 } }));
        let error = Chat::builder().agent(|agent| agent.plugin("odd", "mcp", config)).start().await.unwrap_err();
        let report = error.report().to_string();
        assert!(report.contains("within 300ms"), "{report}");
        odd.wait_for_end().await;
    }
}

#[both_linkages]
async fn a_server_that_dies_during_a_call_is_started_by_the_next() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&[])).await;
    let (code, message) = refused(&mut chat, "die", json!({})).await;
    assert_eq!(code, "E_MCP_GONE");
    assert!(message.contains("exit status: 7"), "{message}");
    assert_eq!(call(&mut chat, "echo", json!({ "text": "again" })).await, "again");
    assert_eq!(odd.logged("call"), ["die", "echo"], "the call was not sent again");
    assert_eq!(odd.starts(), 2);
    let events = ["mcp.connected", "mcp.disconnected"].map(|name| chat.events(name).len());
    assert_eq!(events, [2, 1]);
}

#[both_linkages]
async fn a_server_that_is_killed_during_a_call_is_noticed() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&["child"])).await;
    let pid = odd.logged("start")[0].parse().unwrap();
    let killed = async {
        odd.wait_for("call hang").await;
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    };
    let ((code, message), ()) = tokio::join!(refused(&mut chat, "hang", json!({})), killed);
    assert_eq!(code, "E_MCP_GONE");
    assert!(message.contains("signal: 9"), "{message}");
    odd.wait_for_end().await;
}

#[both_linkages]
async fn a_child_of_the_server_that_holds_its_output_hides_nothing() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&[])).await;
    assert_eq!(refused(&mut chat, "orphan", json!({})).await.0, "E_MCP_GONE");
    odd.wait_for_end().await;
    assert_eq!(odd.logged("child").len(), 1);
    assert_eq!(call(&mut chat, "echo", json!({ "text": "again" })).await, "again");
}

#[both_linkages]
async fn a_call_that_hangs_ends_at_its_deadline_and_the_server_is_told() {
    let odd = Odd::new();
    let mut chat = chat(odd.config_with(&[], json!({ "tools": { "timeoutMs": 2000 } }))).await;
    assert_eq!(refused(&mut chat, "hang", json!({})).await.0, "E_TOOL_TIMEOUT");
    odd.wait_for("cancelled").await;
    assert_eq!(call(&mut chat, "echo", json!({ "text": "go on" })).await, "go on");
    assert_eq!(odd.starts(), 1);
}

#[both_linkages]
#[covers("PATTERN-MCP-05", "PROC-01")]
async fn a_server_that_ignores_everything_is_killed_with_its_children() {
    let odd = Odd::new();
    let chat = chat(odd.config_with(&["stubborn", "child"], json!({ "limits": { "shutdownMs": 100 } }))).await;
    assert_eq!(odd.running().len(), 2);
    chat.close().await.unwrap();
    // They are killed, and end on their own time.
    odd.wait_for_end().await;
    assert_eq!(odd.log().last().unwrap(), "end of input", "it was asked first");
}

#[both_linkages]
#[covers("PROC-01")]
async fn a_conversation_that_is_dropped_takes_its_server_with_it() {
    let odd = Odd::new();
    drop(chat(odd.config_with(&["stubborn", "child"], json!({ "limits": { "shutdownMs": 100 } }))).await);
    odd.wait_for_end().await;
    assert_eq!(odd.logged("child").len(), 1);
}

#[both_linkages]
async fn a_server_that_fails_too_often_is_left_alone() {
    let odd = Odd::new();
    let mut chat = chat(odd.config_with(&[], json!({ "limits": { "restarts": 1 } }))).await;
    for _ in 0..2 {
        assert_eq!(refused(&mut chat, "die", json!({})).await.0, "E_MCP_GONE");
    }
    let (code, message) = refused(&mut chat, "echo", json!({ "text": "?" })).await;
    assert_eq!((code.as_str(), message.as_str()), ("E_MCP_DOWN", "the MCP server failed 2 times in a row"));
    assert_eq!(odd.starts(), 2);
}

#[both_linkages]
async fn an_answer_forgives_earlier_failures() {
    let odd = Odd::new();
    let mut chat = chat(odd.config_with(&[], json!({ "limits": { "restarts": 1 } }))).await;
    for _ in 0..3 {
        assert_eq!(refused(&mut chat, "die", json!({})).await.0, "E_MCP_GONE");
        assert_eq!(call(&mut chat, "echo", json!({ "text": "fine" })).await, "fine");
    }
    assert_eq!(odd.starts(), 4);
}

#[both_linkages]
async fn lines_that_are_no_messages_do_no_harm() {
    let odd = Odd::new();
    let mut chat = chat(odd.config(&["noisy"])).await;
    assert_eq!(call(&mut chat, "echo", json!({ "text": "hello" })).await, "hello");
}

/// Only linked, because a chat records no lines of the threads of a library.
#[tokio::test]
async fn what_a_server_writes_to_its_standard_error_is_in_the_log() {
    let case = async {
        let chat = chat(Odd::new().config(&["noisy"])).await;
        while !logs(&chat).iter().any(|line| line == "MCP server: Welcome, too!") {
            tokio::task::yield_now().await;
        }
    };
    Linkage::Linked.run(case).await;
}
