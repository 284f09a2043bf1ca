//! EVENT: the bus of an instance.

use conformance_extensions::events::{Emitting, Listening, SlowListener, Watching};
use goondan::event::{ExtensionCleanup, RuntimeEvent};
use goondan::json;
use goondan::model::ScriptItem;
use goondan_covers::{both_linkages, covers, interruptible};

use crate::linkage::Extended;
use crate::support::{Log, agent, one_turn};

#[both_linkages]
#[covers(
    "EVENT-01",
    "EVENT-05",
    "EVENT-06",
    "EVENT-07",
    "EVENT-08",
    "LEGACY-POINTS-07",
    "EVENT-03",
    "LEGACY-EVENTS-01",
    "LEGACY-EVENTS-02",
    "LEGACY-EVENTS-03",
    "LEGACY-EVENTS-05"
)]
#[interruptible]
async fn extensions_hear_one_another_and_the_runtime() {
    let log = Log::new();
    let agent = agent([ScriptItem::say("hi").repeat()]);
    let agent = agent.with::<Listening>(log.config()).with::<Emitting>(json!({})).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    // D-18: all events are handled before the turn is stored. Subscriptions do not wait for one another, so only the
    // order within one is certain.
    let mut heard = log.take();
    heard.sort();
    assert_eq!(
        heard,
        [
            "1 steps",
            "cancelled news",
            "cancelled news",
            "glob workspace.other None",
            "glob workspace.repoAvailable Some(\"/r\")",
            "news [\"first\",2,{\"third\":true}]",
            "news []",
            "once news",
        ]
    );
    instance.run("again").await.unwrap();
    let heard = log.take();
    assert!(!heard.iter().any(|line| line.starts_with("cancelled") || line.starts_with("once")), "{heard:?}");
    assert_eq!(heard.len(), 5, "{heard:?}");
}

#[both_linkages]
#[covers("EVENT-02")]
async fn events_stay_inside_of_their_instance() {
    let log = Log::new();
    let quiet = agent([]).with::<Listening>(log.config()).build().unwrap();
    let _quiet = quiet.instance("quiet").await.unwrap();
    one_turn(agent([ScriptItem::say("hi")]).with::<Emitting>(json!({}))).await.unwrap();
    assert_eq!(log.take(), [""; 0]);
}

#[both_linkages]
#[covers("EVENT-04")]
async fn the_runtime_reports_turns_steps_and_calls_in_one_trace() {
    let log = Log::new();
    let script = [ScriptItem::call("no__tool", json!({})), ScriptItem::say("done"), ScriptItem::fail("no", false)];
    let agent = agent(script).with::<Watching>(log.config()).build().unwrap();
    let instance = agent.instance("user:1").await.unwrap();
    let turn = instance.run("hello").await.unwrap();
    let events: Vec<RuntimeEvent> = log.take().iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let names: Vec<_> = events.iter().map(RuntimeEvent::name).collect();
    assert_eq!(
        names,
        [
            "turn.started",
            "step.started",
            "tool.completed",
            "step.completed",
            "step.started",
            "step.completed",
            "turn.completed",
        ]
    );
    let scopes: Vec<_> = events.iter().map(RuntimeEvent::scope).collect();
    for scope in &scopes {
        assert_eq!((scope.agent_name.as_str(), scope.instance_key.as_str()), ("assistant", "user:1"));
        assert_eq!((&scope.turn_id, &scope.trace_id), (turn.turn_id(), &scopes[0].trace_id));
    }
    // F-TRACE: the turn is the parent of the step, and the step of the call.
    assert_eq!(scopes[0].span.parent, None);
    assert_eq!(scopes[1].span.parent, Some(scopes[0].span.id));
    assert_eq!(scopes[2].span.parent, Some(scopes[1].span.id));
    assert_ne!(scopes[4].span.id, scopes[1].span.id);
    assert_eq!(scopes[6].span, scopes[0].span);

    instance.run("fail").await.unwrap_err();
    let events: Vec<RuntimeEvent> = log.take().iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let names: Vec<_> = events.iter().map(RuntimeEvent::name).collect();
    assert_eq!(names, ["turn.started", "step.started", "step.failed", "turn.failed"]);
    let Some(RuntimeEvent::TurnFailed { error_message, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!(error_message, "no");
}

#[both_linkages]
#[covers("LOAD-11", "LEGACY-EVENTS-06")]
async fn extensions_hear_of_their_removal_and_clean_up() {
    let log = Log::new();
    let agent = agent([]).with::<Watching>(log.config()).build().unwrap();
    agent.instance("test").await.unwrap().close().await.unwrap();
    let lines = log.take();
    let cleanup: ExtensionCleanup = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(cleanup.extension, "watching");
    assert_eq!(lines[1..], ["cleaned up"]);
}

#[both_linkages]
async fn a_slow_handler_does_not_hold_up_the_steps_of_a_turn() {
    let log = Log::new();
    one_turn(agent([ScriptItem::say("hi")]).with::<SlowListener>(log.config())).await.unwrap();
    assert_eq!(log.take(), ["a step ended", "heard the start"]);
}
