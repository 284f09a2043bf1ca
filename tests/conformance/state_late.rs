//! STATE: what changes while no turn runs.

use std::fs;
use std::sync::Arc;

use conformance_extensions::state_late::Open;
use goondan::prelude::*;
use goondan::testing::Chat;
use goondan::{BoxFuture, FileStore, Model, ModelRequest, ModelResponse, json};
use goondan_covers::both_linkages;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::linkage::Extended;

/// A model that never answers, and says when it was asked.
struct Silent(Arc<Notify>);

impl Model for Silent {
    fn generate<'a>(&'a self, _: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

#[both_linkages]
async fn state_that_changes_after_a_cancelled_turn_is_stored_at_once() {
    let dir = TempDir::new().unwrap();
    let asked = Arc::new(Notify::new());
    let store = FileStore::open(dir.path()).unwrap();
    let chat = Chat::builder().model(Silent(Arc::clone(&asked)));
    let chat = chat.agent(|agent| agent.with::<Open>(json!({})).store(store)).start().await.unwrap();
    let instance = chat.instance();
    assert!(instance.states().await.unwrap().is_empty());
    tokio::select! {
        _ = instance.run("one") => panic!("the model never answers"),
        () = asked.notified() => {}
    }
    chat.emit("count", ()).await.unwrap();
    // The change is stored by a task of its own; whoever asks for the messages then waits for it.
    tokio::task::yield_now().await;
    let messages = instance.messages().await.unwrap();
    assert_eq!(messages.iter().map(|message| message.text()).collect::<Vec<_>>(), ["one"]);
    let place = dir.path().join("instances/assistant:test");
    assert_eq!(fs::read_to_string(place.join("extensions/open.json")).unwrap().trim(), "1");
    assert_eq!(fs::read(place.join("messages/events.jsonl")).unwrap(), b"", "the turn is closed");
    let states: Vec<_> =
        instance.states().await.unwrap().into_iter().map(|(name, state)| (name.to_string(), state)).collect();
    assert_eq!(states, [("open".to_owned(), json!(1))]);
}
