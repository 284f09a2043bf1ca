//! What a person reads of the calls of ready-made tools.

use std::fs;

use goondan::json;
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::call::{open, shown};

#[both_linkages]
#[covers("PRESENT-01")]
async fn a_command_and_how_it_ended() {
    let mut chat = open("bash", json!({})).await;
    for (command, after, failed) in [
        ("echo hello", "echo hello", false),
        ("echo no >&2; exit 2", "echo no >&2; exit 2 · exit 2", true),
        ("kill -9 $$", "kill -9 $$ · SIGKILL", true),
    ] {
        let shown = shown(&mut chat, "bash__exec", json!({ "command": command })).await;
        assert_eq!(shown, (command.to_owned(), after.to_owned(), failed));
    }
    let long = json!({ "command": "sleep 60", "timeoutMs": 1 });
    assert_eq!(shown(&mut chat, "bash__exec", long).await.1, "sleep 60 · timed out");
    let script = json!({ "path": "none.sh", "args": ["--to", "a b"] });
    assert_eq!(shown(&mut chat, "bash__script", script).await.1, "none.sh --to a b · exit 127");
}

#[both_linkages]
#[covers("PRESENT-01")]
async fn files_that_are_read_written_and_listed() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    let mut chat = open("file-system", json!({ "roots": [dir.path()] })).await;
    for (tool, arguments, after) in [
        ("read", json!({ "path": "a.txt" }), "a.txt"),
        ("list", json!({}), ". · 1 entry"),
        ("write", json!({ "path": "b.txt", "content": "three" }), "b.txt"),
        ("delete", json!({ "path": "b.txt" }), "b.txt"),
    ] {
        let shown = shown(&mut chat, &format!("file-system__{tool}"), arguments).await;
        assert_eq!((shown.1.as_str(), shown.2), (after, false), "{tool}");
    }
    let (before, after, failed) = shown(&mut chat, "file-system__read", json!({ "path": "none" })).await;
    assert_eq!((before.as_str(), failed), ("none", true));
    assert!(after.starts_with("none · ") && after.len() > "none · ".len(), "{after}");
}

#[both_linkages]
#[covers("PRESENT-01")]
async fn what_small_tools_are_asked_for() {
    for (tool, arguments, before) in [
        ("wait__seconds", json!({ "seconds": 0.001 }), "0.001 s"),
        ("json-query__count", json!({ "data": "[1]", "path": "." }), "."),
        ("text-transform__case", json!({ "text": "a", "to": "upper" }), "text: a, to: upper"),
    ] {
        let (extension, _) = tool.split_once("__").unwrap();
        let mut chat = open(extension, json!({})).await;
        assert_eq!(shown(&mut chat, tool, arguments).await.0, before);
    }
}
