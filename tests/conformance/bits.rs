//! BITS-01: an agent's conversation with a damaged file is refused, says how to accept it, and then goes on. And how a
//! turn ended is stored.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use conformance_extensions::state::Counting;
use goondan::event::AgentEvent;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::{FileStore, InstanceId, TurnOutcome};
use goondan::{Agent, ErrorCode};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::{Log, SilentModel};

fn id() -> InstanceId {
    InstanceId { agent: "assistant".parse().unwrap(), key: "one".parse().unwrap() }
}

fn agent(store: &FileStore, log: &Log) -> Agent {
    let script = [ScriptItem::fail("as asked", false).when("^fail$").unwrap(), ScriptItem::say("fine").repeat()];
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).with::<Counting>(log.config());
    agent.store(store.clone()).build().unwrap()
}

/// Flips one bit of the first `word` in a file, which stays JSON.
fn flip(file: &Path, word: &str) {
    let mut bytes = fs::read(file).unwrap();
    let at = bytes.windows(word.len()).position(|bytes| bytes == word.as_bytes()).unwrap();
    bytes[at + word.len() - 1] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[both_linkages]
#[covers("BITS-01")]
async fn a_bit_that_was_flipped_in_a_message_or_a_state_is_found() {
    for (file, word, code) in [
        ("messages/base.jsonl", "hello", ErrorCode::STORE_DAMAGED),
        ("extensions/counting.json", "\"turns\":1", ErrorCode::EXT_STATE),
        ("messages/events.jsonl", "\"turn\":\"", ErrorCode::STORE_DAMAGED),
    ] {
        let (dir, log) = (TempDir::new().unwrap(), Log::new());
        let store = FileStore::open(dir.path()).unwrap();
        let agent = agent(&store, &log);
        let instance = agent.instance("one").await.unwrap();
        instance.run("hello").await.unwrap();
        instance.close().await.unwrap();
        let file = store.instance_dir(&id()).join(file);
        flip(&file, word);

        let error = agent.instance("one").await.err().unwrap();
        assert_eq!(error.code(), &code, "{error:?}");
        assert!(error.message().contains(file.to_str().unwrap()), "{error:?}");
        assert!(error.suggestion().unwrap().contains("goondan instance repair"), "{error:?}");
        let plan = store.inspect(&id()).unwrap();
        assert_eq!((plan.len(), &plan[0].file), (1, &file), "{plan:?}");
        assert_eq!(store.repair(&id()).unwrap(), plan);
        assert_eq!(agent.instance("one").await.unwrap().run("and now?").await.unwrap().text(), "fine");
    }
}

#[both_linkages]
async fn how_the_last_turn_ended_is_stored_with_its_event() {
    let (dir, log) = (TempDir::new().unwrap(), Log::new());
    let store = FileStore::open(dir.path()).unwrap();
    let instance = agent(&store, &log).instance("one").await.unwrap();
    let outcome = || store.read(&id()).unwrap().outcome.unwrap();
    for input in ["hello", "fail"] {
        let event = AgentEvent::input(input);
        let ended = instance.run(event.clone()).await;
        assert_eq!(outcome().event(), Some(&event.id));
        match (ended, outcome()) {
            (Ok(_), TurnOutcome::Answered { .. }) => {}
            (Err(error), TurnOutcome::Failed { code, message, .. }) => {
                assert_eq!((error.code(), error.message().into_owned()), (&code, message));
            }
            (ended, outcome) => panic!("{input}: {ended:?}, but {outcome:?}"),
        }
    }
    // State that is stored without a turn leaves the outcome alone.
    instance.close().await.unwrap();
    assert!(matches!(outcome(), TurnOutcome::Failed { .. }));
}

#[both_linkages]
async fn a_turn_that_is_closed_later_was_interrupted() {
    let (dir, log, asked) = (TempDir::new().unwrap(), Log::new(), Arc::new(Notify::new()));
    let store = FileStore::open(dir.path()).unwrap();
    let event = AgentEvent::input("hello");
    let silent = Agent::builder("assistant").model(SilentModel(Arc::clone(&asked))).with::<Counting>(log.config());
    let agent = silent.store(store.clone()).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    tokio::select! {
        _ = instance.run(event.clone()) => panic!("the model never answers"),
        () = asked.notified() => {}
    }
    assert_eq!(store.read(&id()).unwrap().outcome, None);
    instance.close().await.unwrap();
    let read = store.read(&id()).unwrap();
    assert!(read.outcome.is_none() && read.open_turn.is_some(), "closing the conversation leaves the turn open");
    let instance = agent.instance("one").await.unwrap();
    instance.abandon().await.unwrap();
    let read = store.read(&id()).unwrap();
    assert_eq!((read.outcome, read.open_turn), (Some(TurnOutcome::interrupted(Some(event.id))), None));
}
