//! A reload takes effect from the next step of a turn that runs, never inside of one.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use goondan::agent::{AgentBuilder, Instance, TurnUpdate};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::prelude::*;
use goondan::{Agent, BoxFuture, ErrorCode, Value, json};
use goondan_covers::{both_linkages, interruptible};
use tokio::sync::Semaphore;

use crate::linkage::Extended;
use crate::support::Log;

/// A model that calls a tool and then answers with its name. It tells when it is asked, and then waits for a permit.
struct Held {
    script: ScriptedModel,
    asked: Semaphore,
    permits: Semaphore,
}

impl Held {
    fn new(name: &str) -> Arc<Self> {
        let script = ScriptedModel::new([ScriptItem::call("stepper__call", json!({})), ScriptItem::say(name).repeat()]);
        Arc::new(Self { script, asked: Semaphore::new(0), permits: Semaphore::new(0) })
    }

    async fn is_asked(&self) {
        self.asked.acquire().await.unwrap().forget();
    }
}

struct Shared(Arc<Held>);

impl Model for Shared {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            self.0.asked.add_permits(1);
            self.0.permits.acquire().await.map_err(|error| Error::msg(error.to_string()))?.forget();
            self.0.script.generate(request, deltas).await
        })
    }
}

fn described(log: &Log, tag: &str, model: &Arc<Held>) -> AgentBuilder {
    with_init(log, tag, model, "done")
}

fn with_init(log: &Log, tag: &str, model: &Arc<Held>, init: &str) -> AgentBuilder {
    let config = json!({ "log": log.config()["log"], "tag": tag, "init": init });
    Agent::builder("test").model(Shared(Arc::clone(model))).system(tag).with_named("stepper", "stepper", config)
}

fn holder(log: &Log, tag: &str) -> Value {
    json!({ "log": log.config()["log"], "tag": tag })
}

/// Polls `reload` once: it waits for the turn.
async fn start(reload: impl Future) {
    let mut reload = pin!(reload);
    poll_fn(|cx| {
        assert!(reload.as_mut().poll(cx).is_pending(), "the turn is in the middle of a step");
        Poll::Ready(())
    })
    .await;
}

/// Runs a turn whose first step is in the middle when the agent is reloaded as `new`, and returns its answer.
#[interruptible]
async fn run_with_reload(instance: &Instance, old: &Held, agent: &Agent, new: &Agent) -> (String, Result<()>) {
    let turn = async { instance.run("hello").await.unwrap().text().into_owned() };
    let reload = async {
        old.is_asked().await;
        let mut reload = pin!(agent.reload_at_next_step(new));
        start(reload.as_mut()).await;
        old.permits.add_permits(1);
        reload.await.map(drop)
    };
    tokio::join!(turn, reload)
}

#[both_linkages]
async fn the_next_step_of_the_turn_has_the_new_model_instructions_layers_and_tools() {
    let (log, old, new) = (Log::new(), Held::new("old"), Held::new("new"));
    let agent = described(&log, "old", &old).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    new.permits.add_permits(9);
    let (answer, reloaded) =
        run_with_reload(&instance, &old, &agent, &described(&log, "new", &new).build().unwrap()).await;
    reloaded.unwrap();
    // The new model calls the tool first.
    assert_eq!(answer, "new");
    let steps = [
        "old is around step 0, its number 1",
        "old is called",
        "old closes",
        "new is around step 1, its number 2",
        "new is called",
        "new is around step 2, its number 3",
    ];
    assert_eq!(log.take(), steps, "and the state is the same");
    assert_eq!(instance.messages().await.unwrap().len(), 6, "one turn");
    instance.run("again").await.unwrap();
    assert_eq!(log.take(), ["new is around step 0, its number 4"]);
    instance.close().await.unwrap();
    assert_eq!(log.take(), ["new closes"]);
}

#[both_linkages]
async fn a_changed_layer_around_the_turn_waits_for_its_end() {
    let (log, old, new) = (Log::new(), Held::new("old"), Held::new("new"));
    let with_holder = |tag, model| described(&log, tag, model).with_named("holder", "holder", holder(&log, tag));
    let agent = with_holder("old", &old).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    old.permits.add_permits(1);
    let (answer, reloaded) = run_with_reload(&instance, &old, &agent, &with_holder("new", &new).build().unwrap()).await;
    reloaded.unwrap();
    assert_eq!(answer, "old");
    let steps: Vec<_> = log.take().into_iter().filter(|line| line.contains("around")).collect();
    assert_eq!(steps, ["old is around step 0, its number 1", "old is around step 1, its number 2"]);
    new.permits.add_permits(9);
    assert_eq!(instance.run("again").await.unwrap().text(), "new");
}

#[both_linkages]
async fn a_layer_around_the_turn_that_stays_and_one_that_is_added_do_not_wait() {
    let (log, old, new) = (Log::new(), Held::new("old"), Held::new("new"));
    let with_holder = |tag, model| described(&log, tag, model).with_named("holder", "holder", holder(&log, "same"));
    let agent = with_holder("old", &old).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    new.permits.add_permits(9);
    let to = with_holder("new", &new).with_named("added", "holder", holder(&log, "added")).build().unwrap();
    let (answer, reloaded) = run_with_reload(&instance, &old, &agent, &to).await;
    reloaded.unwrap();
    assert_eq!(answer, "new");
    let turns = |log: &Log| log.take().into_iter().filter(|line| line.contains(": ")).collect::<Vec<_>>();
    assert_eq!(turns(&log), ["same hello: 1 of 1"], "the chain of a turn is the one it began with");
    instance.run("again").await.unwrap();
    assert_eq!(turns(&log), ["same again: 2 of 2", "added again: 1 of 1"]);
}

#[both_linkages]
async fn a_turn_goes_on_when_the_new_extensions_cannot_be_initialized() {
    let (log, old) = (Log::new(), Held::new("old"));
    let agent = described(&log, "old", &old).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    old.permits.add_permits(1);
    let broken = with_init(&log, "new", &old, "fails").build().unwrap();
    let (answer, reloaded) = run_with_reload(&instance, &old, &agent, &broken).await;
    assert_eq!(reloaded.unwrap_err().code(), &ErrorCode::EXT_INIT);
    assert_eq!(answer, "old");
    assert!(log.take().iter().all(|line| line.starts_with("old")));
}

#[both_linkages]
async fn a_reload_whose_caller_is_gone_does_not_take_place() {
    let (log, old) = (Log::new(), Held::new("old"));
    let agent = described(&log, "old", &old).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let new = described(&log, "new", &old).build().unwrap();
    let turn = async { instance.run("hello").await.unwrap() };
    let dropped = async {
        old.is_asked().await;
        start(agent.reload_at_next_step(&new)).await;
        old.permits.add_permits(2);
    };
    tokio::join!(turn, dropped);
    assert!(log.take().iter().all(|line| line.starts_with("old")));
}

#[both_linkages]
async fn a_turn_that_is_cancelled_during_a_reload_leaves_it_whole() {
    let (log, old, new) = (Log::new(), Held::new("old"), Held::new("new"));
    let agent = described(&log, "old", &old).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let waits = instance.events().subscribe("stepper.waits").unwrap();
    let to = with_init(&log, "new", &new, "waits").build().unwrap();
    let reload = agent.reload_at_next_step(&to);
    let mut turn = instance.run_stream("hello").with_events(waits);
    let cancelled = async {
        while let Some(update) = turn.next().await {
            if matches!(update, TurnUpdate::Emitted { .. }) {
                break;
            }
        }
        drop(turn);
        instance.events().emit("stepper.go", ()).await.unwrap();
    };
    let reload = async {
        old.is_asked().await;
        let mut reload = pin!(reload);
        start(reload.as_mut()).await;
        old.permits.add_permits(1);
        reload.await.unwrap();
    };
    tokio::join!(cancelled, reload);
    new.permits.add_permits(9);
    assert_eq!(instance.run("again").await.unwrap().text(), "new");
    let steps: Vec<_> = log.take().into_iter().filter(|line| line.contains("around")).collect();
    assert_eq!(steps.last().unwrap(), "new is around step 1, its number 3");
}

#[both_linkages]
async fn between_turns_it_takes_place_at_once() {
    let (log, old, new) = (Log::new(), Held::new("old"), Held::new("new"));
    let agent = described(&log, "old", &old).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    agent.reload_at_next_step(&described(&log, "new", &new).build().unwrap()).await.unwrap();
    assert_eq!(log.take(), ["old closes"]);
    new.permits.add_permits(9);
    assert_eq!(instance.run("hello").await.unwrap().text(), "new");
}
