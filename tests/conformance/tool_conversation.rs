//! Tools read the conversation as it was when the model asked for the call, in every way in which calls run.

use conformance_extensions::model_requests::ReadingTools;
use goondan::model::{ModelResponse, ScriptItem};
use goondan::prelude::*;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::agent;

fn calls(tools: &[&str]) -> ScriptItem {
    let calls = tools.iter().enumerate();
    let calls: Vec<_> = calls.map(|(at, tool)| json!({ "id": format!("c{at}"), "name": tool, "args": {} })).collect();
    let response = json!({ "text": "let me see", "toolCalls": calls });
    ScriptItem::raw(serde_json::from_value::<ModelResponse>(response).unwrap())
}

#[both_linkages]
#[covers("DISPATCH-01")]
async fn every_call_of_a_message_sees_the_conversation_up_to_that_message() {
    // Calls that only read run side by side, the others one after another.
    for tools in [["reading__look", "reading__look"], ["reading__act", "reading__act"]] {
        let script = [ScriptItem::say("hi"), calls(&tools), ScriptItem::say("done")];
        let agent = agent(script).with::<ReadingTools>(json!({})).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        instance.run("keep this").await.unwrap();
        instance.run("look").await.unwrap();
        let messages = instance.messages().await.unwrap();
        let results = messages.iter().filter(|message| message.role() == Role::Tool);
        let results: Vec<Value> = results.map(|message| serde_json::from_str(&message.text()).unwrap()).collect();
        let expected = json!({
            "texts": ["keep this", "hi", "look", "let me see"],
            "len": 4,
            "base": ["keep this", "hi"],
            "events": 2,
            "newestAsked": true,
        });
        assert_eq!(results, [expected.clone(), expected], "{tools:?}");
    }
}

#[both_linkages]
async fn a_message_that_this_turn_removed_is_only_in_the_base() {
    let script = [ScriptItem::say("hi"), calls(&["reading__look"]), ScriptItem::say("done")];
    let agent = agent(script).with::<ReadingTools>(json!({})).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("forget").await.unwrap();
    let first = instance.messages().await.unwrap()[0].text().into_owned();
    assert_eq!(first, "forget");
    instance.run("look").await.unwrap();
    let messages = instance.messages().await.unwrap();
    let seen = messages.iter().find(|message| message.role() == Role::Tool).unwrap().text().into_owned();
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen["texts"], json!(["hi", "look", "let me see"]));
    assert_eq!(seen["base"], json!(["forget", "hi"]));
}
