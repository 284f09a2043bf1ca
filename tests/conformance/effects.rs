//! EFFECT: the effects that tools declare, and the outcome of their calls when a turn is interrupted.

use conformance_extensions::effects::{Effects, Insisting, Prying};
use goondan::model::{ModelResponse, ScriptItem};
use goondan::prelude::*;
use goondan::store::FileStore;
use goondan::{Instance, json};
use goondan_covers::both_linkages;

use crate::linkage::Extended;
use crate::support::{Log, agent, one_turn};

/// Calls these tools, with the ids `c0`, `c1`, …
fn calls(tools: &[&str]) -> ScriptItem {
    let calls = tools.iter().enumerate();
    let calls: Vec<_> = calls.map(|(at, tool)| json!({ "id": format!("c{at}"), "name": tool, "args": {} })).collect();
    ScriptItem::raw(serde_json::from_value::<ModelResponse>(json!({ "toolCalls": calls })).unwrap())
}

/// Runs a turn until a tool has started, and cancels it.
async fn cancel_in_tool(instance: &Instance, log: &Log) {
    let started = async {
        while log.take().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        outcome = instance.run("go") => panic!("the turn ended: {outcome:?}"),
        () = started => {}
    }
}

/// Returns the results of the calls, as the model reads them.
async fn results(instance: &Instance) -> Vec<String> {
    let messages = instance.messages().await.unwrap();
    messages.iter().filter(|message| message.role() == Role::Tool).map(|message| message.text().into_owned()).collect()
}

#[both_linkages]
async fn a_started_call_of_once_has_an_unknown_outcome_and_others_may_be_repeated() {
    for (tool, code) in [
        ("effects__pay", "error E_TOOL_OUTCOME_UNKNOWN: the turn ended while `effects__pay` ran"),
        ("effects__set", "error E_TOOL_INTERRUPTED: the turn ended before `effects__set` was answered"),
        ("effects__look", "error E_TOOL_INTERRUPTED: the turn ended before `effects__look` was answered"),
    ] {
        let log = Log::new();
        // The second call has the effect `once` too, but never starts.
        let script = [calls(&[tool, "effects__pay_busy"]), ScriptItem::say("I see")];
        let agent = agent(script).with::<Effects>(log.config()).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        cancel_in_tool(&instance, &log).await;
        assert_eq!(instance.run("and?").await.unwrap().text(), "I see");
        assert_eq!(log.take(), [""; 0], "nothing is run again by itself");
        let results = results(&instance).await;
        assert!(results[0].starts_with(code), "{results:?}");
        assert!(results[0].contains("check what it did") == (tool == "effects__pay"), "{results:?}");
        assert!(results[1].starts_with("error E_TOOL_INTERRUPTED"), "{results:?}");
        assert!(results[1].contains("call it again"), "{results:?}");
    }
}

#[both_linkages(start_paused = true)]
async fn a_call_of_once_that_takes_too_long_has_an_unknown_outcome() {
    let log = Log::new();
    let script = [calls(&["effects__pay"]), ScriptItem::say("I see").when("is unknown: check before").unwrap()];
    let turn = one_turn(agent(script).with::<Effects>(log.config())).await.unwrap();
    assert_eq!(turn.text(), "I see");
}

#[both_linkages]
async fn a_call_of_once_is_not_tried_again_after_it_started() {
    for (tool, runs) in [("look_busy", 4), ("set_busy", 4), ("pay_busy", 1)] {
        let log = Log::new();
        let script = [calls(&[&format!("effects__{tool}")]), ScriptItem::say("I see").when("busy").unwrap()];
        let agent = agent(script).with::<Insisting>(json!({})).with::<Effects>(log.config());
        one_turn(agent).await.unwrap();
        assert_eq!(log.take(), vec![tool; runs]);
    }
}

#[both_linkages]
async fn the_start_of_a_call_of_once_is_recorded_before_its_handler_runs_and_not_earlier() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::new());
    let events = dir.path().join("instances/assistant:test/messages/events.jsonl");
    let script = [calls(&["prying__once"]), calls(&["prying__often"]), ScriptItem::say("done")];
    let agent = agent(script).with::<Prying>(json!({ "log": log, "events": events }));
    one_turn(agent.store(FileStore::open(dir.path()).unwrap())).await.unwrap();
    let message = r#"{"type":"append""#;
    assert_eq!(log.take(), [message, r#"{"started":"c0"}"#, message, message]);
}
