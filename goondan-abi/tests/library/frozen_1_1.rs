//! A library that was built from the SDK when version 1.1 of the tables was frozen runs a conversation (LINK-03).
#![cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]

use goondan::store::FileStore;
use goondan_abi::Library;
use goondan_core::{Part, Role, ToolOutput};
use goondan_runtime::{Agent, ScriptItem, ScriptedModel, TurnUpdate};
use serde_json::json;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frozen/sdk-1.1/libsdk.so");

#[tokio::test]
async fn a_library_built_from_the_sdk_of_1_1_runs_a_conversation() {
    let library = Library::inspect(FILE).unwrap();
    assert_eq!(library.abi_version(), "1.1");
    let library = library.load().unwrap();
    let call = |tool: &str| ScriptItem::call(format!("sdk11__{tool}"), json!({}));
    let title = || ScriptItem::say("a title").when("^a title").unwrap();
    let script = [
        title(),
        call("draw"),
        call("dry"),
        call("learn"),
        call("learnt"),
        call("wake"),
        ScriptItem::say("done"),
        title(),
    ];
    let dir = tempfile::tempdir().unwrap();
    let requests = dir.path().join("requests.jsonl");
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script).record(&requests));
    let agent = agent.described("sdk11", library.extension(None).unwrap(), json!({}));
    let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().unwrap();
    let mut background = agent.subscribe_turns();
    let instance = agent.instance("user:1").await.unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join("extensions/sdk11/opened")).unwrap(), "user:1");

    let mut turn = instance.run_stream("hello");
    let (mut progress, mut pieces) = (Vec::new(), Vec::new());
    while let Some(update) = turn.next().await {
        match update {
            TurnUpdate::Progress { done, total, text, .. } => progress.push((done, total, text)),
            TurnUpdate::Text { text, .. } => pieces.push(text),
            _ => {}
        }
    }
    assert_eq!(turn.finish().await.unwrap().text(), "done");
    assert_eq!(progress, [(1.0, Some(2.0), "half".to_owned())]);
    assert_eq!(pieces, ["done"], "the stream was held");
    // The turn that a tool has delegated, whose answer is prepared.
    while background.next_pending().await.is_some() {}

    let messages = instance.messages().await.unwrap();
    let results = messages.iter().filter(|message| message.role() == Role::Tool);
    let results = results.flat_map(|message| message.content().parts().to_vec()).filter_map(|part| match part {
        Part::ToolResult(result) => Some((result.is_error, result.output)),
        _ => None,
    });
    let results: Vec<_> = results.collect();
    let ToolOutput::Content(parts) = &results[0].1 else { panic!("{results:?}") };
    assert_eq!((results[0].0, parts.len()), (false, 2));
    assert_eq!((results[1].0, results[1].1.to_text().into_owned()), (true, "a prepared reply".to_owned()));
    assert_eq!(results[3].1, ToolOutput::Json(json!({ "learnt": {} })));
    assert_eq!(messages.last().unwrap().text(), "a prepared answer");
    assert!(messages.iter().all(|message| !message.text().contains("projected")));
    let sent = std::fs::read_to_string(requests).unwrap();
    assert!(sent.contains("projected 0") && sent.contains("projected 5"));

    let states = instance.states().await.unwrap();
    let notes: Vec<String> = serde_json::from_value(states.into_values().next().unwrap()).unwrap();
    let recorded = [
        "None false",
        "None true",
        "sdk11__draw true true",
        "2 messages, 0 agents",
        "Error Some(\"sdk11\")",
        "sdk11__learnt true true",
        "None None Some(\"sdk11\")",
        "the agent's model a title false \"done\"",
        "woken \"a prepared answer\"",
    ];
    for expected in recorded {
        assert!(notes.iter().any(|note| note == expected), "{expected:?} is not in {notes:#?}");
    }
    assert!(notes[0].starts_with("sdk11 assistant user:1 Some("), "{notes:#?}");
    instance.close().await.unwrap();
}
