//! The members of the surface *events* that act: `delegate` and `reload` (D-41).

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use conformance_extensions::acting::Acting;
use goondan::event::{AgentDelegate, AgentReload};
use goondan::model::ScriptItem;
use goondan::{Agent, ErrorCode, Instance, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent};

const SETTLED: Duration = Duration::from_secs(10);

/// Returns an agent whose model calls this tool when it is greeted.
fn acting(tool: &str, log: &Log) -> Agent {
    following(
        [
            ScriptItem::call(tool, json!({})).when("^hello$").unwrap(),
            ScriptItem::say("awake").when("^woken$").unwrap(),
            ScriptItem::say("done").repeat(),
        ],
        log,
    )
}

fn following<const N: usize>(script: [ScriptItem; N], log: &Log) -> Agent {
    agent(script).with::<Acting>(json!({ "log": log })).build().unwrap()
}

/// Returns what the extension heard, once all handlers have run.
async fn heard(instance: &Instance, log: &Log) -> Vec<String> {
    assert!(instance.events().settle(SETTLED).await.unwrap());
    log.take()
}

#[both_linkages]
#[covers("LEGACY-EVENTS-04")]
async fn emitting_the_names_starts_nothing() {
    let log = Log::new();
    let agent = acting("acting__emit", &log);
    let (mut turns, mut reloads) = (agent.subscribe_turns(), agent.reload_requests().unwrap());
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let names = ["agent.delegate \"delegated\" \"assistant\"", "agent.reload \"requested\" null"];
    assert_eq!(heard(&instance, &log).await, names, "the events are published");
    // The program emits them too.
    let delegation = AgentDelegate::new(agent.name().clone(), "woken");
    instance.events().emit(AgentDelegate::NAME, (delegation,)).await.unwrap();
    instance.events().emit(AgentReload::NAME, (AgentReload::new("mine"),)).await.unwrap();
    assert_eq!(heard(&instance, &log).await.len(), 2);
    assert!(turns.next_pending().await.is_none(), "no turn was started");
    let polled = pin!(reloads.next()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "no reload was requested: {polled:?}");
}

#[both_linkages]
#[covers("LEGACY-EVENTS-04")]
async fn delegate_starts_a_turn_and_publishes_both_events() {
    let log = Log::new();
    let agent = acting("acting__delegate", &log);
    let mut turns = agent.subscribe_turns();
    let instance = agent.instance("test").await.unwrap();
    assert_eq!(instance.run("hello").await.unwrap().text(), "done");
    while turns.next_pending().await.is_some() {}
    let events = ["agent.delegate \"delegated\" \"assistant\"", "agent.delegationResult \"delegated\" \"awake\""];
    assert_eq!(heard(&instance, &log).await, events);
}

/// The result of the tool, as JSON.
async fn answer(instance: &Instance) -> Value {
    let messages = instance.messages().await.unwrap();
    let result = messages.iter().find(|message| message.role().as_str() == "tool").unwrap();
    serde_json::from_str(&result.text()).unwrap()
}

#[both_linkages]
#[covers("LEGACY-CHANGESET-04")]
async fn reload_requests_one_of_the_program_and_returns_the_answer() {
    let log = Log::new();
    let agent = acting("acting__reload", &log);
    let instance = agent.instance("test").await.unwrap();
    let requests = agent.reload_requests().unwrap();
    let reload = async || agent.reload_at_next_step(&following([ScriptItem::say("reloaded")], &log)).await;
    tokio::select! {
        () = requests.serve(reload, |_| ()) => panic!("the agent lives"),
        outcome = instance.run("hello") => assert_eq!(outcome.unwrap().text(), "reloaded"),
    }
    assert_eq!(answer(&instance).await, json!({ "id": "requested", "effect": "nextStep" }));
    let events = ["agent.reload \"requested\" null", "agent.reloadAnswer \"requested\" \"nextStep\""];
    assert_eq!(heard(&instance, &log).await, events);
}

#[both_linkages]
async fn a_request_for_a_reload_is_refused_where_the_program_makes_none() {
    let log = Log::new();
    let agent = acting("acting__reload", &log);
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let reason = "the program does not reload its agents";
    assert_eq!(answer(&instance).await, json!({ "id": "requested", "effect": "none", "reason": reason }));
    let events = ["agent.reload \"requested\" null", "agent.reloadAnswer \"requested\" \"none\""];
    assert_eq!(heard(&instance, &log).await, events);
}

#[both_linkages]
async fn a_request_for_a_reload_is_sent_even_if_its_answer_is_not_awaited() {
    let log = Log::new();
    let agent = acting("acting__forget", &log);
    let mut requests = agent.reload_requests().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let request = requests.next().await.unwrap();
    assert_eq!(request.conversation().to_string(), "assistant:test");
    request.refuse("later");
    let events = ["agent.reload \"requested\" null", "agent.reloadAnswer \"requested\" \"none\""];
    assert_eq!(heard(&instance, &log).await, events);
}

#[both_linkages]
#[covers("OBSERVE-01")]
async fn reload_requests_have_one_receiver() {
    let log = Log::new();
    let (agent, other) = (acting("acting__forget", &log), acting("acting__forget", &log));
    let mut requests = agent.reload_requests().unwrap();
    assert_eq!(agent.reload_requests().unwrap_err().code(), &ErrorCode::RELOAD_TAKEN);
    let others = other.reload_requests().unwrap();
    assert_eq!(requests.follow(&other).unwrap_err().code(), &ErrorCode::RELOAD_TAKEN);
    drop(others);
    requests.follow(&other).unwrap();
    requests.follow(&other).unwrap();
    other.instance("test").await.unwrap().run("hello").await.unwrap();
    assert_eq!(requests.next().await.unwrap().conversation().to_string(), "assistant:test");
    drop(requests);
    assert!(agent.reload_requests().is_ok());
}
