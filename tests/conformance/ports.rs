//! What programs ask of a store beside opening conversations, in memory and in files.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goondan::decision::{AskedQuestion, Decision, Question, QuestionId, Wait};
use goondan::event::{AgentEvent, Principal};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::name::{AgentName, EventId, ExtensionName, InstanceKey, ToolCallId, TurnId};
use goondan::store::{
    Durability, EventDigest, FileStore, InstanceId, InstanceQuery, InstanceStatus, MemoryStore, Opened, Store, Suspend,
    TurnOutcome, TurnStart,
};
use goondan::{Agent, BoxFuture, ErrorCode, Map, Result, json};
use goondan_breaking::{Breaking, Plan};
use goondan_covers::covers;
use tempfile::TempDir;
use tokio::sync::Notify;

/// The stores, each with the directory in which it keeps files.
fn stores() -> Vec<(Arc<dyn Store>, Option<TempDir>)> {
    let dir = TempDir::new().unwrap();
    let files = FileStore::open(dir.path().join("workspace")).unwrap();
    vec![(Arc::new(MemoryStore::new()), None), (Arc::new(files), Some(dir))]
}

fn agent(name: &str, store: impl Store, answers: usize) -> Agent {
    let answers = (0..answers).map(|_| ScriptItem::say("yes"));
    Agent::builder(name).model(ScriptedModel::new(answers)).store(store).build().unwrap()
}

fn id(agent: &str, key: &str) -> InstanceId {
    InstanceId { agent: AgentName::new(agent).unwrap(), key: InstanceKey::new(key).unwrap() }
}

async fn keys(store: &dyn Store, query: &InstanceQuery) -> Vec<String> {
    store.list(query).await.unwrap().instances.into_iter().map(|found| found.id.to_string()).collect()
}

#[tokio::test]
async fn instances_are_listed_by_agent_and_key_in_pages_and_deleted() {
    for (store, _dir) in stores() {
        assert!(keys(&*store, &InstanceQuery::new()).await.is_empty());
        for (name, key) in [("b", "user:2"), ("a", "user:1"), ("a", "cron"), ("a", "user:3")] {
            let instance = agent(name, Arc::clone(&store), 1).instance(key).await.unwrap();
            instance.run("hello").await.unwrap();
            instance.close().await.unwrap();
        }
        let all = ["a:cron", "a:user:1", "a:user:3", "b:user:2"];
        assert_eq!(keys(&*store, &InstanceQuery::new()).await, all);
        let of_users = InstanceQuery::new().agent(AgentName::new("a").unwrap()).key_prefix("user:");
        assert_eq!(keys(&*store, &of_users).await, all[1..3]);
        let (mut found, mut query) = (Vec::new(), InstanceQuery::new().limit(3));
        loop {
            let page = store.list(&query).await.unwrap();
            assert!(page.instances.iter().all(|instance| instance.created_at <= instance.updated_at));
            found.extend(page.instances.into_iter().map(|instance| instance.id.to_string()));
            let Some(next) = page.next else { break };
            query = query.after(next);
        }
        assert_eq!(found, all);

        let open = agent("a", Arc::clone(&store), 0).instance("cron").await.unwrap();
        assert_eq!(store.delete(&id("a", "cron")).await.unwrap_err().code(), &ErrorCode::STORE_LOCKED);
        open.close().await.unwrap();
        assert!(store.delete(&id("a", "cron")).await.unwrap());
        assert!(!store.delete(&id("a", "cron")).await.unwrap());
        assert_eq!(keys(&*store, &InstanceQuery::new()).await, all[1..]);
    }
}

/// Names of directories have escaped letters, and long ones are cut.
#[tokio::test]
async fn instances_are_listed_by_any_beginning_of_their_keys() {
    for (store, _dir) in stores() {
        let long = "\u{e9}/".repeat(100);
        let all = ["a b", "a/b/1", "a/b/2", "ab", &format!("{long}1"), &format!("{long}2")].map(str::to_owned);
        for key in &all {
            let instance = agent("a", Arc::clone(&store), 1).instance(key).await.unwrap();
            instance.run("hello").await.unwrap();
            instance.close().await.unwrap();
        }
        for key in &all {
            for (end, _) in key.char_indices().chain([(key.len(), ' ')]).step_by(if key.len() > 9 { 23 } else { 1 }) {
                let start = &key[..end];
                let query = InstanceQuery::new().agent(AgentName::new("a").unwrap()).key_prefix(start);
                let mut expected: Vec<_> = all.iter().filter(|key| key.starts_with(start)).collect();
                expected.sort();
                let expected: Vec<_> = expected.into_iter().map(|key| format!("a:{key}")).collect();
                assert_eq!(keys(&*store, &query).await, expected, "{start}");
            }
        }
    }
}

#[tokio::test]
#[covers("ONCE-01")]
async fn how_an_event_was_answered_is_told_without_opening_its_instance() {
    for (store, _dir) in stores() {
        let event = |id: &str| AgentEvent::input("hello").with_id(id);
        let script = [ScriptItem::say("yes"), ScriptItem::fail("it is broken", false)];
        let agent = Agent::builder("a").model(ScriptedModel::new(script)).store(Arc::clone(&store)).build().unwrap();
        let instance = agent.instance("k").await.unwrap();
        instance.run(event("e1")).await.unwrap();
        instance.run(event("e2")).await.unwrap_err();
        instance.close().await.unwrap();
        let outcome = async |instance: &InstanceId, event: &str| {
            let event = EventId::from(event);
            store.outcome(instance, &event).await.unwrap().map(|ended| ended.outcome)
        };
        let of = id("a", "k");
        assert!(matches!(outcome(&of, "e1").await, Some(TurnOutcome::Answered { .. })));
        let Some(TurnOutcome::Failed { code, .. }) = outcome(&of, "e2").await else { panic!("e2 has failed") };
        assert_eq!(code, ErrorCode::MODEL);
        assert_eq!(outcome(&of, "e3").await, None);
        assert_eq!(outcome(&id("a", "other"), "e1").await, None);
    }
}

fn asked() -> QuestionId {
    QuestionId::new(ExtensionName::new("approval").unwrap(), "ask", None)
}

/// The journal of a turn whose call waits, as *A person decides* writes it.
async fn suspend(opened: &mut Opened, call: &ToolCallId) {
    let (turn, event) = (TurnId::from("t1"), AgentEvent::input("refund it").with_id("e1"));
    let digest = EventDigest::of(&event);
    opened.journal.begin(TurnStart::new(&turn).event(&event, digest)).unwrap();
    let extension = ExtensionName::new("approval").unwrap();
    let state = [(extension.clone(), json!({ "asked": 1 }))].into();
    let wait = Wait::new(call.clone(), "shop__refund", Map::from_iter([("order".to_owned(), 1183.into())]));
    let waits = [wait.question(AskedQuestion::new(asked(), Question::new("Refund 49.00 EUR?")))];
    opened.journal.suspend(Suspend::new(&turn, &state).waits(&waits)).await.unwrap();
    // State that changes meanwhile takes no wait away.
    opened.journal.suspend(Suspend::new(&turn, &state)).await.unwrap();
}

#[tokio::test]
#[covers("RESUME-01")]
async fn a_turn_that_waits_for_a_decision_stays_open_and_keeps_what_was_decided() {
    for (store, _dir) in stores() {
        let (of, call) = (id("a", "k"), ToolCallId::from("call-1"));
        let status = async || store.list(&InstanceQuery::new()).await.unwrap().instances[0].status;
        let mut opened = store.open(&of).await.unwrap();
        suspend(&mut opened, &call).await;
        opened.journal.close().await.unwrap();
        assert_eq!(status().await, InstanceStatus::Suspended);
        let suspended = InstanceQuery::new().status(InstanceStatus::Suspended);
        assert_eq!(keys(&*store, &suspended).await, ["a:k"]);

        let mut opened = store.open(&of).await.unwrap();
        let facts = opened.interrupted.take().unwrap().facts;
        let waits: Vec<_> = facts.undecided().collect();
        assert_eq!((waits.len(), &waits[0].call, &waits[0].args["order"]), (1, &call, &json!(1183)));
        assert_eq!((&*waits[0].questions[0].question.text, waits[0].expires), ("Refund 49.00 EUR?", None));
        assert_eq!(facts.state.values().next(), Some(&json!({ "asked": 1 })));
        let decision = Decision::new(call.clone(), "approve").of(asked()).by(Principal::new("user", "7"));
        opened.journal.decide(std::slice::from_ref(&decision)).unwrap();
        opened.journal.flush(Durability::Synced).await.unwrap();
        opened.journal.close().await.unwrap();
        assert_eq!(status().await, InstanceStatus::Interrupted);

        let facts = store.open(&of).await.unwrap().interrupted.unwrap().facts;
        assert_eq!((facts.decisions, facts.waits.len(), facts.resumptions), (vec![decision], 1, 0));
        // Another input closes the turn, which answers its event.
        let instance = agent("a", Arc::clone(&store), 1).instance("k").await.unwrap();
        instance.run("something else").await.unwrap();
        instance.close().await.unwrap();
        let ended = store.outcome(&of, &EventId::from("e1")).await.unwrap().unwrap();
        assert_eq!(ended.outcome, TurnOutcome::interrupted(Some(EventId::from("e1"))));
        assert_eq!(status().await, InstanceStatus::Idle);
    }
}

/// Hangs when it is asked for the first time.
#[derive(Default)]
struct HangsOnce(AtomicUsize, Arc<Notify>);

impl Model for HangsOnce {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        if self.0.fetch_add(1, Ordering::SeqCst) == 0 {
            self.1.notify_one();
            return Box::pin(std::future::pending());
        }
        Box::pin(async { Ok(ModelResponse::text("done")) })
    }
}

#[tokio::test]
#[covers("RESUME-01")]
async fn a_turn_whose_instance_is_taken_over_ends_writes_nothing_more_and_goes_on_after_a_new_opening() {
    let (plan, model) = (Plan::of_calls([]), HangsOnce::default());
    let store = Breaking::new(MemoryStore::new(), Arc::clone(&plan));
    let asked = Arc::clone(&model.1);
    let agent = Agent::builder("a").model(model).store(store).build().unwrap();
    let (instance, event) = (agent.instance("k").await.unwrap(), AgentEvent::input("hello").with_id("e1"));
    let take_over = async {
        asked.notified().await;
        let written = plan.writes();
        plan.lose();
        written
    };
    let (outcome, written) = tokio::join!(instance.run(event.clone()), take_over);
    assert_eq!(outcome.unwrap_err().code(), &ErrorCode::STORE_LOST);
    assert_eq!(plan.writes(), written, "nothing is written to an instance that is lost");
    let result = instance.run(event).await.unwrap();
    assert_eq!((result.text().as_ref(), result.is_stored()), ("done", false));
    let texts: Vec<_> = instance.messages().await.unwrap().iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["hello", "done"]);
}

#[tokio::test]
async fn messages_are_read_while_the_instance_is_open() {
    for (store, _dir) in stores() {
        let of = id("a", "k");
        assert_eq!(store.messages(&of).await.unwrap(), None);
        let instance = agent("a", Arc::clone(&store), 1).instance("k").await.unwrap();
        instance.run("one").await.unwrap();
        let read = store.messages(&of).await.unwrap().unwrap();
        assert_eq!(read, instance.messages().await.unwrap());
        assert_eq!(read.len(), 2);
        instance.close().await.unwrap();
        assert_eq!(store.messages(&of).await.unwrap().unwrap(), read);
    }
}

#[tokio::test]
async fn a_conversation_whose_files_are_gone_is_opened_again() {
    let dir = TempDir::new().unwrap();
    let store = FileStore::open(dir.path().join("workspace")).unwrap();
    let agent = agent("a", store.clone(), 3);
    let instance = agent.instance("k").await.unwrap();
    instance.run("one").await.unwrap();
    std::fs::remove_dir_all(store.instance_dir(&id("a", "k"))).unwrap();
    assert_eq!(instance.run("two").await.unwrap_err().code(), &ErrorCode::STORE_LOST);
    instance.run("three").await.unwrap();
    assert_eq!(instance.messages().await.unwrap().len(), 2);
    instance.close().await.unwrap();
    assert_eq!(store.read(&id("a", "k")).unwrap().messages.len(), 2);
}

#[tokio::test]
async fn a_store_of_a_program_needs_no_more_than_to_open_instances() {
    struct Opening(MemoryStore);

    impl Store for Opening {
        fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
            self.0.open(instance)
        }
    }

    let store = Opening(MemoryStore::new());
    let error = store.list(&InstanceQuery::new()).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::STORE_UNSUPPORTED);
    assert_eq!(store.delete(&id("a", "k")).await.unwrap_err().code(), &ErrorCode::STORE_UNSUPPORTED);
    assert_eq!(store.messages(&id("a", "k")).await.unwrap_err().code(), &ErrorCode::STORE_UNSUPPORTED);
    let unknown = store.outcome(&id("a", "k"), &EventId::from("e")).await;
    assert_eq!(unknown.unwrap_err().code(), &ErrorCode::STORE_UNSUPPORTED);
}
