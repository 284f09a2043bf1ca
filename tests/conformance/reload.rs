//! LEGACY-RECONCILE: after a reload, conversations go on with the new extensions of their agent.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use goondan::agent::{AgentBuilder, Change, Reloaded};
use goondan::middleware::MiddlewareKind;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem};
use goondan::prelude::*;
use goondan::{Agent, BoxFuture, ErrorCode, json};
use goondan_covers::{both_linkages, covers};
use tokio::sync::Semaphore;

use crate::linkage::Extended;
use crate::support::{Log, agent};

struct Described<'a> {
    log: &'a Log,
    agent: AgentBuilder,
}

impl<'a> Described<'a> {
    fn new(log: &'a Log) -> Self {
        Self { log, agent: agent([ScriptItem::say("fine").repeat()]) }
    }

    /// Adds a `holder` under the name `name`.
    fn with(self, name: &str, tag: &str) -> Self {
        let config = json!({ "log": self.log.config()["log"], "tag": tag });
        Self { agent: self.agent.with_named(name, "holder", config), ..self }
    }

    fn with_broken(self, name: &str) -> Self {
        let config = json!({ "log": self.log.config()["log"], "tag": "broken", "failWith": 7 });
        Self { agent: self.agent.with_named(name, "holder", config), ..self }
    }

    fn build(self) -> Agent {
        self.agent.build().unwrap()
    }
}

fn changes(reloaded: &Reloaded) -> Vec<String> {
    assert!(reloaded.refused.is_empty(), "{reloaded:?}");
    reloaded.changes.iter().map(ToString::to_string).collect()
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[both_linkages]
#[covers("LEGACY-RECONCILE-03")]
async fn an_unchanged_extension_keeps_what_it_counts() {
    let log = Log::new();
    let agent = Described::new(&log).with("holder", "a").build();
    let instance = agent.instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    let same = Described::new(&log).with("holder", "a").build();
    assert_eq!(changes(&agent.reload(&same).await.unwrap()), [""; 0]);
    instance.run("again").await.unwrap();
    assert_eq!(log.take(), ["a hello: 1 of 1", "a again: 2 of 2"]);
}

#[both_linkages]
#[covers("LEGACY-RECONCILE-01", "LEGACY-RECONCILE-02", "LEGACY-RECONCILE-04")]
async fn another_order_initializes_nothing_again() {
    let log = Log::new();
    let agent = Described::new(&log).with("holder", "a").with("other", "b").build();
    let instance = agent.instance("one").await.unwrap();
    instance.run("which").await.unwrap();
    let before = log.take();
    assert!(before[0].starts_with("a on ") && before[1].starts_with("b on "), "{before:?}");
    let swapped = Described::new(&log).with("other", "b").with("holder", "a").build();
    assert_eq!(changes(&agent.reload(&swapped).await.unwrap()), [""; 0]);
    instance.run("which").await.unwrap();
    assert_eq!(log.take(), [&*before[1], &*before[0]], "the same connections in the new order");
    let layers = instance.layers(MiddlewareKind::Turn).await.unwrap();
    assert_eq!(layers.iter().map(|layer| layer.extension.as_str()).collect::<Vec<_>>(), ["other", "holder"]);
}

#[both_linkages]
#[covers("LEGACY-RECONCILE-01", "LEGACY-EVENTS-06", "LOAD-11")]
async fn a_removed_extension_hears_of_it_and_cleans_up() {
    let log = Log::new();
    let agent = Described::new(&log).with("holder", "a").with("other", "b").build();
    let instance = agent.instance("one").await.unwrap();
    let left = Described::new(&log).with("other", "b").build();
    assert_eq!(changes(&agent.reload(&left).await.unwrap()), [format!("holder {VERSION} is gone")]);
    let mut lines = log.take();
    assert_eq!(lines.pop().unwrap(), "a closes", "after all extensions have heard of it");
    lines.sort();
    assert_eq!(lines, ["a hears of holder", "b hears of holder"]);
    assert_eq!(
        instance.tools().await.unwrap().iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>(),
        ["holder__nothing"]
    );
    instance.run("hello").await.unwrap();
    instance.close().await.unwrap();
    assert_eq!(log.take(), ["b hello: 1 of 1", "b hears of other", "b closes"], "it hears nothing more");
}

#[both_linkages]
#[covers("LEGACY-RECONCILE-03", "LEGACY-RECONCILE-05", "LEGACY-POINTS-08")]
async fn a_changed_extension_is_replaced_and_finds_its_state() {
    let log = Log::new();
    let agent = Described::new(&log).with("holder", "old").with("other", "b").build();
    let instance = agent.instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    let changed = Described::new(&log).with("holder", "new").with("other", "b").build();
    let reloaded = agent.reload(&changed).await.unwrap();
    assert_eq!(changes(&reloaded), [format!("holder {VERSION} has another config")]);
    assert_eq!(reloaded.changes[0].change, Change::Configured { version: VERSION });
    instance.run("again").await.unwrap();
    let mut lines = log.take();
    lines[2..5].sort();
    let hears = ["b hears of holder", "new hears of holder", "old hears of holder"];
    let turns = ["old closes", "new again: 1 of 2", "b again: 2 of 2"];
    assert_eq!(lines, [&["old hello: 1 of 1", "b hello: 1 of 1"], &hears[..], &turns].concat());
    assert_eq!(
        instance.states().await.unwrap().values().collect::<Vec<_>>(),
        [&json!(2), &json!(2)],
        "the state of the old one is not stored"
    );
}

#[both_linkages]
#[covers("ENTRY-06")]
async fn an_extension_that_fails_leaves_everything_as_it_was_and_the_error_says_why() {
    let log = Log::new();
    let agent = Described::new(&log).with("holder", "a").build();
    let instance = agent.instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    let broken = Described::new(&log).with("added", "n").with_broken("holder").build();
    let error = agent.reload(&broken).await.unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_INIT, "holder"));
    assert!(error.report().to_string().contains("broken"), "{}", error.report());
    assert_eq!(log.take(), ["a hello: 1 of 1", "n closes"], "the new extensions are cleaned up");
    instance.run("again").await.unwrap();
    assert_eq!(log.take(), ["a again: 2 of 2"], "its state is untouched, too");
    // Instances that are opened now have the old extensions.
    let other = agent.instance("two").await.unwrap();
    other.run("hello").await.unwrap();
    other.close().await.unwrap();
    assert_eq!(log.take()[0], "a hello: 1 of 1");
    // The next reload works.
    let mended = Described::new(&log).with("added", "n").with("holder", "a").build();
    assert_eq!(changes(&agent.reload(&mended).await.unwrap()), [format!("added {VERSION} is new")]);
    instance.run("third").await.unwrap();
    assert_eq!(log.take(), ["n third: 1 of 1", "a third: 3 of 3"]);
}

/// A model whose answers wait for a permit.
struct HeldModel(Arc<Semaphore>);

impl Model for HeldModel {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async {
            self.0.acquire().await.map_err(|error| Error::msg(error.to_string()))?.forget();
            Ok(ModelResponse::text("fine"))
        })
    }
}

#[both_linkages]
async fn turns_end_with_the_extensions_that_they_began_with_and_none_is_lost() {
    let log = Log::new();
    let gate = Arc::new(Semaphore::new(0));
    let described = |tag| {
        let Described { agent, .. } = Described::new(&log).with("holder", tag);
        agent.model(HeldModel(Arc::clone(&gate))).build()
    };
    let agent = described("old").unwrap();
    let new = described("new").unwrap();
    let instance = agent.instance("one").await.unwrap();
    instance.send("running");
    instance.send("waiting");
    let mut reload = pin!(agent.reload(&new));
    poll_fn(|cx| {
        assert!(reload.as_mut().poll(cx).is_pending(), "it waits in the queue");
        Poll::Ready(())
    })
    .await;
    instance.send("later");
    gate.add_permits(3);
    reload.await.unwrap();
    assert_eq!(instance.messages().await.unwrap().len(), 6, "three turns");
    let turns: Vec<_> = log.take().into_iter().filter(|line| line.contains(" of ") && line.contains(':')).collect();
    assert_eq!(turns, ["old running: 1 of 1", "old waiting: 2 of 2", "new later: 1 of 3"]);
}

#[both_linkages]
async fn a_cancelled_caller_does_not_leave_it_half_done() {
    let log = Log::new();
    let agent = Described::new(&log).with("holder", "old").build();
    let instance = agent.instance("one").await.unwrap();
    let new = Described::new(&log).with("holder", "new").build();
    {
        let mut reload = pin!(agent.reload(&new));
        poll_fn(|cx| {
            assert!(reload.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
    }
    instance.run("hello").await.unwrap();
    assert_eq!(log.take().last().unwrap(), "new hello: 1 of 1");
}

#[both_linkages]
async fn open_and_later_instances_go_on_with_the_new_extensions() {
    let log = Log::new();
    let agent = Described::new(&log).with("holder", "old").build();
    let (one, two) = (agent.instance("one").await.unwrap(), agent.instance("two").await.unwrap());
    let closed = agent.instance("closed").await.unwrap();
    closed.close().await.unwrap();
    agent.reload(&Described::new(&log).with("holder", "new").build()).await.unwrap();
    log.take();
    for instance in [one, two, agent.instance("three").await.unwrap()] {
        instance.run("hello").await.unwrap();
    }
    assert_eq!(log.take(), ["new hello: 1 of 1"; 3]);
    assert_eq!(closed.run("hello").await.unwrap_err().code(), &ErrorCode::INSTANCE_CLOSED);
}

#[tokio::test]
async fn an_agent_cannot_be_reloaded_as_another_one() {
    let agent = agent([]).build().unwrap();
    let other = Agent::builder("other").model(goondan::model::ScriptedModel::new([])).build().unwrap();
    let error = agent.reload(&other).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::CONFIG_SCHEMA);
    assert!(error.message().contains("`other`"), "{error}");
}
