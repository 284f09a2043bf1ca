//! Requests to agents that cannot be reached say why, and so does the log for notices, once.

use conformance_extensions::model_requests::Reaching;
use goondan::agent::LocalRouter;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::testing::Chat;
use goondan::{Agent, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::Log;

fn reaching(log: &Log, targets: &[&str]) -> goondan::agent::AgentBuilder {
    let model = ScriptedModel::new([ScriptItem::say("done").repeat()]);
    Agent::builder("a").model(model).with::<Reaching>(json!({ "log": log, "targets": targets }))
}

#[both_linkages]
#[covers("AGENTS-08")]
async fn an_agent_that_was_dropped_is_named_and_not_listed() {
    let (log, router) = (Log::new(), LocalRouter::new());
    let logs = Chat::builder().start().await.unwrap();
    let a = reaching(&log, &["b", "c"]).router(router.clone()).build().unwrap();
    router.add(&a);
    router.add(&Agent::builder("b").model(ScriptedModel::new([])).build().unwrap());
    let instance = a.instance("x").await.unwrap();
    instance.run("hello").await.unwrap();
    instance.run("again").await.unwrap();
    let dropped = "the agent `b` was added to the router, but the program has dropped it since";
    let missing = "there is no agent `c`";
    let lines = log.take();
    assert_eq!(lines.len(), 4);
    for (line, expected) in lines.iter().zip([dropped, missing, dropped, missing]) {
        assert!(line.starts_with("false ") && line.contains(expected), "{line}");
    }
    let warnings: Vec<_> = logs.logs().into_iter().filter(|line| line.text.contains("notice")).collect();
    assert_eq!(warnings.len(), 2, "each target once: {warnings:?}");
    assert!(warnings[0].text.contains(dropped) && warnings[1].text.contains("reachable are: a"), "{warnings:?}");
}

#[both_linkages]
async fn an_agent_without_a_router_learns_whether_it_was_added_to_one() {
    let (log, router) = (Log::new(), LocalRouter::new());
    let a = reaching(&log, &["b"]).build().unwrap();
    let instance = a.instance("x").await.unwrap();
    instance.run("hello").await.unwrap();
    router.add(&a);
    instance.run("again").await.unwrap();
    let lines = log.take();
    assert!(lines[0].contains("`a` cannot reach `b`: the program has given it no router"), "{lines:?}");
    let built = "`a` cannot reach `b`: it was added to a router, but built without one";
    assert!(lines[1].contains(built), "{lines:?}");
}
