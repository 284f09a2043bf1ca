//! RESUME-01, ONCE-01: a turn that is interrupted anywhere goes on, and is as one that was not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use conformance_extensions::resumed::Resuming;
use goondan::agent::{LocalRouter, TurnUpdate};
use goondan::conversation::{Content, MessageData, Role};
use goondan::event::{AgentEvent, RuntimeEvent};
use goondan::middleware::{FinishReason, OnError, TurnResult};
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::store::{FileStore, MemoryStore, Store};
use goondan::{Agent, BoxFuture, ErrorCode, Instance, Result, Value, json};
use goondan_breaking::{Break, Breaking, GoesOn, Plan};
use goondan_covers::{both_linkages, covers};
use goondan_libraries::is_long_run;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::observed::Folding;
use crate::support::Log;

/// A model whose answer depends on how many answers it has given in the conversation.
struct Answering {
    answers: Vec<Value>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Model for Answering {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let is_corrected = |text: &str| text.starts_with("Your last answer could not be used");
        let is_given = |message: &MessageData| message.role == Role::Assistant || is_corrected(&message.content.text());
        let given = request.messages().filter(|message| is_given(message)).count();
        let texts: Vec<_> = request.messages().map(|message| texts(&message.content)).collect();
        self.requests.lock().unwrap().push(texts.join(" | "));
        let answer = self.answers[given.min(self.answers.len() - 1)].clone();
        Box::pin(async move { Ok(serde_json::from_value(answer)?) })
    }
}

/// What a turn does.
struct Scenario {
    name: &'static str,
    config: Value,
    answers: Vec<Value>,
    on_error: OnError,
}

/// What is left of a turn.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    text: String,
    messages: Vec<String>,
    states: BTreeMap<String, Value>,
    requests: Vec<String>,
    ran: Vec<String>,
}

fn calls(tools: &[&str]) -> Value {
    let call = |(at, tool): (usize, &&str)| json!({ "id": format!("{tool}{at}"), "name": format!("resuming__{tool}"), "args": {} });
    let calls: Vec<_> = tools.iter().enumerate().map(call).collect();
    json!({ "toolCalls": calls, "finishReason": "tool-calls" })
}

fn says(text: &str) -> Value {
    json!({ "text": text, "finishReason": "stop" })
}

fn texts(content: &Content) -> String {
    content.texts().collect::<Vec<_>>().join(" ")
}

fn said(outcome: Result<TurnResult>) -> String {
    match outcome {
        Ok(result) => result.text().into_owned(),
        Err(error) => format!("{}: {}", error.code(), error.message()),
    }
}

/// Two agents with one store, and what can be seen of a turn of the first.
struct Run {
    agent: Agent,
    other: Agent,
    log: Log,
    requests: Arc<Mutex<Vec<String>>>,
    /// Those to the model of the other agent.
    others: Arc<Mutex<Vec<String>>>,
    plan: Arc<Plan>,
    folding: Folding,
}

impl Run {
    fn new(scenario: &Scenario, store: impl Store, plan: Arc<Plan>) -> Self {
        let (log, requests, others) = (Log::new(), Arc::<Mutex<Vec<String>>>::default(), Arc::default());
        let mut config = scenario.config.clone();
        config["log"] = json!(log);
        let answers = Answering { answers: scenario.answers.clone(), requests: Arc::clone(&requests) };
        let advice = Answering { answers: vec![says("as you like")], requests: Arc::clone(&others) };
        let router = LocalRouter::new();
        let agent = Agent::builder("assistant").model(answers).with::<Resuming>(config);
        let agent = agent.on_error("resuming", scenario.on_error);
        let (agent, folding) = (agent.store(Breaking::new(store, Arc::clone(&plan))), Folding::default());
        let agent = agent.router(router.clone()).observer(folding.clone()).build().unwrap();
        let other = Agent::builder("other").model(advice).router(router.clone()).build().unwrap();
        router.add(&agent);
        router.add(&other);
        Self { agent, other, log, requests, others, plan, folding }
    }

    /// Runs `event` until its turn has ended, however often it is interrupted.
    async fn end(&self, event: &AgentEvent, goes_on: GoesOn) -> (Instance, String) {
        let (instance, outcome) = goondan_breaking::run(&self.agent, "test", event, &self.plan, goes_on).await.unwrap();
        (instance, said(outcome))
    }

    /// Returns how often the other agent was asked, once nothing runs any more.
    async fn asked(&self) -> usize {
        for agent in [&self.agent, &self.other] {
            let mut turns = agent.subscribe_turns();
            while turns.next_pending().await.is_some() {}
        }
        self.others.lock().unwrap().len()
    }

    async fn seen(&self, goes_on: GoesOn) -> Seen {
        let event = AgentEvent::input("hello").with_id("e1");
        let (instance, text) = self.end(&event, goes_on).await;
        // Whoever asks again gets the same answer, and nothing runs.
        let before = self.requests.lock().unwrap().len();
        let again = loop {
            let again = said(instance.run(event.clone()).await);
            if !again.starts_with("E_STORE_UNAVAILABLE") {
                break again;
            }
        };
        assert_eq!(again, text);
        assert_eq!(self.requests.lock().unwrap().len(), before);
        let messages = instance.messages().await.unwrap();
        self.folding.check(&messages, goes_on == GoesOn::AfterANewOpening);
        let message = |message: &Arc<goondan::conversation::Message>| {
            format!("{:?} {} {}", message.role(), texts(message.content()), json!(message.metadata()))
        };
        let states = instance.states().await.unwrap().into_iter().map(|(name, state)| (name.to_string(), state));
        let seen = Seen {
            text,
            messages: messages.iter().map(message).collect(),
            states: states.collect(),
            requests: self.requests.lock().unwrap().clone(),
            ran: self.log.take(),
        };
        goondan_breaking::close(instance, &self.plan).await.unwrap();
        seen
    }
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn scenarios() -> Vec<Scenario> {
    let two_steps = || vec![calls(&["look", "set", "pay"]), says("done")];
    let scenario = |name, config, answers| Scenario { name, config, answers, on_error: OnError::Abort };
    vec![
        scenario("an answer", json!({}), vec![says("done")]),
        scenario("calls", json!({ "argument": "changed" }), vec![calls(&["pay", "look", "fail"]), says("done")]),
        scenario("calls that only read", json!({}), vec![calls(&["look", "look"]), says("done")]),
        scenario(
            "a malformed answer",
            json!({ "step": [{ "append": "again" }] }),
            vec![json!({ "text": "", "finishReason": "stop" }), calls(&["pay"]), says("done")],
        ),
        scenario("an answer that was cut", json!({}), vec![json!({ "text": "so f", "finishReason": "length" })]),
        scenario("a pause", json!({}), vec![json!({ "text": "one", "finishReason": "pause" }), says("two")]),
        scenario(
            "layers that append",
            json!({
                "turn": [{ "append": "before" }, { "appendAs": "t1" }],
                "turnAfter": [{ "append": "after" }],
                "step": [{ "append": "in step" }],
                "stepAfter": [{ "append": "after step" }],
            }),
            two_steps(),
        ),
        scenario(
            "layers that change and remove",
            json!({
                "turn": [{ "append": "one" }, { "replaceFirst": "HELLO" }],
                "turnAfter": ["removeFirst"],
                "step": [{ "append": "for this step" }],
                "stepAfter": ["takeBack"],
            }),
            two_steps(),
        ),
        scenario(
            "layers that take out and put back",
            json!({
                "turn": [{ "appendAs": "t1" }, { "appendAs": "s1" }, { "takeOut": "t1" }],
                "turnAfter": [{ "appendAs": "t1" }],
                "step": [{ "takeOut": "s1" }],
                "stepAfter": [{ "appendAs": "s1" }],
            }),
            two_steps(),
        ),
        scenario(
            "a layer that truncates",
            json!({ "turn": ["truncate", { "append": "a summary" }], "step": [{ "append": "more" }] }),
            two_steps(),
        ),
        scenario("layers that pay", json!({ "turn": ["pay"], "step": ["pay"] }), two_steps()),
        scenario(
            "layers that note",
            json!({
                "turn": [{ "note": "turn" }], "turnAfter": [{ "note": "turn after" }],
                "step": [{ "note": "step" }], "stepAfter": [{ "note": "step after" }],
            }),
            two_steps(),
        ),
        scenario("a held stream and an edit", json!({ "step": ["hold", { "project": "only now" }] }), two_steps()),
        scenario(
            "a prepared answer",
            json!({ "step": [{ "answerIn": [1, "prepared"] }, { "append": "x" }] }),
            two_steps(),
        ),
        scenario(
            "another attempt",
            json!({ "step": [{ "append": "attempt" }], "stepAfter": [{ "retryIn": 0 }] }),
            vec![says("first"), calls(&["pay"]), says("done")],
        ),
        scenario("a failure", json!({ "step": [{ "append": "x" }], "stepAfter": [{ "failIn": 1 }] }), two_steps()),
        Scenario {
            on_error: OnError::Skip,
            ..scenario(
                "a failure that is skipped",
                json!({ "turnAfter": ["pay"], "step": [{ "append": "x" }], "stepAfter": [{ "failIn": 1 }] }),
                two_steps(),
            )
        },
        scenario(
            "a layer of the step that replaces and truncates",
            json!({ "step": ["truncate", { "append": "a summary" }, { "replaceFirst": "A SUMMARY" }, { "appendAs": "s1" }] }),
            vec![says("done")],
        ),
        scenario(
            "delegations",
            json!({ "turn": [{ "delegate": "other" }], "step": [{ "delegate": "other" }, { "delegate": "other" }] }),
            two_steps(),
        ),
        scenario(
            "other agents",
            json!({ "turn": [{ "ask": "other" }], "step": [{ "ask": "other" }] }),
            vec![calls(&["ask", "pay"]), says("done")],
        ),
    ]
}

/// The result of a call whose outcome is not known, because it had started when the turn was interrupted.
const UNKNOWN: &str = "E_TOOL_OUTCOME_UNKNOWN";

/// Compares a turn that was interrupted with one that was not. Returns whether a call has an unknown outcome: then its
/// handler has not run, and what follows from its result differs.
fn compare(unbroken: &Seen, broken: &Seen, which: &str) -> bool {
    let unknown = |message: &String| message.contains(UNKNOWN);
    if !broken.messages.iter().any(unknown) {
        assert_eq!(broken, unbroken, "{which}");
        return false;
    }
    assert_eq!(broken.messages.len(), unbroken.messages.len(), "{which}");
    let differs = broken.messages.iter().zip(&unbroken.messages).filter(|(broken, unbroken)| broken != unbroken);
    let differs: Vec<_> = differs.map(|(broken, _)| broken).collect();
    assert!(differs.len() == 1 && unknown(differs[0]), "{which}: {differs:?}");
    assert_eq!(broken.requests.len(), unbroken.requests.len(), "{which}");
    assert_eq!(broken.ran.len() + 1, unbroken.ran.len(), "{which}: {:?}", broken.ran);
    true
}

/// Compares a turn whose journal did not take a record with one that was not interrupted. What could not be recorded is
/// done again: the model is asked once more, a layer pays once more, and a tool that may run again does.
fn compare_unrecorded(unbroken: &Seen, broken: &Seen, which: &str) -> bool {
    let once = |seen: &Seen| seen.ran.iter().filter(|ran| ["ran pay", "ran fail"].contains(&ran.as_str())).count();
    assert!(once(broken) <= once(unbroken), "{which}: {:?}", broken.ran);
    let is_unknown = broken.messages.iter().any(|message| message.contains(UNKNOWN));
    let without_repetitions = |seen: &Seen| {
        let mut seen = seen.clone();
        seen.requests.dedup();
        seen.ran.sort();
        seen.ran.dedup();
        seen
    };
    let (mut broken, mut unbroken) = (without_repetitions(broken), without_repetitions(unbroken));
    if which.starts_with("calls that only read") {
        // They run side by side: what the first result was recorded with has what the second call had set.
        broken.states.clone_from(&unbroken.states);
    }
    if is_unknown {
        assert_eq!(broken.messages.len(), unbroken.messages.len(), "{which}: {broken:?}");
        assert_eq!(broken.requests.len(), unbroken.requests.len(), "{which}: {broken:?}");
        let is_told = |text: &&String| text.contains("E_STORE");
        assert!(broken.messages.iter().chain(&broken.requests).find(is_told).is_none(), "{which}: {broken:?}");
        for seen in [&mut broken, &mut unbroken] {
            seen.messages.clear();
            seen.requests.clear();
            seen.ran.clear();
            seen.states.clear();
        }
    }
    assert_eq!(broken, unbroken, "{which}");
    is_unknown
}

/// Returns which of the runs are tried: each, if tests may take long, or else one of so many.
fn every() -> usize {
    if is_long_run() { 1 } else { 5 }
}

/// Runs each scenario with each of `plans` at every write of the turn, or a sample of these. Returns how many runs there
/// were, and how many of them have a call with an unknown outcome.
async fn interrupt<S: Store>(goes_on: GoesOn, plans: &[&[Break]], store: impl Fn() -> S) -> (usize, usize) {
    interrupt_at(Plan::new, compare, goes_on, plans, store).await
}

/// As `interrupt`, where `plan` says what is counted, and `compare` what is the same.
async fn interrupt_at<S: Store>(
    plan: fn(Vec<(usize, Break)>) -> Arc<Plan>,
    compare: fn(&Seen, &Seen, &str) -> bool,
    goes_on: GoesOn,
    plans: &[&[Break]],
    store: impl Fn() -> S,
) -> (usize, usize) {
    let (mut runs, mut unknown) = (0, 0);
    for (number, scenario) in scenarios().iter().enumerate() {
        let unbroken = Run::new(scenario, store(), plan(Vec::new()));
        let seen = unbroken.seen(GoesOn::InTheSameProcess).await;
        let pairs = (1..=unbroken.plan.writes()).flat_map(|at| plans.iter().map(move |breaks| (at, *breaks)));
        for (at, breaks) in pairs.skip(number % every()).step_by(every()) {
            let plan = plan(breaks.iter().enumerate().map(|(next, kind)| (at + next, *kind)).collect());
            let broken = Run::new(scenario, store(), plan).seen(goes_on).await;
            let which = format!("{}, write {at}, {breaks:?}, {goes_on:?}", scenario.name);
            unknown += usize::from(compare(&seen, &broken, &which));
            runs += 1;
        }
    }
    println!("{runs} runs, {unknown} unknown outcomes");
    (runs, unknown)
}

/// Returns stores in directories of their own.
fn files(dir: &TempDir) -> impl Fn() -> FileStore {
    let number = AtomicUsize::new(0);
    move || {
        let number = number.fetch_add(1, Ordering::Relaxed);
        FileStore::open(dir.path().join(number.to_string())).unwrap().fsync(goondan::store::Fsync::Never)
    }
}

const ALL_WAYS: [GoesOn; 2] = [GoesOn::InTheSameProcess, GoesOn::AfterANewOpening];
const ONCE: [&[Break]; 2] = [&[Break::Before], &[Break::After]];
const AWAY: [&[Break]; 2] = [&[Break::Away], &[Break::AwayAfter]];
const AGAIN: [&[Break]; 4] = [
    &[Break::Before, Break::Before],
    &[Break::After, Break::After, Break::After],
    &[Break::Before, Break::After],
    &[Break::Away, Break::Before, Break::AwayAfter],
];

#[both_linkages]
#[covers("RESUME-01")]
async fn a_turn_that_was_interrupted_at_any_write_goes_on_in_the_same_process() {
    let (runs, unknown) = interrupt(GoesOn::InTheSameProcess, &ONCE, MemoryStore::new).await;
    assert!(runs > 200 / every() && unknown == 0, "{runs} runs, {unknown} unknown outcomes");
}

#[both_linkages]
#[covers("RESUME-01")]
async fn and_after_a_new_opening() {
    let (runs, unknown) = interrupt(GoesOn::AfterANewOpening, &ONCE, MemoryStore::new).await;
    assert!(runs > 200 / every() && unknown > 0, "{runs} runs, {unknown} unknown outcomes");
}

#[both_linkages]
#[covers("RESUME-01")]
async fn and_in_files() {
    let dir = TempDir::new().unwrap();
    let (runs, unknown) = interrupt(GoesOn::AfterANewOpening, &ONCE, files(&dir)).await;
    assert!(runs > 200 / every() && unknown > 0, "{runs} runs, {unknown} unknown outcomes");
}

#[both_linkages]
#[covers("RESUME-01")]
async fn and_when_the_store_was_away() {
    let (runs, _) = interrupt(GoesOn::InTheSameProcess, &AWAY, MemoryStore::new).await;
    assert!(runs > 200 / every(), "{runs} runs");
}

/// No model reads that the store is away, and no turn ends by it.
#[both_linkages]
#[covers("RESUME-01")]
async fn and_when_the_store_was_away_at_any_call_of_the_journal() {
    let plans: [&[Break]; 2] = [&[Break::Away], &[Break::Away, Break::Away, Break::Away]];
    let dir = TempDir::new().unwrap();
    let (runs, unknown) =
        interrupt_at(Plan::of_calls, compare_unrecorded, GoesOn::InTheSameProcess, &plans, MemoryStore::new).await;
    assert!(runs > 900 / every() && unknown > 0, "{runs} runs, {unknown} unknown outcomes");
    let (runs, _) =
        interrupt_at(Plan::of_calls, compare_unrecorded, GoesOn::InTheSameProcess, &plans[..1], files(&dir)).await;
    assert!(runs > 400 / every(), "{runs} runs");
}

#[both_linkages]
#[covers("RESUME-01")]
async fn and_when_that_happens_again_and_again() {
    let dir = TempDir::new().unwrap();
    let in_files = files(&dir);
    for goes_on in ALL_WAYS {
        let (runs, _) = interrupt(goes_on, &AGAIN, MemoryStore::new).await;
        assert!(runs > 400 / every(), "{runs} runs");
        let (runs, _) = interrupt(goes_on, &AGAIN, &in_files).await;
        assert!(runs > 400 / every(), "{runs} runs in files");
    }
}

/// The requests of a turn, and its delegations, have the same ids when it goes on.
#[both_linkages]
#[covers("ONCE-01")]
async fn what_a_turn_asks_of_others_is_answered_once_however_often_it_is_interrupted() {
    for name in ["other agents", "delegations"] {
        let scenario = scenarios().into_iter().find(|scenario| scenario.name == name).unwrap();
        let unbroken = Run::new(&scenario, MemoryStore::new(), Plan::new(Vec::new()));
        unbroken.seen(GoesOn::InTheSameProcess).await;
        let expected = unbroken.asked().await;
        assert!(expected >= 3, "{expected}");
        for at in 1..=unbroken.plan.writes() {
            for kind in [Break::Before, Break::After, Break::Away, Break::AwayAfter] {
                let broken = Run::new(&scenario, MemoryStore::new(), Plan::new(vec![(at, kind)]));
                broken.seen(GoesOn::InTheSameProcess).await;
                assert_eq!(broken.asked().await, expected, "{name}, write {at}, {kind:?}");
            }
        }
    }
}

/// Where the answer comes differs: it is that of the step before which it arrives, in this turn or in the next one.
#[both_linkages]
#[covers("RESUME-01", "ONCE-01")]
async fn an_answer_of_another_agent_that_comes_later_comes_once() {
    let scenario = Scenario {
        name: "an answer that comes later",
        config: json!({ "turn": [{ "askLater": "other" }] }),
        answers: vec![calls(&["pause"]), says("done")],
        on_error: OnError::Abort,
    };
    let unbroken = Run::new(&scenario, MemoryStore::new(), Plan::new(Vec::new()));
    unbroken.seen(GoesOn::InTheSameProcess).await;
    let event = AgentEvent::input("hello").with_id("e1");
    for at in 1..=unbroken.plan.writes() {
        for kind in [Break::Before, Break::After, Break::Away, Break::AwayAfter] {
            for goes_on in ALL_WAYS {
                let run = Run::new(&scenario, MemoryStore::new(), Plan::new(vec![(at, kind)]));
                let (instance, text) = run.end(&event, goes_on).await;
                assert_eq!(text, "done");
                comes_once(&instance, &format!("write {at}, {kind:?}, {goes_on:?}")).await;
            }
        }
        // In another process, which knows only what is stored.
        let store = MemoryStore::new();
        let first = Run::new(&scenario, store.clone(), Plan::new(vec![(at, Break::After)]));
        let instance = first.agent.instance("test").await.unwrap();
        tokio::select! {
            outcome = instance.run(event.clone()) => panic!("write {at} did not come: {outcome:?}"),
            () = first.plan.broken() => instance.close().await.unwrap(),
        }
        let second = Run::new(&scenario, store, Plan::new(Vec::new()));
        let (instance, text) = second.end(&event, GoesOn::InTheSameProcess).await;
        assert_eq!(text, "done");
        // After the commit nothing runs again, and an answer that had not come is not asked for.
        if at < unbroken.plan.writes() {
            comes_once(&instance, &format!("write {at}, another process")).await;
        }
    }
}

/// Runs turns until an answer that the first one has asked for has come, and then another one.
async fn comes_once(instance: &Instance, which: &str) {
    let came = async || {
        let messages = instance.messages().await.unwrap();
        let turn = messages[0].turn().unwrap().to_string();
        let of_first = |message: &Arc<goondan::conversation::Message>| {
            let answer = message.metadata().get("__goondanInterAgentResponse")?;
            Some(answer["requestEventId"].as_str()?.starts_with(&turn))
        };
        messages.iter().filter(|message| of_first(message) == Some(true)).count()
    };
    while came().await == 0 {
        tokio::task::yield_now().await;
        instance.run("and now?").await.unwrap();
    }
    // One that came twice would have arrived by then.
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    instance.run("and then?").await.unwrap();
    assert_eq!(came().await, 1, "{which}");
}

/// An agent with the extensions `names`, each of which appends a message in the turn, and one in each step.
fn appending(names: &[&str], log: &Log, store: impl Store) -> Agent {
    let answers = Answering { answers: vec![calls(&["pause"]), says("done")], requests: Arc::default() };
    let agent = Agent::builder("assistant").model(answers).store(store).idle_after(Duration::from_secs(60));
    let with = |agent: goondan::agent::AgentBuilder, name: &&str| {
        let append = |place: &str| json!([{ "append": format!("{name} in the {place}") }]);
        let config = json!({ "log": log, "turn": append("turn"), "step": append("step") });
        agent.with_named(*name, "resuming", config)
    };
    names.iter().fold(agent, with).build().unwrap()
}

/// Those that stay say everything once; those that come speak where they come, and what others have said stays.
#[both_linkages(start_paused = true)]
#[covers("RESUME-01")]
async fn a_turn_goes_on_after_a_reload_and_after_it_was_idle() {
    let all = ["resuming", "other"];
    let (unbroken, log) = (Plan::new(Vec::new()), Log::new());
    let instance = appending(&all, &log, Breaking::new(MemoryStore::new(), Arc::clone(&unbroken)));
    instance.instance("test").await.unwrap().run("hello").await.unwrap();
    for at in 1..=unbroken.writes() {
        for (before, after) in [(&all[..], &all[..1]), (&all[..1], &all[..]), (&all[..], &all[..])] {
            let plan = Plan::new(vec![(at, Break::Before)]);
            let agent = appending(before, &log, Breaking::new(MemoryStore::new(), Arc::clone(&plan)));
            let (instance, event) = (agent.instance("test").await.unwrap(), AgentEvent::input("hello").with_id("e1"));
            tokio::select! {
                outcome = instance.run(event.clone()) => panic!("write {at} did not come: {outcome:?}"),
                () = plan.broken() => {}
            }
            agent.reload(&appending(after, &log, MemoryStore::new())).await.unwrap();
            if before == after {
                // It is closed meanwhile, and opened again.
                tokio::time::sleep(Duration::from_secs(120)).await;
            }
            assert_eq!(instance.run(event).await.unwrap().text(), "done");
            let texts = texts_of(&instance).await;
            let said = |what: &str| texts.iter().filter(|text| *text == what).count();
            let which = format!("write {at}, {before:?} to {after:?}: {texts:?}");
            assert_eq!((said("resuming in the turn"), said("resuming in the step")), (1, 2), "{which}");
            let other = (said("other in the turn"), said("other in the step"));
            let most = (1, 2);
            assert!(other.0 <= most.0 && other.1 <= most.1, "{which}");
            // The last write is the commit: nothing runs after it.
            if after.len() == 2 && at < unbroken.writes() {
                assert!(other.0 == 1 && (before.len() == 1 || other == most), "{which}");
            }
        }
    }
}

/// The reload is requested while the turn runs, and waits for its second step or for the interruption.
#[both_linkages]
#[covers("RESUME-01")]
async fn a_turn_goes_on_after_a_reload_at_its_next_step() {
    let all = ["resuming", "other"];
    let (unbroken, log) = (Plan::new(Vec::new()), Log::new());
    let agent = appending(&all, &log, Breaking::new(MemoryStore::new(), Arc::clone(&unbroken)));
    agent.instance("test").await.unwrap().run("hello").await.unwrap();
    for at in 1..=unbroken.writes() {
        for (before, after) in [(&all[..], &all[..1]), (&all[..1], &all[..])] {
            let plan = Plan::new(vec![(at, Break::Before)]);
            let agent = appending(before, &log, Breaking::new(MemoryStore::new(), Arc::clone(&plan)));
            let (instance, event) = (agent.instance("test").await.unwrap(), AgentEvent::input("hello").with_id("e1"));
            let new = appending(after, &log, MemoryStore::new());
            // The turn starts first: it gives way in its call.
            let mut turn = Box::pin(instance.run(event.clone()));
            let is_broken = tokio::select! {
                biased;
                outcome = &mut turn => panic!("write {at} did not come: {outcome:?}"),
                () = plan.broken() => true,
                () = std::future::ready(()) => false,
            };
            let reload = tokio::spawn(async move { agent.reload_at_next_step(&new).await });
            let outcome = if is_broken {
                None
            } else {
                tokio::select! {
                    outcome = &mut turn => Some(outcome),
                    () = plan.broken() => None,
                }
            };
            drop(turn);
            reload.await.unwrap().unwrap();
            let which = format!("write {at}, {before:?} to {after:?}");
            // With other layers, a turn may have fewer writes.
            let answer = if let Some(outcome) = outcome { outcome } else { instance.run(event).await };
            assert_eq!(answer.unwrap().text(), "done", "{which}");
            let texts = texts_of(&instance).await;
            let said = |what: &str| texts.iter().filter(|text| *text == what).count();
            assert_eq!((said("resuming in the turn"), said("resuming in the step")), (1, 2), "{which}: {texts:?}");
            assert!(said("other in the turn") <= 1 && said("other in the step") <= 2, "{which}: {texts:?}");
        }
    }
}

/// An agent whose model hangs as often as it is told, after it has sent a piece of its answer.
struct Hanging {
    hangs: AtomicUsize,
    asked: Arc<Notify>,
    requests: Arc<AtomicUsize>,
}

impl Model for Hanging {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, deltas: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        deltas.send(ModelDelta::Text { part: 0, text: "half" });
        let hangs = self.hangs.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if hangs {
            self.asked.notify_one();
            return Box::pin(std::future::pending());
        }
        Box::pin(async { Ok(ModelResponse::text("half and half")) })
    }
}

fn hanging(hangs: usize) -> (Agent, Arc<Notify>, Arc<AtomicUsize>) {
    hanging_in(hangs, MemoryStore::new())
}

fn hanging_in(hangs: usize, store: impl Store) -> (Agent, Arc<Notify>, Arc<AtomicUsize>) {
    let (asked, requests) = (Arc::<Notify>::default(), Arc::<AtomicUsize>::default());
    let model = Hanging { hangs: hangs.into(), asked: Arc::clone(&asked), requests: Arc::clone(&requests) };
    (Agent::builder("assistant").model(model).store(store).build().unwrap(), asked, requests)
}

/// Runs `event`, and drops the turn when the model hangs.
async fn interrupted(instance: &Instance, event: &AgentEvent, asked: &Notify) {
    tokio::select! {
        outcome = instance.run(event.clone()) => panic!("the turn ended: {outcome:?}"),
        () = asked.notified() => {}
    }
}

async fn texts_of(instance: &Instance) -> Vec<String> {
    instance.messages().await.unwrap().iter().map(|message| message.text().into_owned()).collect()
}

#[tokio::test]
#[covers("RESUME-01")]
async fn an_answer_of_which_pieces_had_arrived_is_asked_for_again() {
    let (agent, asked, requests) = hanging(1);
    let (instance, event) = (agent.instance("test").await.unwrap(), AgentEvent::input("hello"));
    interrupted(&instance, &event, &asked).await;
    let mut turn = instance.run_stream(event);
    let mut resumed = None;
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Event(event) = update
            && let RuntimeEvent::TurnResumed { number, .. } = *event
        {
            resumed = Some(number);
        }
    }
    assert_eq!((resumed, requests.load(Ordering::SeqCst)), (Some(1), 2));
    assert_eq!(turn.finish().await.unwrap().text(), "half and half");
    assert_eq!(texts_of(&instance).await, ["hello", "half and half"]);
}

/// It is kept if the turn is closed then, and not if it goes on.
#[tokio::test]
#[covers("RESUME-01")]
async fn a_partial_answer_survives_the_closing_of_its_conversation() {
    for in_files in [false, true] {
        for goes_on in [false, true] {
            let dir = TempDir::new().unwrap();
            let (agent, asked, _) = match in_files {
                true => hanging_in(1, FileStore::open(dir.path()).unwrap()),
                false => hanging(1),
            };
            let (instance, event) = (agent.instance("test").await.unwrap(), AgentEvent::input("hello"));
            interrupted(&instance, &event, &asked).await;
            instance.close().await.unwrap();
            drop(instance);
            let instance = agent.instance("test").await.unwrap();
            assert_eq!(texts_of(&instance).await, ["hello", "half"]);
            if goes_on {
                assert_eq!(instance.run(event).await.unwrap().text(), "half and half");
                assert_eq!(texts_of(&instance).await, ["hello", "half and half"]);
            } else {
                instance.run("really?").await.unwrap();
                assert_eq!(texts_of(&instance).await, ["hello", "half", "really?", "half and half"]);
                let messages = instance.messages().await.unwrap();
                assert_eq!(messages[1].metadata().get("partial"), Some(&json!(true)));
            }
        }
    }
}

#[tokio::test]
#[covers("RESUME-01")]
async fn a_turn_that_comes_no_further_is_closed() {
    let dir = TempDir::new().unwrap();
    let in_files = hanging_in(100, FileStore::open(dir.path()).unwrap());
    for (is_closed, (agent, asked, requests)) in [(false, hanging(100)), (true, hanging(100)), (true, in_files)] {
        let (mut instance, event) = (agent.instance("test").await.unwrap(), AgentEvent::input("hello"));
        for _ in 0..6 {
            interrupted(&instance, &event, &asked).await;
            if is_closed {
                instance.close().await.unwrap();
                instance = agent.instance("test").await.unwrap();
            }
        }
        for _ in 0..2 {
            let error = instance.run(event.clone()).await.unwrap_err();
            assert_eq!(error.code(), &ErrorCode::TURN_RESUMED_TOO_OFTEN);
        }
        assert_eq!(requests.load(Ordering::SeqCst), 6, "once, and five times more");
    }
}

#[tokio::test]
#[covers("RESUME-01")]
async fn a_turn_that_is_cancelled_ends_now_and_keeps_what_was_said() {
    let (agent, asked, _) = hanging(100);
    for which in ["by its stream", "while it runs", "after it was interrupted"] {
        let instance = agent.instance(which).await.unwrap();
        let event = AgentEvent::input("hello");
        match which {
            "by its stream" => {
                let mut turn = instance.run_stream(event.clone());
                while !matches!(turn.next().await, Some(TurnUpdate::Text { .. })) {}
                turn.cancel().await.unwrap();
                asked.notified().await;
            }
            "while it runs" => {
                let cancel = async {
                    asked.notified().await;
                    assert!(!instance.cancel(&"another".into()).await.unwrap());
                    assert!(instance.cancel(&event.id).await.unwrap());
                };
                let (outcome, ()) = tokio::join!(instance.run(event.clone()), cancel);
                assert_eq!(outcome.unwrap_err().code(), &ErrorCode::TURN_CANCELLED);
            }
            _ => {
                interrupted(&instance, &event, &asked).await;
                assert!(instance.cancel(&event.id).await.unwrap());
            }
        }
        assert_eq!(texts_of(&instance).await, ["hello", "half"], "{which}");
        assert_eq!(instance.messages().await.unwrap()[1].metadata()["partial"], true);
        assert_eq!(instance.run(event.clone()).await.unwrap_err().code(), &ErrorCode::TURN_CANCELLED);
        assert!(!instance.cancel(&event.id).await.unwrap(), "it has ended");
    }
}

#[tokio::test]
#[covers("ONCE-01")]
async fn an_event_is_answered_once_however_often_it_is_run() {
    let dir = TempDir::new().unwrap();
    let requests = Arc::<Mutex<Vec<String>>>::default();
    let program = || {
        let model = Answering { answers: vec![says("done")], requests: Arc::clone(&requests) };
        Agent::builder("assistant").model(model).store(FileStore::open(dir.path()).unwrap()).build().unwrap()
    };
    let (first, event) = (program(), AgentEvent::input("hello"));
    let instance = first.instance("test").await.unwrap();
    let run = || instance.run(event.clone());
    let (a, b, c, d, e) = tokio::join!(run(), run(), run(), run(), run());
    let mut turns: Vec<_> = [a, b, c, d, e].into_iter().map(|outcome| outcome.unwrap()).collect();
    first.close().await.unwrap();
    let second = program();
    let instance = second.instance("test").await.unwrap();
    turns.push(instance.run(event.clone()).await.unwrap());
    assert_eq!(requests.lock().unwrap().len(), 1);
    assert!(turns.iter().all(|turn| (turn.turn_id(), turn.text()) == (turns[0].turn_id(), "done".into())));
    assert!(turns.iter().all(|turn| turn.finish_reason() == FinishReason::TextResponse && !turn.answer_is_gone()));
    assert_eq!(turns.iter().filter(|turn| !turn.is_stored()).count(), 1);

    // The same id with another input.
    let other = AgentEvent::input("something else").with_id(event.id.clone());
    assert_eq!(instance.run(other).await.unwrap_err().code(), &ErrorCode::EVENT_REUSED);
    assert_eq!(instance.messages().await.unwrap().len(), 2, "nothing ran");
}

#[tokio::test]
#[covers("ONCE-01")]
async fn another_input_with_the_id_of_an_open_turn_leaves_it_open() {
    let (agent, asked, requests) = hanging(1);
    let (instance, event) = (agent.instance("test").await.unwrap(), AgentEvent::input("hello"));
    interrupted(&instance, &event, &asked).await;
    let other = AgentEvent::input("something else").with_id(event.id.clone());
    assert_eq!(instance.run(other).await.unwrap_err().code(), &ErrorCode::EVENT_REUSED);
    assert_eq!(requests.load(Ordering::SeqCst), 1, "nothing ran");
    assert_eq!(instance.run(event).await.unwrap().text(), "half and half");
    assert_eq!(texts_of(&instance).await, ["hello", "half and half"]);
}

#[both_linkages]
#[covers("ONCE-01")]
async fn an_event_whose_answer_is_gone_and_one_whose_turn_was_closed_are_told_apart() {
    let requests = Arc::<Mutex<Vec<String>>>::default();
    let model = Answering { answers: vec![says("done")], requests: Arc::clone(&requests) };
    let config = json!({ "log": Log::new(), "turnAfter": ["truncate"] });
    let agent = Agent::builder("assistant").model(model).with::<Resuming>(config).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let event = AgentEvent::input("hello");
    instance.run(event.clone()).await.unwrap();
    let again = instance.run(event).await.unwrap();
    assert!(again.is_stored() && again.answer_is_gone() && again.text().is_empty());

    let (agent, asked, _) = hanging(1);
    let (instance, event) = (agent.instance("test").await.unwrap(), AgentEvent::input("hello"));
    interrupted(&instance, &event, &asked).await;
    assert_eq!(instance.run("next").await.unwrap().text(), "half and half");
    assert_eq!(instance.run(event).await.unwrap_err().code(), &ErrorCode::TURN_INTERRUPTED);
}

#[both_linkages]
#[covers("RESUME-01", "EFFECT-01")]
async fn a_handler_that_did_not_return_runs_again_unless_it_must_not() {
    let tools = [("look", "look around"), ("set", "set it"), ("pay", UNKNOWN)];
    for ((tool, expected), goes_on) in tools.into_iter().flat_map(|tool| ALL_WAYS.map(|goes_on| (tool, goes_on))) {
        let (log, dir) = (Log::new(), TempDir::new().unwrap());
        let model = Answering { answers: vec![calls(&[tool]), says("done")], requests: Arc::default() };
        let config = json!({ "log": log, "hangs": [tool, dir.path().join("hung")] });
        let agent = Agent::builder("assistant").model(model).with::<Resuming>(config).build().unwrap();
        let (mut instance, event) = (agent.instance("test").await.unwrap(), AgentEvent::input("hello"));
        let hangs = async {
            while log.take().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            outcome = instance.run(event.clone()) => panic!("the turn ended: {outcome:?}"),
            () = hangs => {}
        }
        if goes_on == GoesOn::AfterANewOpening {
            instance.close().await.unwrap();
            instance = agent.instance("test").await.unwrap();
        }
        assert_eq!(instance.run(event).await.unwrap().text(), "done");
        let result = instance.messages().await.unwrap()[2].content().texts().collect::<Vec<_>>().join(" ");
        assert!(result.contains(expected), "{tool}: {result}");
        let (ran, notes) = (log.take(), instance.states().await.unwrap());
        let notes: Vec<_> = notes.values().cloned().collect();
        if tool == "pay" {
            assert!(ran.is_empty() && notes.is_empty(), "what it set goes with its result: {ran:?}, {notes:?}");
        } else {
            assert_eq!((ran, notes), (vec![format!("ran {tool}")], vec![json!([tool])]));
        }
    }
}
