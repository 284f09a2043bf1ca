//! Instances that are open only for requests of other agents close when they are idle.

use std::time::Duration;

use conformance_extensions::agents::Asking;
use conformance_extensions::reload::Holder;
use goondan::agent::{AgentBuilder, LocalRouter};
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::{Agent, Instance, json};
use goondan_covers::{both_linkages, interruptible};
use tokio::time::sleep;

use crate::linkage::Extended;
use crate::support::{Log, agent};

/// How long it stays open by default.
const FOR_OTHERS: Duration = Duration::from_secs(300);
const MOMENT: Duration = Duration::from_millis(1);
const CLOSES: [&str; 2] = ["b hears of holder", "b closes"];

/// An instance of the agent `assistant`, which asks the agent `b` in every turn.
struct Setup {
    instance: Instance,
    b: Agent,
    router: LocalRouter,
    log: Log,
}

impl Setup {
    async fn new(describe: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Self {
        let (log, router) = (Log::new(), LocalRouter::new());
        let asking = json!({ "log": log, "target": "b", "from": "turn" });
        let a = agent([ScriptItem::say("done").repeat()]).with::<Asking>(asking).router(router.clone());
        let answering = ScriptedModel::new([ScriptItem::say("answer").repeat()]);
        let b = Agent::builder("b").model(answering).with::<Holder>(json!({ "log": log, "tag": "b" }));
        let b = describe(b).build().unwrap();
        router.add(&b);
        let instance = a.build().unwrap().instance("one").await.unwrap();
        Self { instance, b, router, log }
    }

    /// Asks, and returns what `b` logged.
    #[interruptible]
    async fn ask(&self) -> Vec<String> {
        self.instance.run("hello").await.unwrap();
        let mut lines = self.log.take();
        assert_eq!(lines.pop().unwrap(), "b: answer", "the request is answered");
        lines
    }
}

#[both_linkages(start_paused = true)]
async fn it_stays_open_for_five_minutes() {
    let setup = Setup::new(|b| b).await;
    assert_eq!(setup.ask().await, ["b question: 1 of 1"]);
    sleep(FOR_OTHERS - MOMENT).await;
    assert_eq!(setup.ask().await, ["b question: 2 of 2"]);
    sleep(FOR_OTHERS + MOMENT).await;
    assert_eq!(setup.log.take(), CLOSES);
    assert_eq!(setup.ask().await, ["b question: 1 of 1001"]);
}

#[both_linkages(start_paused = true)]
async fn its_agent_may_set_another_time() {
    let setup = Setup::new(|b| b.idle_after(2 * FOR_OTHERS)).await;
    setup.ask().await;
    sleep(2 * FOR_OTHERS - MOMENT).await;
    assert_eq!(setup.ask().await, ["b question: 2 of 2"]);
    sleep(2 * FOR_OTHERS + MOMENT).await;
    assert_eq!(setup.log.take(), CLOSES);
}

#[both_linkages(start_paused = true)]
async fn a_handle_keeps_it_open() {
    let setup = Setup::new(|b| b).await;
    let handle = setup.b.instance("one").await.unwrap();
    setup.ask().await;
    sleep(10 * FOR_OTHERS).await;
    assert_eq!(setup.ask().await, ["b question: 2 of 2"]);
    drop(handle);
    sleep(FOR_OTHERS + MOMENT).await;
    assert_eq!(setup.log.take(), CLOSES);
}

#[both_linkages(start_paused = true)]
async fn the_router_closes_it_and_a_handle_reopens_it() {
    let setup = Setup::new(|b| b).await;
    setup.ask().await;
    setup.router.close().await.unwrap();
    assert_eq!(setup.log.take(), CLOSES);
    let handle = setup.b.instance("one").await.unwrap();
    setup.ask().await;
    setup.router.remove(setup.b.name()).await.unwrap();
    setup.log.take();
    handle.run("hello").await.unwrap();
    assert_eq!(setup.log.take(), ["b hello: 1 of 1001"]);
    sleep(10 * FOR_OTHERS).await;
    assert_eq!(setup.log.take(), [""; 0], "the handle keeps it open");
    drop(handle);
    sleep(MOMENT).await;
    assert_eq!(setup.log.take(), CLOSES);
}
