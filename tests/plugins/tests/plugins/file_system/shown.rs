//! What people who watch are told about changes of files.

use goondan::event::ExtensionShown;
use goondan::json;
use goondan::testing::Chat;
use goondan_covers::both_linkages;

use crate::call::{call, open, refused};

/// Returns the differences that were told since the last time, of which there have been `known`.
fn told(chat: &Chat, known: &mut usize) -> Vec<String> {
    let events = chat.events(ExtensionShown::NAME);
    let new = events[*known..].iter().map(|event| event.payload::<ExtensionShown>().unwrap().shown.to_string());
    let new = new.collect();
    *known = events.len();
    new
}

#[both_linkages]
async fn writes_and_edits_are_told_as_differences() {
    let mut chat = open("file-system", json!({})).await;
    let mut known = 0;
    let text: String = (1..=9).map(|number| format!("{number}\n")).collect();
    call(&mut chat, "file-system__write", json!({ "path": "a/b.txt", "content": "1\n2\n" })).await;
    assert_eq!(told(&chat, &mut known), ["--- /dev/null\n+++ b/a/b.txt\n@@ -0,0 +1,2 @@\n+1\n+2\n"]);
    call(&mut chat, "file-system__write", json!({ "path": "a/b.txt", "content": "3\n", "append": true })).await;
    assert_eq!(told(&chat, &mut known), ["--- a/a/b.txt\n+++ b/a/b.txt\n@@ -1,2 +1,3 @@\n 1\n 2\n+3\n"]);
    call(&mut chat, "file-system__write", json!({ "path": "c.txt", "content": text })).await;
    assert_eq!(told(&chat, &mut known).len(), 1);
    call(&mut chat, "file-system__edit", json!({ "path": "c.txt", "oldText": "5", "newText": "five" })).await;
    let expected = "--- a/c.txt\n+++ b/c.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
    assert_eq!(told(&chat, &mut known), [expected]);

    // What changes nothing, fails, or is too large, is not told.
    call(&mut chat, "file-system__write", json!({ "path": "a/b.txt", "content": "1\n2\n3\n" })).await;
    refused(&mut chat, "file-system__edit", json!({ "path": "c.txt", "oldText": "x", "newText": "y" })).await;
    call(&mut chat, "file-system__write", json!({ "path": "c.txt", "content": "x".repeat(1_000_001) })).await;
    call(&mut chat, "file-system__write", json!({ "path": "c.txt", "content": "x" })).await;
    assert_eq!(told(&chat, &mut known), [""; 0]);
}
