//! F-BASE: the tool that waits.

use std::time::Duration;

use goondan::agent::TurnUpdate;
use goondan::json;
use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::tool::Effect;
use goondan_covers::both_linkages;

use crate::call::{call, effects, open, refused};
use crate::linkage::WithPlugin;

#[both_linkages]
async fn a_wait_takes_as_long_as_it_says() {
    let mut chat = open("wait", json!({})).await;
    assert_eq!(effects(&chat).await, [("wait__seconds".to_owned(), Effect::Idempotent)]);
    let waited = call(&mut chat, "wait__seconds", json!({ "seconds": 0.002 })).await;
    assert_eq!(waited, json!({ "waitedSeconds": 0.002, "waitedMs": 2 }));
    assert_eq!(call(&mut chat, "wait__seconds", json!({ "seconds": 0 })).await["waitedMs"], 0);
}

#[both_linkages]
async fn no_wait_is_longer_than_five_minutes() {
    let mut chat = open("wait", json!({})).await;
    for seconds in [json!(300.5), json!(-1), json!(1e300), json!("3"), json!(null)] {
        let (code, message) = refused(&mut chat, "wait__seconds", json!({ "seconds": seconds })).await;
        assert_eq!(code, "E_TOOL_INVALID_ARGS", "{message}");
    }
}

/// The longest wait fits into the deadline of the tool, although that of other tools is shorter.
#[tokio::test(start_paused = true)]
async fn the_longest_wait_is_not_cut() {
    let mut chat = Chat::with::<basics::wait::tools::Extension>(json!({})).start().await.unwrap();
    let waited = call(&mut chat, "wait__seconds", json!({ "seconds": 300 })).await;
    assert_eq!(waited["waitedMs"], 300_000);
}

#[both_linkages]
async fn a_wait_ends_with_its_turn() {
    let chat = Chat::builder().agent(|agent| agent.plugin("wait", "wait", json!({})));
    let script = [ScriptItem::call("wait__seconds", json!({ "seconds": 300 })), ScriptItem::say("fine").repeat()];
    let chat = chat.script(script).start().await.unwrap();
    let mut turn = chat.instance().run_stream("wait");
    while !matches!(turn.next().await.unwrap(), TurnUpdate::Event(event) if event.name() == "tool.called") {}
    drop(turn);
    let next = tokio::time::timeout(Duration::from_secs(60), chat.say("go on"));
    assert_eq!(next.await.unwrap().unwrap().text(), "fine");
}
