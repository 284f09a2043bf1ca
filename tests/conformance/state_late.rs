//! STATE: what changes while no turn runs.

use std::fs;
use std::sync::{Arc, Mutex};

use goondan::prelude::*;
use goondan::{Agent, BoxFuture, FileStore, Model, ModelRequest, ModelResponse, json};
use tempfile::TempDir;
use tokio::sync::Notify;

/// The handle of the extension below, for the one test that uses it.
static API: Mutex<Option<ExtensionApi>> = Mutex::new(None);

/// Hands out its handle.
struct Open;

#[goondan::extension(name = "open")]
impl Open {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        *API.lock().unwrap() = Some(api);
        Self
    }
}

/// A model that never answers, and says when it was asked.
struct Silent(Arc<Notify>);

impl Model for Silent {
    fn generate<'a>(&'a self, _: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn state_that_changes_after_a_cancelled_turn_is_stored_at_once() {
    let dir = TempDir::new().unwrap();
    let asked = Arc::new(Notify::new());
    let agent = Agent::builder("assistant").model(Silent(Arc::clone(&asked))).extension::<Open>(json!({}));
    let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().await.unwrap();
    let instance = agent.instance("test").await.unwrap();
    assert!(instance.states().is_empty());
    tokio::select! {
        _ = instance.run("one") => panic!("the model never answers"),
        () = asked.notified() => {}
    }
    let api = API.lock().unwrap().take().unwrap();
    api.state().update(|seen: &mut u32| *seen += 1).unwrap();
    // The change is stored by a task of its own; whoever asks for the messages then waits for it.
    tokio::task::yield_now().await;
    let messages = instance.messages().await;
    assert_eq!(messages.iter().map(|message| message.text()).collect::<Vec<_>>(), ["one"]);
    let place = dir.path().join("instances/assistant:test");
    assert_eq!(fs::read_to_string(place.join("extensions/open.json")).unwrap().trim(), "1");
    assert_eq!(fs::read(place.join("messages/events.jsonl")).unwrap(), b"", "the turn is closed");
    let states: Vec<_> = instance.states().into_iter().map(|(name, state)| (name.to_string(), state)).collect();
    assert_eq!(states, [("open".to_owned(), json!(1))]);
}
