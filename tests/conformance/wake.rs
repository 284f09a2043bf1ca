//! Delegation: `agent.delegate` on the bus starts a turn, and `agent.delegationResult` comes back.

use std::sync::Arc;

use conformance_extensions::wake::Waking;
use goondan::agent::{AgentBuilder, LocalRouter};
use goondan::event::{AgentDelegate, AgentDelegationResult};
use goondan::model::ScriptItem;
use goondan::{Agent, Instance, json};
use goondan_covers::{both_linkages, covers};
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::{Log, SilentModel, agent};

fn waking(agent: AgentBuilder, log: &Log, from: &str, target: &str, times: usize) -> AgentBuilder {
    agent.with::<Waking>(json!({ "log": log, "from": from, "target": target, "times": times }))
}

/// Reads the log until it has `lines` lines. The extension writes from tasks of the runtime, which run meanwhile.
async fn lines(log: &Log, lines: usize) -> Vec<String> {
    let mut read = Vec::new();
    while read.len() < lines {
        read.extend(log.take());
        tokio::task::yield_now().await;
    }
    read
}

/// Waits until all delegated turns of the conversation have ended.
async fn settled(instance: &Instance, turns: usize) -> usize {
    let mut inputs = 0;
    while inputs < turns {
        inputs = instance.messages().await.unwrap().iter().filter(|message| message.text() == "woken").count();
        tokio::task::yield_now().await;
    }
    inputs
}

#[both_linkages]
#[covers("LEGACY-EVENTS-04")]
async fn a_delegation_from_anywhere_starts_a_turn_and_its_result_comes_back() {
    for from in ["init", "task", "turn", "tool"] {
        let log = Log::new();
        let script = [
            ScriptItem::call("waking__wake", json!({})).when("^hello$").unwrap(),
            ScriptItem::say("awake").when("^woken$").unwrap(),
            ScriptItem::say("done").repeat(),
        ];
        let agent = waking(agent(script), &log, from, "assistant", 1).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        assert_eq!(instance.run("hello").await.unwrap().text(), "done");
        let mut read = lines(&log, 3).await;
        read.sort();
        assert_eq!(read, ["turn hello", "turn woken", "wake-0 of assistant: \"awake\""], "{from}");
    }
}

#[both_linkages]
async fn another_agent_is_reached_through_the_router() {
    let (router, log) = (LocalRouter::new(), Log::new());
    let other = Agent::builder("librarian").model(goondan::model::ScriptedModel::new([ScriptItem::say("a book")]));
    let other = other.router(router.clone()).build().unwrap();
    router.add(&other);
    let agent = waking(agent([ScriptItem::say("done")]), &log, "turn", "librarian", 1).router(router.clone());
    agent.build().unwrap().instance("test").await.unwrap().run("hello").await.unwrap();
    assert_eq!(lines(&log, 2).await, ["turn hello", "wake-0 of librarian: \"a book\""]);
    router.close().await.unwrap();
}

#[both_linkages]
async fn the_program_delegates_too() {
    let log = Log::new();
    let agent = waking(agent([ScriptItem::say("awake")]), &log, "nowhere", "assistant", 1).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut results = instance.events().subscribe(AgentDelegationResult::NAME).unwrap();
    let mut delegate = AgentDelegate::new("assistant".parse().unwrap(), "woken");
    delegate.id = "mine".to_owned();
    instance.events().emit(AgentDelegate::NAME, (delegate,)).await.unwrap();
    let result: AgentDelegationResult = results.next().await.unwrap().payload().unwrap();
    assert_eq!((result.id.as_str(), result.result, result.error_code), ("mine", Some(json!("awake")), None));
    assert_eq!(lines(&log, 2).await, ["turn woken", "mine of assistant: \"awake\""]);
}

#[both_linkages]
async fn an_unknown_agent_is_an_error_on_the_bus() {
    let log = Log::new();
    let agent = waking(agent([ScriptItem::say("done")]), &log, "turn", "nobody", 1).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    assert_eq!(lines(&log, 2).await, ["turn hello", "wake-0 of nobody: AGENT_NOT_FOUND"]);
}

#[both_linkages]
async fn a_handler_that_wakes_its_own_conversation_for_ever_is_stopped() {
    let log = Log::new();
    let agent = waking(agent([ScriptItem::say("done").repeat()]), &log, "completed", "assistant", 1);
    let agent = agent.build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    // The first turn, 32 delegated ones with their results, and the refusal of another.
    let read = lines(&log, 1 + 32 + 32 + 1).await;
    assert_eq!(settled(&instance, 32).await, 32);
    assert_eq!(read.iter().filter(|line| *line == "turn woken").count(), 32);
    assert_eq!(read.iter().filter(|line| line.contains("E_EVENT_LOOP")).count(), 1, "{read:?}");
    // An input of a person begins a new chain.
    instance.run("hello").await.unwrap();
    assert_eq!(settled(&instance, 64).await, 64);
}

#[both_linkages]
async fn so_many_delegations_wait_and_more_are_refused() {
    let (log, asked) = (Log::new(), Arc::new(Notify::new()));
    let agent = Agent::builder("assistant").model(SilentModel(Arc::clone(&asked)));
    let agent = waking(agent, &log, "turn", "assistant", 70).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.send("hello");
    asked.notified().await;
    // 64 wait behind the turn that runs.
    let read = lines(&log, 1 + 6).await;
    let refused: Vec<_> = (64..70).map(|number| format!("wake-{number} of assistant: E_EXT_RUNTIME")).collect();
    assert_eq!((read[0].as_str(), &read[1..]), ("turn hello", &refused[..]));
}
