//! EVENT: handlers that emit events.

use conformance_extensions::event_loops::{CountingDown, Echoing, Spawning, failing_handler};
use goondan::extension::LogLevel;
use goondan::json;
use goondan::model::ScriptItem;
use goondan::testing::{Chat, LogLine};
use goondan_covers::both_linkages;

use crate::linkage::Extended;
use crate::support::Log;

/// Returns the lines of the log about loops.
fn loops(chat: &Chat) -> Vec<LogLine> {
    chat.logs().into_iter().filter(|line| line.text.contains("E_EVENT_LOOP")).collect()
}

#[both_linkages]
async fn a_handler_that_emits_what_it_hears_ends_and_is_named_once() {
    let log = Log::new();
    let chat = Chat::builder().script([ScriptItem::say("fine").repeat()]);
    let chat = chat.agent(|agent| agent.with::<Echoing>(log.config())).start().await.unwrap();
    chat.say("hello").await.unwrap();
    assert_eq!(log.take(), ["echo"; 63], "with the start of the turn, 64 events led to one another");
    chat.say("again").await.unwrap();
    assert_eq!(log.take(), ["echo"; 63], "a later turn is a new chain");
    let loops = loops(&chat);
    let [line] = &loops[..] else { panic!("not once: {loops:?}") };
    assert_eq!((line.level, line.extension.as_deref()), (LogLevel::Error, Some("echoing")));
    assert_eq!(line.fields["event"], "echo");
    assert!(line.text.contains("extension `echoing`, handler of `echo`: `echo` was not emitted"), "{}", line.text);
    assert!(line.text.contains("`echo` (handled by `echoing`) -> `echo`"), "{}", line.text);
    assert!(line.text.contains("help: "), "{}", line.text);
}

#[both_linkages]
async fn handlers_that_answer_each_other_end_and_the_chain_is_shown() {
    let log = Log::new();
    let chat = Chat::builder().agent(|agent| {
        let ping = json!({ "log": log, "hears": "ping", "emits": "pong" });
        let pong = json!({ "log": log, "hears": "pong", "emits": "ping" });
        agent.with_named("one", "answering", ping).with_named("two", "answering", pong)
    });
    let chat = chat.start().await.unwrap();
    chat.emit("ping", ()).await.unwrap();
    assert_eq!(log.take().len(), 64);
    let [line] = &loops(&chat)[..] else { panic!("not once: {:?}", loops(&chat)) };
    assert_eq!(line.extension.as_deref(), Some("two"));
    let chain = "`ping` (handled by `one`) -> `pong` (handled by `two`) -> `ping`";
    assert!(line.text.contains(chain), "{}", line.text);
}

#[both_linkages]
async fn several_handlers_that_emit_what_they_hear_end() {
    let log = Log::new();
    let echo = json!({ "log": log, "hears": "echo", "emits": "echo" });
    let chat = Chat::builder().agent(|agent| {
        ["one", "two", "three"].into_iter().fold(agent, |agent, name| agent.with_named(name, "answering", echo.clone()))
    });
    let chat = chat.start().await.unwrap();
    chat.emit("echo", ()).await.unwrap();
    let named: Vec<_> = loops(&chat).into_iter().filter_map(|line| line.extension).collect();
    assert!((1..=3).contains(&named.len()), "each at most once: {named:?}");
    chat.emit("other", ()).await.unwrap();
    log.take();
    chat.emit("echo.not", ()).await.unwrap();
    assert_eq!(log.take(), [""; 0], "nothing is left in the queues");
}

#[both_linkages]
async fn a_chain_of_ten_events_is_no_loop() {
    let log = Log::new();
    let chat = Chat::builder().agent(|agent| agent.with::<CountingDown>(log.config())).start().await.unwrap();
    chat.emit("count.10", ()).await.unwrap();
    assert_eq!(log.take(), (0..=10).rev().map(|number| format!("count.{number}")).collect::<Vec<_>>());
    assert!(loops(&chat).is_empty());
}

#[both_linkages]
async fn a_loop_through_tasks_ends_when_the_bus_is_drained() {
    let log = Log::new();
    let chat = Chat::builder().agent(|agent| agent.with::<Spawning>(log.config())).start().await.unwrap();
    chat.emit("spawn", ()).await.unwrap();
    // The first event was emitted before.
    assert_eq!(log.take().len(), 1_001);
    let [line] = &loops(&chat)[..] else { panic!("not once: {:?}", loops(&chat)) };
    assert_eq!((line.extension.as_deref(), &line.fields["event"]), (Some("spawning"), &json!("spawn")));
    chat.emit("spawn", ()).await.unwrap();
    assert_eq!(log.take().len(), 1_001, "the subscription goes on");
}

#[both_linkages]
async fn the_log_line_of_a_failing_handler_says_its_extension() {
    let chat = Chat::builder().agent(|agent| agent.with::<failing_handler::Extension>(json!({})));
    let chat = chat.start().await.unwrap();
    chat.emit("fail", ()).await.unwrap();
    let lines: Vec<_> = chat.logs().into_iter().filter(|line| line.text.contains("E_MINE")).collect();
    let [line] = &lines[..] else { panic!("not once: {lines:?}") };
    assert_eq!((line.level, line.extension.as_deref()), (LogLevel::Error, Some("failing-handler")));
    let report = "E_MINE: extension `failing-handler`, handler of `fail`: as asked\n  help: do not ask";
    assert!(line.text.contains(report), "{}", line.text);
}
