//! What is open for other agents closes by itself, too.

use std::time::Duration;

use conformance_extensions::agents::Asking;
use conformance_extensions::reload::Holder;
use goondan::{Agent, AgentBuilder, Instance, LocalRouter, ScriptItem, ScriptedModel, json};
use goondan_covers::both_linkages;
use tokio::time::sleep;

use crate::linkage::Extended;
use crate::support::{Log, agent};

/// How long it stays open unless its agent says otherwise.
const FOR_OTHERS: Duration = Duration::from_secs(300);
const MOMENT: Duration = Duration::from_millis(1);
const CLOSES: [&str; 2] = ["b hears of holder", "b closes"];

/// A conversation of the agent `assistant`, which asks `b` in every turn.
struct Asked {
    instance: Instance,
    b: Agent,
    router: LocalRouter,
    log: Log,
}

impl Asked {
    async fn new(describe: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Self {
        let (log, router) = (Log::new(), LocalRouter::new());
        let asking = json!({ "log": log, "target": "b", "hook": "turn" });
        let a = agent([ScriptItem::say("done").repeat()]).with::<Asking>(asking).router(router.clone());
        let answering = ScriptedModel::new([ScriptItem::say("answer").repeat()]);
        let b = Agent::builder("b").model(answering).with::<Holder>(json!({ "log": log, "tag": "b" }));
        let b = describe(b).build().await.unwrap();
        router.add(&b);
        let instance = a.build().await.unwrap().instance("one").await.unwrap();
        Self { instance, b, router, log }
    }

    /// Asks, and gives what `b` wrote down.
    async fn ask(&self) -> Vec<String> {
        self.instance.run("hello").await.unwrap();
        let mut lines = self.log.take();
        assert_eq!(lines.pop().unwrap(), "b: answer", "what is asked for comes");
        lines
    }
}

#[both_linkages(start_paused = true)]
async fn it_stays_open_for_five_minutes() {
    let asked = Asked::new(|b| b).await;
    assert_eq!(asked.ask().await, ["b question: 1 of 1"]);
    sleep(FOR_OTHERS - MOMENT).await;
    assert_eq!(asked.ask().await, ["b question: 2 of 2"]);
    sleep(FOR_OTHERS + MOMENT).await;
    assert_eq!(asked.log.take(), CLOSES);
    assert_eq!(asked.ask().await, ["b question: 1 of 1001"]);
}

#[both_linkages(start_paused = true)]
async fn its_agent_may_say_otherwise() {
    let asked = Asked::new(|b| b.idle_after(2 * FOR_OTHERS)).await;
    asked.ask().await;
    sleep(2 * FOR_OTHERS - MOMENT).await;
    assert_eq!(asked.ask().await, ["b question: 2 of 2"]);
    sleep(2 * FOR_OTHERS + MOMENT).await;
    assert_eq!(asked.log.take(), CLOSES);
}

#[both_linkages(start_paused = true)]
async fn whoever_holds_it_keeps_it_open() {
    let asked = Asked::new(|b| b).await;
    let held = asked.b.instance("one").await.unwrap();
    asked.ask().await;
    sleep(10 * FOR_OTHERS).await;
    assert_eq!(asked.ask().await, ["b question: 2 of 2"]);
    drop(held);
    sleep(FOR_OTHERS + MOMENT).await;
    assert_eq!(asked.log.take(), CLOSES);
}

#[both_linkages(start_paused = true)]
async fn the_router_closes_it_and_a_handle_opens_it_again() {
    let asked = Asked::new(|b| b).await;
    asked.ask().await;
    asked.router.close().await.unwrap();
    assert_eq!(asked.log.take(), CLOSES);
    let held = asked.b.instance("one").await.unwrap();
    asked.ask().await;
    asked.router.remove(asked.b.name()).await.unwrap();
    asked.log.take();
    held.run("hello").await.unwrap();
    assert_eq!(asked.log.take(), ["b hello: 1 of 1001"]);
    sleep(10 * FOR_OTHERS).await;
    assert_eq!(asked.log.take(), [""; 0], "it is the affair of who holds it");
    drop(held);
    sleep(MOMENT).await;
    assert_eq!(asked.log.take(), CLOSES);
}
