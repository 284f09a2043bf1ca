//! CTX: what middlewares see and may change.

use conformance_extensions::context::{Curating, Inner, Outer, Probing, Tracer};
use goondan::event::AgentEvent;
use goondan::model::ScriptItem;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent, one_turn};

#[both_linkages]
#[covers("CTX-01", "CTX-02", "CTX-14", "CTX-03", "CTX-11", "CTX-12", "CTX-13", "LEGACY-CTX-01", "ENTRY-09", "TOOL-02")]
async fn contexts_identify_the_run() {
    let log = Log::new();
    let script = [ScriptItem::call("probe__echo", json!({ "a": 1 })), ScriptItem::say("done")];
    let agent = agent(script).with::<Probing>(log.config()).build().unwrap();
    let event = AgentEvent::input("hello");
    let id = event.id.clone();
    agent.instance("user:1").await.unwrap().run(event).await.unwrap();
    assert_eq!(
        log.take(),
        [
            "turn assistant user:1 probing".to_owned(),
            format!("input {id} Some(\"hello\") local"),
            "step 0 assistant user:1 Some(\"hello\") [\"probe__echo\"]".to_owned(),
            "call probe__echo {\"a\":1} step 0".to_owned(),
            "for assistant user:1".to_owned(),
            "returned {\"a\":1}".to_owned(),
            "step 1 assistant user:1 Some(\"hello\") [\"probe__echo\"]".to_owned(),
        ]
    );
}

#[both_linkages]
async fn the_trace_of_the_event_is_kept() {
    let log = Log::new();
    let agent = agent([ScriptItem::say("hi").repeat()]).with::<Tracer>(log.config()).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut event = AgentEvent::input("hello");
    event.trace_id = Some("0123456789abcdef0123456789abcdef".parse().unwrap());
    instance.run(event).await.unwrap();
    instance.run("hello").await.unwrap();
    let traces = log.take();
    assert_eq!(traces[0], "0123456789abcdef0123456789abcdef");
    assert!(traces[1].len() == 32 && traces[1] != traces[0], "{traces:?}");
}

#[both_linkages]
#[covers("CTX-07", "CTX-08", "CTX-09", "CTX-15")]
async fn metadata_and_arguments_are_shared_inward_and_outward() {
    let log = Log::new();
    let script = [
        ScriptItem::call("probe__echo", json!({})),
        ScriptItem::say("done").when(r#"^\{"replaced, was":"outer"\}$"#).unwrap(),
    ];
    let agent = agent(script).with::<Outer>(log.config()).with::<Inner>(json!({}));
    assert_eq!(one_turn(agent).await.unwrap().text(), "done");
    assert_eq!(
        log.take(),
        [
            r#"call sees {"call":1,"inner saw":1}"#,
            // D-15: one map for the turn and its steps, another for each call.
            r#"turn sees {"outer":"set","steps":2}"#,
        ]
    );
}

#[both_linkages]
#[covers("CTX-05", "CTX-06", "LEGACY-POINTS-03", "LEGACY-TOOLDEF-03")]
async fn a_step_shows_the_model_what_its_middlewares_left_in_the_catalog() {
    let record = tempfile::tempdir().unwrap();
    let path = record.path().join("requests.jsonl");
    let call = |name: &str| ScriptItem::call(name, json!({}));
    let script = [
        ScriptItem::calls([("hidden__tool", json!({})), ("added__tool", json!({}))]),
        call("hidden__tool"),
        ScriptItem::say("done"),
    ];
    let model = goondan::model::ScriptedModel::new(script).record(&path);
    let agent = goondan::Agent::builder("assistant").model(model).with::<Curating>(json!({}));
    let turn = one_turn(agent).await.unwrap();
    let statuses: Vec<_> = turn.tool_calls().iter().map(|call| json!(call.status)).collect();
    assert_eq!(statuses, ["error", "error", "ok"], "hidden in step 0, without handler, and shown again in step 1");

    let requests = std::fs::read_to_string(&path).unwrap();
    let requests: Vec<Value> = requests.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        requests[0]["tools"],
        json!([{ "name": "kept__tool", "description": "rewritten" }, { "name": "added__tool" }])
    );
    assert_eq!(requests[1]["tools"], json!([{ "name": "kept__tool" }, { "name": "hidden__tool" }]));
    let refusals: Vec<_> = requests[1]["messages"].as_array().unwrap()[2..].iter().map(Value::to_string).collect();
    assert!(refusals[0].contains("E_TOOL_NOT_IN_CATALOG"), "{refusals:?}");
    assert!(refusals[1].contains("E_TOOL_NOT_FOUND"), "{refusals:?}");
}
