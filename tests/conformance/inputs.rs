//! F-EVT: the inputs that start turns.

use goondan::ErrorCode;
use goondan::event::AgentEvent;
use goondan::model::ScriptItem;
use goondan::store::FileStore;

use crate::support::agent;

#[tokio::test]
async fn a_blank_input_is_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let agent = agent([ScriptItem::say("hi").repeat()]).store(FileStore::open(dir.path()).unwrap()).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let stored = || {
        let base = dir.path().join("instances/assistant:test/messages");
        ["base.jsonl", "events.jsonl", "runtime-events.jsonl"].map(|file| std::fs::read(base.join(file)).ok())
    };
    let before = stored();
    for blank in ["", " ", " \t\r\n", "\u{a0}\u{2003}"] {
        let error = instance.run(blank).await.unwrap_err();
        assert_eq!((error.code(), error.message().as_ref()), (&ErrorCode::INPUT, "the input is empty"));
        assert!(error.suggestion().is_some() && error.turn().is_none());
        let streamed = instance.run_stream(blank).finish().await.unwrap_err();
        assert_eq!(streamed.code(), &ErrorCode::INPUT);
        instance.send(blank);
    }
    assert!(instance.messages().await.unwrap().is_empty());
    assert_eq!(stored(), before);
    assert_eq!(instance.run(" hello ").await.unwrap().text(), "hi");
    assert_eq!(instance.messages().await.unwrap()[0].text(), " hello ", "a text is not changed");
}

#[tokio::test]
async fn an_event_without_input_is_a_turn_without_a_message_of_the_user() {
    let agent = agent([ScriptItem::say("it is noon")]).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut event = AgentEvent::input("");
    event.kind = "timer".to_owned();
    event.input = None;
    event.metadata.insert("hour".to_owned(), 12.into());
    assert_eq!(instance.run(event).await.unwrap().text(), "it is noon");
    assert_eq!(instance.messages().await.unwrap().len(), 1);
}
