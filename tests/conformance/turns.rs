//! Each message carries the turn that made it.

use std::fs;

use conformance_extensions::turns::Dating;
use goondan::model::ScriptItem;
use goondan::store::{FileStore, InstanceId};
use goondan::{Value, json};
use goondan_covers::both_linkages;

use crate::linkage::Extended;
use crate::support::{Log, agent};

#[both_linkages]
async fn a_message_carries_the_turn_that_made_it_whatever_an_extension_says() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new());
    let messages = dir.path().join("instances/assistant:one/messages");
    fs::create_dir_all(&messages).unwrap();
    // What was stored before messages carried it.
    let line = |id: &str| {
        json!({
            "id": id, "data": { "role": "user", "content": id }, "metadata": {},
            "createdAt": "2026-01-01T00:00:00.000Z", "source": { "type": "user" },
        })
    };
    fs::write(messages.join("base.jsonl"), format!("{}\n{}\n{}\n", line("m1"), line("m2"), line("m3"))).unwrap();
    let store = FileStore::open(dir.path()).unwrap();
    store.repair(&InstanceId { agent: "assistant".parse().unwrap(), key: "one".parse().unwrap() }).unwrap();
    let script = [ScriptItem::call("no__tool", json!({})), ScriptItem::say("done").repeat()];
    let agent = agent(script).with::<Dating>(log.config()).store(store);
    let agent = agent.build().unwrap();
    let mut turns = Vec::new();
    for input in ["one", "two"] {
        turns.push(agent.instance("one").await.unwrap().run(input).await.unwrap().turn_id().clone());
    }
    let (first, second) = (turns[0].as_str(), turns[1].as_str());
    let seen = |text: &str, turn: Option<&str>| json!([text, turn, true]);
    let log: Vec<Value> = log.take().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The first message is the same, changed, and the second is replaced by another one.
    let added = |turn| [seen("another", turn), seen("m3", None)];
    let one = [seen("one", Some(first)), seen("forged", Some(first))];
    let two = [seen("two", Some(second)), seen("forged", Some(second))];
    assert_eq!(log[0], seen("m1", None));
    assert_eq!((&log[1..3], &log[3..5]), (&added(Some(first))[..], &one[..]));
    assert_eq!(log[5], seen("m1", None));
    assert_eq!((&log[6..8], &log[8..10]), (&added(Some(second))[..], &one[..]));
    assert!(log[10..13].iter().all(|line| line[1] == first), "the call, its result and the answer: {log:?}");
    assert_eq!(log[13..], two);

    agent.close().await.unwrap();
    let base = fs::read_to_string(messages.join("base.jsonl")).unwrap();
    let base: Vec<Value> = base.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let dated = |id| {
        let mut line = line(id);
        line["source"] = json!({ "type": "extension", "extensionName": "dating" });
        line
    };
    assert_eq!((&base[0], &base[2]), (&dated("m1"), &line("m3")), "what is not known is not written");
    let stored: Vec<_> = base.iter().map(|line| line["turn"].as_str()).collect();
    let (first, second) = (Some(first), Some(second));
    assert_eq!(stored, [None, second, None, first, first, first, first, first, second, second, second]);
}
