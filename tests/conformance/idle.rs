//! Idle instances close while handles of them exist, and reopen on the next use.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use conformance_extensions::agents::Asking;
use conformance_extensions::idle::Thinking;
use conformance_extensions::reload::Holder;
use goondan::agent::{AgentBuilder, LocalRouter};
use goondan::middleware::MiddlewareKind;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::{FileStore, MemoryStore, Store};
use goondan::{Agent, ErrorCode, json};
use goondan_covers::both_linkages;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::gated::GatedStore;
use crate::linkage::Extended;
use crate::support::{Log, agent};

const IDLE: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_millis(1);

/// Describes an agent whose extension counts turns in memory and in its state, which its clean-up sets to 1000.
fn counting(log: &Log, tag: &str) -> AgentBuilder {
    let config = json!({ "log": log, "tag": tag });
    agent([ScriptItem::say("fine").repeat()]).with::<Holder>(config)
}

const CLOSES: [&str; 2] = ["a hears of holder", "a closes"];

#[both_linkages(start_paused = true)]
async fn an_idle_instance_closes_and_reopens_with_everything_that_was_stored() {
    let dir = TempDir::new().unwrap();
    let stores: [Arc<dyn Store>; 2] = [Arc::new(MemoryStore::new()), Arc::new(FileStore::open(dir.path()).unwrap())];
    for store in stores {
        let log = Log::new();
        let agent = counting(&log, "a").store(store).idle_after(IDLE).build().unwrap();
        let instance = agent.instance("one").await.unwrap();
        instance.run("hello").await.unwrap();
        sleep(IDLE - MOMENT).await;
        instance.run("there").await.unwrap();
        assert_eq!(log.take(), ["a hello: 1 of 1", "a there: 2 of 2"]);
        sleep(IDLE - MOMENT).await;
        assert_eq!(log.take(), [""; 0], "the time since the last turn counts");
        sleep(2 * MOMENT).await;
        assert_eq!(log.take(), CLOSES);
        sleep(3 * IDLE).await;
        instance.run("again").await.unwrap();
        assert_eq!(log.take(), ["a again: 1 of 1001"], "the extension is another, its state is the same");
        assert_eq!(instance.messages().await.unwrap().len(), 6);
        sleep(IDLE + MOMENT).await;
        assert_eq!(log.take(), CLOSES, "and so it goes on");
    }
}

#[both_linkages(start_paused = true)]
async fn a_look_at_it_reopens_it() {
    let log = Log::new();
    let agent = counting(&log, "a").idle_after(IDLE).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    for look in ["layers", "tools", "states", "messages"] {
        sleep(IDLE + MOMENT).await;
        assert_eq!(log.take().last().unwrap(), "a closes");
        let seen = match look {
            "layers" => instance.layers(MiddlewareKind::Turn).await.unwrap().len(),
            "tools" => instance.tools().await.unwrap().iter().count(),
            "states" => instance.states().await.unwrap().len(),
            _ => instance.messages().await.unwrap().len() - 1,
        };
        assert_eq!(seen, 1, "{look}");
        log.take();
    }
    instance.close().await.unwrap();
    assert_eq!(instance.messages().await.unwrap_err().code(), &ErrorCode::INSTANCE_CLOSED);
}

#[both_linkages(start_paused = true)]
async fn by_default_it_stays_open_while_a_handle_exists() {
    let log = Log::new();
    let agent = counting(&log, "a").build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    sleep(10_000 * IDLE).await;
    instance.run("hello").await.unwrap();
    assert_eq!(log.take(), ["a hello: 1 of 1"]);
    drop(instance);
    sleep(MOMENT).await;
    assert_eq!(log.take(), CLOSES);
}

#[both_linkages(start_paused = true)]
async fn with_an_idle_time_no_handle_is_needed_to_keep_it_open() {
    let log = Log::new();
    let agent = counting(&log, "a").idle_after(IDLE).build().unwrap();
    for turn in 1..=3 {
        agent.instance("one").await.unwrap().run("hello").await.unwrap();
        assert_eq!(log.take(), [format!("a hello: {turn} of {turn}")]);
        sleep(IDLE - MOMENT).await;
    }
    sleep(2 * MOMENT).await;
    assert_eq!(log.take(), CLOSES);
    let instance = agent.instance("one").await.unwrap();
    agent.close().await.unwrap();
    assert_eq!(log.take(), CLOSES, "the end of the program does not wait for it");
    assert_eq!(instance.run("hello").await.unwrap_err().code(), &ErrorCode::INSTANCE_CLOSED);
    agent.instance("one").await.unwrap().run("hello").await.unwrap();
    assert_eq!(log.take(), ["a hello: 1 of 1001"]);
}

#[both_linkages(start_paused = true)]
async fn an_unread_stream_keeps_it_open() {
    let log = Log::new();
    let agent = counting(&log, "a").idle_after(IDLE).build().unwrap();
    let stream = agent.instance("one").await.unwrap().run_stream("hello");
    sleep(10 * IDLE).await;
    stream.finish().await.unwrap();
    assert_eq!(log.take(), ["a hello: 1 of 1"]);
    sleep(IDLE + MOMENT).await;
    assert_eq!(log.take(), CLOSES);
}

#[both_linkages(start_paused = true)]
async fn a_running_event_handler_keeps_it_open() {
    let log = Log::new();
    let agent = agent([ScriptItem::say("fine").repeat()]).with::<Thinking>(log.config());
    let instance = agent.idle_after(IDLE).build().unwrap().instance("one").await.unwrap();
    instance.run("think").await.unwrap();
    sleep(10 * IDLE).await;
    assert_eq!(log.take(), [""; 0]);
    instance.run("enough").await.unwrap();
    assert_eq!(log.take(), ["thought"]);
    sleep(IDLE + MOMENT).await;
    assert_eq!(log.take(), ["closes"]);
}

#[both_linkages(start_paused = true)]
async fn an_undelivered_answer_keeps_it_open() {
    let (log, router) = (Log::new(), LocalRouter::new());
    let asking = json!({ "log": log, "target": "b", "from": "later" });
    let a = counting(&log, "a").with::<Asking>(asking).router(router.clone()).idle_after(IDLE);
    let a = a.build().unwrap();
    let answering = ScriptedModel::new([ScriptItem::say("answer").repeat()]);
    let b = Agent::builder("b").model(answering).build().unwrap();
    router.add(&b);
    let instance = a.instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    sleep(10 * IDLE).await;
    assert_eq!(log.take(), ["a hello: 1 of 1"]);
    instance.run("which").await.unwrap();
    let messages = instance.messages().await.unwrap();
    assert!(messages.iter().any(|message| message.text().contains("`b`: answer")), "{messages:?}");
}

#[both_linkages(start_paused = true)]
async fn inputs_that_arrive_while_it_closes_are_not_lost() {
    let (log, (store, gates)) = (Log::new(), GatedStore::new());
    let agent = counting(&log, "a").store(store).idle_after(IDLE).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    gates.commit.shut();
    // The state of the clean-up is about to be stored.
    gates.commit.reached().await;
    assert_eq!(log.take()[1..], CLOSES);
    let mut run = pin!(instance.run("one"));
    poll_fn(|cx| {
        assert!(run.as_mut().poll(cx).is_pending(), "it waits in the queue");
        Poll::Ready(())
    })
    .await;
    instance.send("two");
    let again = agent.instance("one");
    gates.commit.open();
    run.await.unwrap();
    again.await.unwrap().run_stream("three").finish().await.unwrap();
    assert_eq!(log.take(), ["a one: 1 of 1001", "a two: 2 of 1002", "a three: 3 of 1003"]);
    assert_eq!(instance.messages().await.unwrap().len(), 8);
    assert_eq!(gates.openings.load(Ordering::SeqCst), 2);
}

#[both_linkages(start_paused = true)]
async fn a_cancelled_caller_leaves_it_open() {
    let (log, (store, gates)) = (Log::new(), GatedStore::new());
    let agent = counting(&log, "a").store(store).idle_after(IDLE).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    sleep(IDLE + MOMENT).await;
    assert_eq!(log.take(), CLOSES);
    gates.open.shut();
    tokio::select! {
        biased;
        _ = instance.run("given up") => panic!("the store does not open"),
        () = gates.open.reached() => {}
    }
    gates.open.open();
    instance.run("hello").await.unwrap();
    assert_eq!(log.take(), ["a hello: 1 of 1001"]);
    assert_eq!(gates.openings.load(Ordering::SeqCst), 2, "once at the start, and once for both inputs");
}

#[both_linkages(start_paused = true)]
async fn an_opening_that_was_given_up_is_closed_once_it_is_open() {
    let (log, (store, gates)) = (Log::new(), GatedStore::new());
    let agent = counting(&log, "a").store(store).build().unwrap();
    gates.open.shut();
    tokio::select! {
        biased;
        _ = agent.instance("one") => panic!("the store does not open"),
        () = gates.open.reached() => {}
    }
    gates.open.open();
    sleep(MOMENT).await;
    assert_eq!(log.take(), CLOSES);
    agent.instance("one").await.unwrap().run("hello").await.unwrap();
    assert_eq!(log.take()[0], "a hello: 1 of 1001");
}

#[both_linkages(start_paused = true)]
async fn an_instance_that_cannot_be_stored_is_not_closed() {
    let (log, (store, gates)) = (Log::new(), GatedStore::new());
    let agent = counting(&log, "a").store(store).idle_after(IDLE).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    gates.failing.store(true, Ordering::SeqCst);
    assert_eq!(instance.run("hello").await.unwrap_err().code(), &ErrorCode::STORE_IO);
    sleep(10 * IDLE).await;
    assert_eq!(log.take(), ["a hello: 1 of 1"], "the turn is in memory alone");
    gates.failing.store(false, Ordering::SeqCst);
    sleep(IDLE + MOMENT).await;
    assert_eq!(log.take(), CLOSES);
    assert_eq!(instance.messages().await.unwrap().len(), 2);
}

#[both_linkages(start_paused = true)]
async fn another_program_may_open_it_meanwhile() {
    let (log, dir) = (Log::new(), TempDir::new().unwrap());
    let program = || counting(&log, "a").store(FileStore::open(dir.path()).unwrap()).idle_after(IDLE).build();
    let (first, second) = (program().unwrap(), program().unwrap());
    let instance = first.instance("one").await.unwrap();
    instance.run("first").await.unwrap();
    assert_eq!(second.instance("one").await.unwrap_err().code(), &ErrorCode::STORE_LOCKED);
    sleep(IDLE + MOMENT).await;
    let other = second.instance("one").await.unwrap();
    other.run("second").await.unwrap();
    for _ in 0..2 {
        let error = instance.run("refused").await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::STORE_LOCKED, "the caller gets the reason why it cannot be opened");
    }
    sleep(IDLE + MOMENT).await;
    instance.run("third").await.unwrap();
    let texts: Vec<_> = instance.messages().await.unwrap().iter().map(|said| said.text().into_owned()).collect();
    assert_eq!(texts, ["first", "fine", "second", "fine", "third", "fine"]);
}

#[both_linkages(start_paused = true)]
async fn it_reopens_with_the_present_description_of_its_agent() {
    let log = Log::new();
    let agent = counting(&log, "a").idle_after(IDLE).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    sleep(IDLE + MOMENT).await;
    assert_eq!(log.take(), CLOSES);
    agent.reload(&counting(&log, "new").build().unwrap()).await.unwrap();
    instance.run("hello").await.unwrap();
    assert_eq!(log.take(), ["new hello: 1 of 1001"], "nothing was opened for the reload");
}
