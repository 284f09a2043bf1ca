//! STATE: changes while no turn runs.

use std::fs;
use std::sync::Arc;

use conformance_extensions::state_late::Open;
use goondan::json;
use goondan::store::FileStore;
use goondan::testing::Chat;
use goondan_covers::both_linkages;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::SilentModel;

#[both_linkages]
async fn state_that_changes_after_an_interrupted_turn_is_stored_at_once() {
    let dir = TempDir::new().unwrap();
    let asked = Arc::new(Notify::new());
    let store = FileStore::open(dir.path()).unwrap();
    let chat = Chat::builder().model(SilentModel(Arc::clone(&asked)));
    let chat = chat.agent(|agent| agent.with::<Open>(json!({})).store(store)).start().await.unwrap();
    let instance = chat.instance();
    assert!(instance.states().await.unwrap().is_empty());
    tokio::select! {
        _ = instance.run("one") => panic!("the model never answers"),
        () = asked.notified() => {}
    }
    chat.emit("count", ()).await.unwrap();
    // A background task stores the change. `messages` waits for it.
    tokio::task::yield_now().await;
    let messages = instance.messages().await.unwrap();
    assert_eq!(messages.iter().map(|message| message.text()).collect::<Vec<_>>(), ["one"]);
    let stored = dir.path().join("instances/assistant:test");
    let events = fs::read_to_string(stored.join("messages/events.jsonl")).unwrap();
    let last = events.lines().last().unwrap();
    assert!(last.starts_with("{\"suspend\"") && last.contains(r#""state":{"open":1}"#), "the turn is open: {events}");
    instance.abandon().await.unwrap();
    let events = fs::read_to_string(stored.join("messages/events.jsonl")).unwrap();
    let last = events.lines().last().unwrap();
    assert!(last.starts_with("{\"fold\"") && last.contains(r#""state":{"open":1}"#), "the turn is closed: {events}");
    let states: Vec<_> =
        instance.states().await.unwrap().into_iter().map(|(name, state)| (name.to_string(), state)).collect();
    assert_eq!(states, [("open".to_owned(), json!(1))]);
}
