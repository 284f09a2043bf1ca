//! Turns that are accepted before they begin, conversations that are watched, and their end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use goondan::agent::LiveUpdate;
use goondan::decision::{Decision, Question};
use goondan::event::AgentDelegate;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::prelude::*;
use goondan::store::{FileStore, InstanceId, MemoryQueue, MemoryStore, Opened, Store};
use goondan::{Agent, BoxFuture, json};
use goondan_covers::covers;
use goondan_serve::{Limits, Service, Tokens};
use tempfile::TempDir;

use crate::support::{PIECES, Sent, Served, events, hello, paced, text_of};

fn accepted(input: &str) -> goondan::Value {
    json!({ "input": input, "wait": "accepted" })
}

/// Serves an agent with files in `at`, and works on its queue.
async fn served(agent: goondan::agent::AgentBuilder, at: &Path) -> (Served, tokio::task::JoinHandle<()>) {
    let store = FileStore::in_workspace(at, "main").unwrap();
    let queue = Arc::new(store.queue().unwrap());
    let served = Served::with(agent, Arc::new(store), |service| service.queue(queue)).await;
    let service = served.service.clone();
    (served, tokio::spawn(async move { service.work().await.unwrap() }))
}

/// Accepts three turns on which nothing works, and returns their paths.
async fn accept(at: &Path) -> Vec<String> {
    let store = FileStore::in_workspace(at, "main").unwrap();
    let queue = Arc::new(store.queue().unwrap());
    let (agent, _) = paced();
    let served = Served::with(agent, Arc::new(store), |service| service.queue(queue)).await;
    let mut places = Vec::new();
    for (key, input) in [("ada", "one"), ("ada", "two"), ("bob", "three")] {
        let response = served.turn(key, &accepted(input), Some(input)).await;
        places.push(response.headers()["location"].to_str().unwrap().to_owned());
        assert_eq!(crate::support::json_of(response).await, (202, json!({ "status": "queued" })));
    }
    assert_eq!(served.turn("ada", &accepted("one"), Some("one")).await.status(), 202, "it waits already");
    assert_eq!(served.turn("ada", &accepted("other"), Some("one")).await.status(), 422);
    assert_eq!(served.get(&format!("{}{}", served.url, places[0])).await, (202, json!({ "status": "queued" })));
    places
}

#[tokio::test]
#[covers("SERVE-01", "SERVE-02", "ONCE-01")]
async fn what_is_accepted_is_answered_also_by_the_next_process() {
    let directory = TempDir::new().unwrap();
    let at = directory.path().to_owned();
    // Of this process nothing is left: its queue is locked as long as a connection is there.
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let places = std::thread::spawn(move || runtime().block_on(accept(&at))).join().unwrap();
    let (agent, model) = paced();
    let (served, work) = served(agent, directory.path()).await;
    model.let_through(3 * PIECES.len());
    for place in &places {
        let mut watched = served.client.get(format!("{}{place}/events", served.url)).send().await.unwrap();
        let told = events(&mut watched, usize::MAX).await;
        assert_eq!(text_of(&told), PIECES.concat(), "{place}");
        assert_eq!(served.get(&format!("{}{place}", served.url)).await.1["response"], PIECES.concat());
    }
    assert_eq!(model.asked.load(Ordering::SeqCst), 3);
    let (_, messages) = served.get(&served.at("ada", "/messages")).await;
    let texts: Vec<_> = messages.as_array().unwrap().iter().map(|message| message["data"]["content"].clone()).collect();
    assert_eq!((&texts[0], &texts[2]), (&json!("one"), &json!("two")), "in the order in which they were accepted");
    // The same key is the same turn, whichever way it is sent.
    let again = served.turn("ada", &json!({ "input": "one", "wait": "result" }), Some("one")).await;
    assert_eq!(crate::support::json_of(again).await.1["response"], PIECES.concat());
    assert_eq!(served.turn("ada", &accepted("one"), Some("one")).await.status(), 202);
    assert_eq!(model.asked.load(Ordering::SeqCst), 3);
    work.abort();
}

#[tokio::test]
#[covers("SERVE-01")]
async fn a_turn_that_waits_is_cancelled_once_and_too_many_are_refused() {
    let (agent, model) = paced();
    let queue = Arc::new(MemoryQueue::new());
    let mut limits = Limits::default();
    limits.waiting = 2;
    let served = Served::with(agent, Arc::new(MemoryStore::new()), |service| service.queue(queue).limits(limits)).await;
    let place =
        |response: &reqwest::Response| format!("{}{}", served.url, response.headers()["location"].to_str().unwrap());
    let one = place(&served.turn("ada", &accepted("one"), None).await);
    let two = place(&served.turn("bob", &accepted("two"), None).await);
    assert_eq!(served.turn("eve", &accepted("three"), None).await.status(), 429);
    let deleted = served.client.delete(served.at("ada", "")).send().await.unwrap();
    assert_eq!(deleted.status(), 409, "its turn would make it again");
    let watching = served.client.get(format!("{one}/events")).send();
    assert_eq!(served.post(&format!("{one}/cancel"), &json!(null)).await, (200, json!({ "cancelled": true })));
    assert_eq!(served.post(&format!("{one}/cancel"), &json!(null)).await, (200, json!({ "cancelled": false })));
    assert_eq!(served.get(&one).await.1["error"]["code"], "E_TURN_CANCELLED");
    let told = events(&mut watching.await.unwrap(), usize::MAX).await;
    assert_eq!(told.last().unwrap().json()["error"]["code"], "E_TURN_CANCELLED");
    assert_eq!(served.turn("eve", &accepted("three"), None).await.status(), 202, "there is room again");
    let service = served.service.clone();
    let work = tokio::spawn(async move { service.work().await.unwrap() });
    model.let_through(2 * PIECES.len());
    let mut watched = served.client.get(format!("{two}/events")).send().await.unwrap();
    assert_eq!(text_of(&events(&mut watched, usize::MAX).await), PIECES.concat());
    served.until_ended().await;
    assert_eq!(model.asked.load(Ordering::SeqCst), 2);
    work.abort();
}

/// Asks now, and starts turns of its own.
struct Busy(ExtensionApi);

#[goondan::extension(name = "busy")]
impl Busy {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self(api)
    }

    /// Asks the person.
    #[tool(effect = once, asks)]
    async fn ask(&self, ctx: &ToolContext<'_>) -> Result<String> {
        ctx.ask_live(Question::choose("Heads or tails?", ["heads", "tails"])).await
    }

    /// Starts another turn.
    #[tool(effect = once)]
    async fn go_on(&self) -> Result<String> {
        self.0.events().delegate(AgentDelegate::new("assistant".parse()?, "more"));
        Ok("later".into())
    }
}

fn busy(script: impl IntoIterator<Item = ScriptItem>) -> goondan::agent::AgentBuilder {
    Agent::builder("assistant").model(ScriptedModel::new(script)).extension::<Busy>(json!({}))
}

#[tokio::test]
#[covers("SERVE-01", "ASK-04")]
async fn a_live_question_is_told_and_answered_while_the_turn_runs() {
    let served = Served::new(busy([ScriptItem::call("busy__ask", json!({})), ScriptItem::say("Heads.")])).await;
    let mut response = served.turn("ada", &hello(), None).await;
    let mut told: Vec<Sent> = Vec::new();
    while !told.iter().any(|event| event.json()["type"] == "asked") {
        let more = events(&mut response, 1).await;
        assert!(!more.is_empty(), "the turn has ended: {told:?}");
        told.extend(more);
    }
    let decisions = served.at("ada", "/decisions");
    let (_, waits) = served.get(&decisions).await;
    assert_eq!(waits[0]["questions"][0]["question"]["text"], "Heads or tails?");
    assert_eq!(served.post(&served.at("bob", "/decisions"), &json!([{ "call": waits[0]["call"] }])).await.0, 404);
    let (status, problem) = served.post(&decisions, &json!([{ "call": waits[0]["call"], "value": 7 }])).await;
    assert_eq!((status, &problem["code"]), (400, &json!("E_DECISION_INVALID")));
    let decides = json!([{ "id": waits[0]["id"], "call": waits[0]["call"], "value": "heads" }]).to_string();
    let mut decided = served.client.post(&decisions).body(decides).send().await.unwrap();
    let whole = events(&mut decided, usize::MAX).await;
    assert_eq!(whole.last().unwrap().json()["response"], "Heads.");
    assert!(whole.iter().any(|event| event.json()["type"] == "gone"));
    told.extend(events(&mut response, usize::MAX).await);
    assert_eq!(told, whole, "all who watch are told the same");
}

#[tokio::test]
#[covers("ASK-04", "SERVE-03")]
async fn the_answer_to_a_live_question_has_its_principal() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let agent = busy([ScriptItem::call("busy__ask", json!({})), ScriptItem::say("Heads.")]);
    let agent = agent.store(Arc::clone(&store)).build().unwrap();
    let mut questions = agent.subscribe_questions();
    // Of `one`.
    let tokens = Tokens::parse("ada: 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed\n").unwrap();
    let served = Served::of(Service::new(agent).store(store).tokens(tokens)).await;
    let post = async |path: &str, body: goondan::Value| {
        let request = served.client.post(served.at("ada:x", path)).header("authorization", "Bearer one");
        request.body(body.to_string()).send().await.unwrap()
    };
    let mut turn = post("/turns", hello()).await;
    let LiveUpdate::Asked(question) = questions.next().await else { panic!("nothing was asked before") };
    let call = question.wait().call.clone();
    let mut decided = post("/decisions", json!([{ "call": call, "value": "heads" }])).await;
    let whole = events(&mut turn, usize::MAX).await;
    assert_eq!(events(&mut decided, usize::MAX).await, whole);
    assert_eq!(whole.last().unwrap().json()["response"], "Heads.");
    let second = question.decide(Decision::new(call, "tails")).unwrap_err();
    assert_eq!(second.code().as_str(), "E_DECISION_TAKEN");
    assert!(second.message().contains("approved by user `ada`"), "{second}");
}

#[tokio::test]
#[covers("SERVE-01", "WAKE-01")]
async fn a_conversation_is_watched_with_all_its_turns() {
    let script = [ScriptItem::call("busy__go_on", json!({})), ScriptItem::say("one"), ScriptItem::say("two")];
    let served = Served::new(busy(script)).await;
    let mut watching = served.client.get(served.at("ada", "/events")).send().await.unwrap();
    let mut other = served.client.get(served.at("bob", "/events")).send().await.unwrap();
    let mut turn = served.turn("ada", &hello(), None).await;
    let whole = events(&mut turn, usize::MAX).await;
    let mut told = Vec::new();
    let ends = |told: &[Sent]| told.iter().filter(|event| event.json()["type"] == "turn").count();
    while ends(&told) < 2 {
        told.extend(events(&mut watching, 1).await);
    }
    let (own, background): (Vec<_>, Vec<_>) = told.into_iter().partition(|event| !event.id.is_empty());
    assert_eq!(own, whole, "with the places of the turn");
    let end = background.last().unwrap().json();
    assert_eq!((&end["response"], &end["background"]["input"]), (&json!("two"), &json!("more")));
    let before_its_end = &background[..background.len() - 1];
    assert_eq!(text_of(before_its_end), "two");
    assert!(before_its_end.iter().all(|event| event.json().to_string().contains(end["turnId"].as_str().unwrap())));
    // One who comes later reads a turn that runs from its beginning. The streams end with the service.
    served.service.drain(Duration::from_secs(1)).await;
    assert_eq!(events(&mut other, usize::MAX).await, [], "those of another conversation are not told");
    let rest = events(&mut watching, usize::MAX).await;
    assert_eq!(rest, []);
}

#[tokio::test]
#[covers("SERVE-01", "WAKE-01")]
async fn a_turn_in_the_background_is_watched_while_it_runs_and_nothing_waits_for_it() {
    let (agent, model) = paced();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let agent = agent.store(Arc::clone(&store)).build().unwrap();
    let served = Served::of(Service::new(agent.clone()).store(store)).await;
    let mut watching = served.client.get(served.at("ada", "/events")).send().await.unwrap();
    let instance = agent.instance("ada").await.unwrap();
    instance.send("hello");
    model.let_through(2);
    let mut told = Vec::new();
    while text_of(&told) != PIECES[..2].concat() {
        told.extend(events(&mut watching, 1).await);
    }
    assert_eq!(served.get(&served.at("ada", "/decisions")).await, (200, json!([])));
    assert_eq!(served.get(&served.at("ada", "/messages")).await.0, 200);
    assert_eq!(served.client.delete(served.at("ada", "")).send().await.unwrap().status(), 409);
    let running = instance.running().unwrap();
    let cancel = served.at("ada", &format!("/turns/{running}/cancel"));
    drop(instance);
    assert_eq!(served.post(&cancel, &json!(null)).await, (200, json!({ "cancelled": true })));
    while told.last().unwrap().json()["type"] != "turn" {
        told.extend(events(&mut watching, 1).await);
    }
    assert_eq!(text_of(&told), PIECES[..2].concat());
    assert_eq!(told.last().unwrap().json()["error"]["code"], "E_TURN_CANCELLED");
    assert!(told.iter().all(|event| event.id.is_empty()), "they have no places");
}

#[tokio::test]
#[covers("SERVE-01", "WAKE-01")]
async fn a_turn_in_the_background_that_ran_before_is_told_when_it_has_ended() {
    let (agent, model) = paced();
    let agent = agent.build().unwrap();
    let served = Served::of(Service::new(agent.clone())).await;
    let instance = agent.instance("ada").await.unwrap();
    instance.send("hello");
    while instance.running().is_none() {
        tokio::task::yield_now().await;
    }
    let mut watching = served.client.get(served.at("ada", "/events")).send().await.unwrap();
    model.let_through(PIECES.len());
    let told = events(&mut watching, 1).await;
    assert_eq!((told.len(), &told[0].json()["response"]), (1, &json!(PIECES.concat())));
}

#[tokio::test]
#[covers("SERVE-01")]
async fn one_who_comes_later_watches_from_the_beginning_of_the_turn() {
    let (agent, model) = paced();
    let served = Served::new(agent).await;
    let mut turn = served.turn("ada", &hello(), None).await;
    model.let_through(2);
    let mut seen = Vec::new();
    while text_of(&seen) != PIECES[..2].concat() {
        seen.extend(events(&mut turn, 1).await);
    }
    let mut watching = served.client.get(served.at("ada", "/events")).send().await.unwrap();
    // One who comes back goes on behind what it has read.
    let request = served.client.get(served.at("ada", "/events")).header("last-event-id", &seen.last().unwrap().id);
    let mut again = request.send().await.unwrap();
    let read = seen.len();
    model.let_through(2);
    seen.extend(events(&mut turn, usize::MAX).await);
    served.service.drain(Duration::from_secs(1)).await;
    assert_eq!(events(&mut watching, usize::MAX).await, seen);
    assert_eq!(events(&mut again, usize::MAX).await, seen[read..]);
}

#[tokio::test]
#[covers("SERVE-01", "SERVE-02")]
async fn a_conversation_that_is_deleted_is_gone_with_its_keys() {
    let directory = TempDir::new().unwrap();
    let agent = Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi").repeat()]));
    let store = FileStore::in_workspace(directory.path(), "main").unwrap();
    let served = Served::with(agent, Arc::new(store), |service| service).await;
    let body = json!({ "input": "hello", "wait": "result" });
    let first = crate::support::json_of(served.turn("ada", &body, Some("k")).await).await.1;
    let delete = || served.client.delete(served.at("ada", "")).send();
    assert_eq!(delete().await.unwrap().status(), 204);
    assert_eq!(served.get(&served.at("ada", "")).await.0, 404);
    assert_eq!(delete().await.unwrap().status(), 404);
    let second = crate::support::json_of(served.turn("ada", &body, Some("k")).await).await.1;
    assert_ne!(first["turnId"], second["turnId"], "the key is free again");
    assert_eq!(served.get(&served.at("ada", "")).await.1["key"], "ada");
}

#[tokio::test]
#[covers("SERVE-01")]
async fn one_who_watches_a_conversation_and_reads_nothing_is_told_how_much_it_has_missed() {
    // So many that no buffer of a connection holds them.
    let item = |_: u32| ScriptItem::say("word ".repeat(300_000)).pieces(1_000.try_into().unwrap());
    let served = Served::new(Agent::builder("assistant").model(ScriptedModel::new((0..8).map(item)))).await;
    let mut watching = served.client.get(served.at("ada", "/events")).send().await.unwrap();
    for _ in 0..8 {
        let response = served.turn("ada", &json!({ "input": "hello", "wait": "result" }), None).await;
        assert_eq!(crate::support::json_of(response).await.0, 200);
    }
    served.service.drain(Duration::from_secs(1)).await;
    let told = events(&mut watching, usize::MAX).await;
    let missed: u64 =
        told.iter().filter(|event| event.event == "missed").map(|event| event.data.parse::<u64>().unwrap()).sum();
    let read = told.iter().filter(|event| event.event.is_empty()).count() as u64;
    assert!(missed > 0, "{read} are read");
    let whole = 8 * (1_000 + 6);
    assert!(read + missed >= whole, "{read} read and {missed} missed of at least {whole}");
}

#[tokio::test]
#[covers("SERVE-01")]
async fn of_several_turns_of_a_conversation_the_one_that_runs_is_watched() {
    let (agent, model) = paced();
    let served = Served::new(agent).await;
    let mut first = served.turn("ada", &hello(), None).await;
    model.let_through(1);
    let begun = events(&mut first, 1).await;
    let mut others = Vec::new();
    for _ in 0..8 {
        others.push(served.turn("ada", &hello(), None).await);
    }
    let mut watching = served.client.get(served.at("ada", "/events")).send().await.unwrap();
    assert_eq!(events(&mut watching, 1).await[0], begun[0]);
    model.let_through(9 * PIECES.len());
    served.until_ended().await;
}

/// An extension whose service is away when the first conversation is opened.
struct Away;

static OPENED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

#[goondan::extension(name = "away")]
impl Away {
    #[init]
    fn new() -> Result<Self> {
        match OPENED.fetch_add(1, Ordering::SeqCst) {
            0 => Err(Error::msg("the service is away")),
            _ => Ok(Self),
        }
    }
}

#[test]
#[covers("SERVE-01", "ONCE-01")]
fn what_was_accepted_waits_for_what_is_broken() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let agent = Agent::builder("assistant").extension::<Away>(json!({}));
        let agent = agent.model(ScriptedModel::new([ScriptItem::say("hi").repeat()]));
        let queue = Arc::new(MemoryQueue::new());
        let served = Served::with(agent, Arc::new(MemoryStore::new()), |service| service.queue(queue)).await;
        let service = served.service.clone();
        let work = tokio::spawn(async move { service.work().await.unwrap() });
        let response = served.turn("ada", &accepted("one"), None).await;
        let place = format!("{}{}", served.url, response.headers()["location"].to_str().unwrap());
        let mut watched = served.client.get(format!("{place}/events")).send().await.unwrap();
        let told = events(&mut watched, usize::MAX).await;
        assert_eq!(told.last().unwrap().json()["response"], "hi");
        assert_eq!(OPENED.load(Ordering::SeqCst), 2);
        work.abort();
    });
}

/// A store that does no more than a store must.
struct Opening(MemoryStore);

impl Store for Opening {
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        self.0.open(instance)
    }
}

#[tokio::test]
#[covers("SERVE-01")]
async fn a_store_that_only_opens_conversations_is_enough() {
    let (agent, model) = paced();
    let queue = Arc::new(MemoryQueue::new());
    let store = Arc::new(Opening(MemoryStore::new()));
    let served = Served::with(agent, store, |service| service.queue(queue)).await;
    let service = served.service.clone();
    let work = tokio::spawn(async move { service.work().await.unwrap() });
    model.let_through(2 * PIECES.len());
    let response = served.turn("ada", &accepted("one"), Some("k")).await;
    assert_eq!(response.status(), 202);
    let place = format!("{}{}", served.url, response.headers()["location"].to_str().unwrap());
    let mut watched = served.client.get(format!("{place}/events")).send().await.unwrap();
    assert_eq!(text_of(&events(&mut watched, usize::MAX).await), PIECES.concat());
    let chat =
        json!({ "id": "c", "messages": [{ "id": "m", "role": "user", "parts": [{ "type": "text", "text": "hi" }] }] });
    let (status, answer) = served.post(&format!("{}/v1/agents/assistant/ui", served.url), &chat).await;
    assert!(status == 200 && answer.to_string().contains("finish"), "{answer}");
    work.abort();
}
