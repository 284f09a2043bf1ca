//! The progress of tool calls: told to the stream of the turn and on the bus, and never stored.

use std::fs;
use std::path::Path;
use std::time::Duration;

use conformance_extensions::progress::{HearingProgress, Working};
use goondan::agent::{EventStream, Instance, TurnUpdate};
use goondan::model::ScriptItem;
use goondan::store::FileStore;
use goondan::{Value, json};
use goondan_covers::both_linkages;

use crate::linkage::Extended;
use crate::support::{Log, agent};

fn script() -> [ScriptItem; 2] {
    [ScriptItem::call("working__work", json!({})), ScriptItem::say("done")]
}

/// Lets the tool go on a second after it began to wait.
async fn let_it_go(instance: &Instance, mut waits: EventStream) {
    waits.next().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    instance.events().emit("work.go", ()).await.unwrap();
}

fn holds(directory: &Path, text: &str) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() { holds(&path, text) } else { fs::read_to_string(path).unwrap().contains(text) }
    })
}

#[both_linkages(start_paused = true)]
async fn the_first_and_the_newest_update_of_each_moment_are_told_to_stream_and_bus_and_none_is_stored() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new());
    let agent = agent(script()).with::<Working>(json!({})).with::<HearingProgress>(log.config());
    let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let waits = instance.events().subscribe("work.waits").unwrap();
    let mut turn = instance.run_stream("hello");
    let told = async {
        let mut told = Vec::new();
        while let Some(update) = turn.next().await {
            if let TurnUpdate::Progress { call, done, total, text } = update {
                told.push((call.to_string(), done, total, text));
            }
        }
        turn.finish().await.unwrap();
        told
    };
    let (told, ()) = tokio::join!(told, let_it_go(&instance, waits));
    let call = told[0].0.clone();
    let update = |done, total, text: &str| (call.clone(), done, total, text.to_owned());
    let [first, second] = ["first half-4711", "second half-4711"];
    let expected = [
        update(0.0, Some(20.0), first),
        update(9.0, Some(20.0), first),
        update(10.0, None, second),
        update(19.0, None, second),
    ];
    assert_eq!(told, expected);
    let heard: Vec<Value> = log.take().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let event = |(_, done, total, text): &(String, f64, Option<f64>, String)| {
        let mut event = json!({ "toolCallId": call, "toolName": "working__work", "done": done, "text": text });
        if let Some(total) = total {
            event["total"] = json!(total);
        }
        event
    };
    assert_eq!(heard, expected.iter().map(event).collect::<Vec<_>>());
    instance.close().await.unwrap();
    assert!(holds(dir.path(), "working__work") && !holds(dir.path(), "half-4711"));
}

#[both_linkages(start_paused = true)]
async fn progress_that_nothing_watches_is_nothing() {
    let instance = agent(script()).with::<Working>(json!({})).build().unwrap().instance("test").await.unwrap();
    let waits = instance.events().subscribe("work.waits").unwrap();
    let (turn, ()) = tokio::join!(instance.run("hello"), let_it_go(&instance, waits));
    assert_eq!(turn.unwrap().text(), "done");
}
