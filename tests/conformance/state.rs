//! STATE: the state of extensions.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use conformance_extensions::state::{Counting, Keeping};
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::{Agent, ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::linkage::Extended;
use crate::support::Log;

/// Builds an agent with a file store. Its model requests `calls` calls of the counting tool after the input `count`,
/// and fails after the input `fail`.
async fn agent(dir: &Path, log: &Log, calls: usize) -> Agent {
    let call = ("counting__count", json!({}));
    let script = [
        ScriptItem::calls(vec![call; calls]).when("^count$").unwrap().repeat(),
        ScriptItem::fail("as asked", false).when("^fail$").unwrap().repeat(),
        ScriptItem::say("fine").repeat(),
    ];
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).with::<Counting>(log.config());
    agent.store(FileStore::open(dir).unwrap()).build().unwrap()
}

/// Returns the state that is stored: the newest one in the journal, else the one in its file.
fn state_file(dir: &Path, key: &str) -> Option<Value> {
    let dir = dir.join(format!("instances/assistant:{key}"));
    let journal = fs::read_to_string(dir.join("messages/events.jsonl")).ok()?;
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut committed = records.filter(|record| record.get("fold").is_some()).rev();
    let newest = committed.find_map(|record| record["state"].get("counting").cloned());
    newest.or_else(|| Some(serde_json::from_slice(&fs::read(dir.join("extensions/counting.json")).ok()?).unwrap()))
}

#[both_linkages]
#[covers("STATE-01", "STATE-02", "STATE-05", "STATE-06", "STATE-07", "STATE-10", "TOOL-06")]
async fn state_is_stored_at_the_end_of_every_turn_and_read_at_the_next_start() {
    let (dir, log) = (TempDir::new().unwrap(), Log::new());
    let instance = agent(dir.path(), &log, 1).await.instance("one").await.unwrap();
    assert_eq!(state_file(dir.path(), "one"), None);
    instance.run("hello").await.unwrap();
    assert_eq!(state_file(dir.path(), "one"), Some(json!({ "turns": 1, "calls": 0 })));
    instance.run("count").await.unwrap();
    assert_eq!(state_file(dir.path(), "one"), Some(json!({ "turns": 2, "calls": 1 })));
    instance.close().await.unwrap();
    let file = fs::read(dir.path().join("instances/assistant:one/extensions/counting.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&file).unwrap(), json!({ "turns": 2, "calls": 1 }));

    let instance = agent(dir.path(), &log, 1).await.instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    assert_eq!(log.take(), ["None", "Some((1, 0))", "Some((2, 1))"]);
}

#[both_linkages]
#[covers("STATE-04", "LEGACY-STATE-01")]
async fn each_instance_has_its_own_state() {
    let (dir, log) = (TempDir::new().unwrap(), Log::new());
    let agent = agent(dir.path(), &log, 1).await;
    for key in ["one", "two", "one"] {
        agent.instance(key).await.unwrap().run("hello").await.unwrap();
    }
    assert_eq!(log.take(), ["None", "None", "Some((1, 0))"]);
}

#[both_linkages]
#[covers("STATE-03", "LEGACY-RECONCILE-05")]
async fn state_belongs_to_the_name_of_the_extension() {
    let (dir, log) = (TempDir::new().unwrap(), Log::new());
    let run = async |names: &[&str]| {
        let mut agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("fine")]));
        for name in names {
            agent = agent.with_named(*name, "counting", log.config());
        }
        let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().unwrap();
        let instance = agent.instance("one").await.unwrap();
        instance.run("hello").await.unwrap();
        instance.close().await.unwrap();
        log.take()
    };
    assert_eq!(run(&["a", "b"]).await, ["None", "None"], "two names, two states");
    assert_eq!(run(&["b", "a"]).await, ["Some((1, 0))", "Some((1, 0))"], "the order does not matter");
    assert_eq!(run(&["c"]).await, ["None"], "a new name starts anew");
    assert_eq!(run(&["a"]).await, ["Some((2, 0))"], "an old name finds its state again");
}

#[both_linkages]
async fn a_failed_turn_keeps_the_state_that_it_changed() {
    let (dir, log) = (TempDir::new().unwrap(), Log::new());
    let instance = agent(dir.path(), &log, 1).await.instance("one").await.unwrap();
    instance.run("fail").await.unwrap_err();
    assert_eq!(state_file(dir.path(), "one"), Some(json!({ "turns": 1, "calls": 0 })), "D-11");
}

#[both_linkages]
async fn concurrent_handlers_do_not_lose_updates() {
    let (dir, log) = (TempDir::new().unwrap(), Log::new());
    let instance = agent(dir.path(), &log, 50).await.instance("one").await.unwrap();
    instance.run("count").await.unwrap();
    assert_eq!(state_file(dir.path(), "one"), Some(json!({ "turns": 1, "calls": 50 })), "D-23");
}

#[both_linkages]
async fn unreadable_state_stops_the_start_and_is_not_reset() {
    let (dir, log) = (TempDir::new().unwrap(), Log::new());
    let first = agent(dir.path(), &log, 1).await;
    let instance = first.instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    instance.close().await.unwrap();
    let file = dir.path().join("instances/assistant:one/extensions/counting.json");
    fs::write(&file, "{ broken").unwrap();
    let error = first.instance("one").await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_STATE);
    assert!(error.message().contains("counting.json"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{ broken");
}

#[both_linkages]
#[covers("STATE-08", "STATE-09")]
async fn any_json_value_is_state_and_nothing_else() {
    for value in [json!([1, "two", null]), json!(3.25), json!("text"), json!({ "a": { "b": [] } }), json!(false)] {
        let dir = TempDir::new().unwrap();
        let open = async |value: &Value| {
            let model = ScriptedModel::new([ScriptItem::say("fine")]);
            let agent = Agent::builder("assistant").model(model).with::<Keeping>(json!({ "value": value }));
            let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().unwrap();
            let instance = agent.instance("one").await.unwrap();
            let state = instance.states().await.unwrap().into_values().collect::<Vec<_>>();
            instance.close().await.unwrap();
            let file = dir.path().join("instances/assistant:one/extensions/keeping.json");
            assert_eq!(state, [serde_json::from_slice::<Value>(&fs::read(file).unwrap()).unwrap()]);
            state[0].clone()
        };
        // D-18: what `#[init]` sets is stored without a turn.
        assert_eq!(open(&value).await, value);
        assert_eq!(open(&json!("keep")).await, value, "a value that JSON cannot hold leaves the old one");
    }
}

#[both_linkages]
async fn a_dropped_instance_closes_itself_and_can_be_opened_again_at_once() {
    let (dir, log) = (TempDir::new().unwrap(), Log::new());
    let agent = agent(dir.path(), &log, 1).await;
    for _ in 0..20 {
        agent.instance("one").await.unwrap().run("hello").await.unwrap();
    }
    assert_eq!(state_file(dir.path(), "one"), Some(json!({ "turns": 20, "calls": 0 })));
}

#[both_linkages]
async fn a_closed_instance_refuses_turns_and_the_agent_opens_a_new_one() {
    let (dir, log) = (TempDir::new().unwrap(), Log::new());
    let agent = Arc::new(agent(dir.path(), &log, 1).await);
    let instance = agent.instance("one").await.unwrap();
    instance.close().await.unwrap();
    instance.close().await.unwrap();
    assert_eq!(instance.run("hello").await.unwrap_err().code(), &ErrorCode::INSTANCE_CLOSED);
    agent.instance("one").await.unwrap().run("hello").await.unwrap();
}
