//! STEER-01: inputs that join the turn that runs.

use std::future::pending;
use std::sync::{Arc, Mutex};

use conformance_extensions::steered::Steered;
use goondan::agent::{AgentBuilder, TurnUpdate};
use goondan::event::{AgentEvent, RuntimeEvent};
use goondan::middleware::TurnResult;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::store::{FileStore, Fsync, MemoryStore, Store};
use goondan::{Agent, BoxFuture, ErrorCode, Instance, Result, Value, json};
use goondan_breaking::{Break, Breaking, GoesOn, Plan, close};
use goondan_covers::{both_linkages, covers};
use goondan_libraries::is_long_run;
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::Log;

/// A model whose requests are kept, and which answers by the number of the request and its texts.
struct Acting<F> {
    requests: Mutex<Vec<Vec<String>>>,
    act: F,
}

impl<F: Fn(usize, &[String]) -> Value + Send + Sync + 'static> Model for Acting<F> {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let texts = request.messages().map(|message| format!("{}: {}", message.role.as_str(), message.content.text()));
        let texts: Vec<_> = texts.collect();
        let number = self.requests.lock().unwrap().len();
        self.requests.lock().unwrap().push(texts.clone());
        let answer = (self.act)(number, &texts);
        Box::pin(async move { Ok(serde_json::from_value(answer)?) })
    }
}

fn calls(tools: &[&str]) -> Value {
    let call =
        |(at, tool): (usize, &&str)| json!({ "id": format!("c{at}"), "name": format!("steered__{tool}"), "args": {} });
    let calls: Vec<_> = tools.iter().enumerate().map(call).collect();
    json!({ "toolCalls": calls, "finishReason": "tool-calls" })
}

fn says(text: &str) -> Value {
    json!({ "text": text, "finishReason": "stop" })
}

type Steering = BoxFuture<'static, Result<TurnResult>>;

/// A conversation, into whose turns the model of the first requests steers inputs.
struct Setting {
    agent: Agent,
    instance: Arc<Mutex<Option<Instance>>>,
    steered: Arc<Mutex<Vec<Steering>>>,
    model: Arc<dyn Fn() -> Vec<Vec<String>> + Send + Sync>,
    log: Log,
}

impl Setting {
    /// `steer` are the inputs that are steered while the model is asked for the first time, and `answers` what it
    /// answers, the last one from then on.
    async fn new(
        steer: Vec<AgentEvent>,
        answers: Vec<Value>,
        config: Value,
        build: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        let instance = Arc::<Mutex<Option<Instance>>>::default();
        let steered = Arc::<Mutex<Vec<Steering>>>::default();
        let (to, kept) = (Arc::clone(&instance), Arc::clone(&steered));
        let act = move |number: usize, _: &[String]| {
            if number == 0 {
                let instance = to.lock().unwrap().clone().unwrap();
                kept.lock().unwrap().extend(steer.iter().map(|event| instance.steer(event.clone())));
            }
            answers[number.min(answers.len() - 1)].clone()
        };
        let model = Arc::new(Acting { requests: Mutex::default(), act });
        let log = Log::new();
        let mut full = json!({ "log": log });
        full.as_object_mut().unwrap().extend(config.as_object().cloned().unwrap_or_default());
        let agent = Agent::builder("assistant").model(Arc::clone(&model)).with::<Steered>(full);
        let agent = build(agent).build().unwrap();
        *instance.lock().unwrap() = Some(agent.instance("test").await.unwrap());
        let requests = Arc::new(move || model.requests.lock().unwrap().clone());
        Self { agent, instance, steered, model: requests, log }
    }

    fn instance(&self) -> Instance {
        self.instance.lock().unwrap().clone().unwrap()
    }

    /// Returns the results of what was steered.
    async fn steered(&self) -> Vec<Result<TurnResult>> {
        let steered = std::mem::take(&mut *self.steered.lock().unwrap());
        let mut results = Vec::new();
        for steering in steered {
            results.push(steering.await);
        }
        results
    }

    fn requests(&self) -> Vec<Vec<String>> {
        (self.model)()
    }

    async fn texts(&self) -> Vec<String> {
        let messages = self.instance().messages().await.unwrap();
        messages.iter().map(|message| format!("{}: {}", message.role().as_str(), message.text())).collect()
    }

    async fn end(self) {
        let instance = self.instance.lock().unwrap().take().unwrap();
        instance.close().await.unwrap();
    }
}

fn event(id: &str, text: &str) -> AgentEvent {
    AgentEvent::input(text).with_id(id)
}

#[both_linkages]
#[covers("STEER-01", "D-46")]
async fn an_input_joins_the_turn_that_runs_at_its_next_step() {
    let answers = vec![calls(&["look", "act"]), says("done")];
    let steer = vec![event("b", "and this"), event("c", "and that")];
    let dir = TempDir::new().unwrap();
    let store = FileStore::open(dir.path()).unwrap().fsync(Fsync::Never);
    let setting = Setting::new(steer, answers, json!({}), |agent| agent.store(store)).await;
    let mut events = Vec::new();
    let mut turn = setting.instance().run_stream(event("a", "hello"));
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Event(event) = update {
            match &*event {
                RuntimeEvent::InputJoined { event_id, .. } => events.push(format!("joined {event_id}")),
                other => events.push(other.name().to_owned()),
            }
        }
    }
    let result = turn.finish().await.unwrap();
    let joined = setting.steered().await;
    for steered in &joined {
        let steered = steered.as_ref().unwrap();
        assert_eq!((steered.turn_id(), &*steered.text(), steered.is_stored()), (result.turn_id(), "done", true));
    }
    assert_eq!(joined.len(), 2);
    let expected = ["user: hello", "assistant: ", "tool: seen", "tool: done", "user: and this", "user: and that"];
    assert_eq!(setting.requests()[1], expected);
    assert_eq!(setting.log.take(), ["step 1: and this", "step 1: and that"]);
    assert_eq!(
        events[events.len() - 6..],
        ["step.completed", "joined b", "joined c", "step.started", "step.completed", "turn.completed"]
    );

    // Each of them is answered once, in the next process too.
    for id in ["b", "c", "a"] {
        let text = if id == "a" {
            "hello"
        } else if id == "b" {
            "and this"
        } else {
            "and that"
        };
        let again = setting.instance().run(event(id, text)).await.unwrap();
        assert_eq!((again.turn_id(), &*again.text(), again.is_stored()), (result.turn_id(), "done", true));
        let again = setting.instance().steer(event(id, text)).await.unwrap();
        assert_eq!((again.turn_id(), again.is_stored()), (result.turn_id(), true));
    }
    let reused = setting.instance().run(event("b", "another")).await.unwrap_err();
    assert_eq!(*reused.code(), ErrorCode::EVENT_REUSED);
    let agent = setting.agent.clone();
    assert_eq!(setting.requests().len(), 2);
    setting.end().await;
    let opened = agent.instance("test").await.unwrap();
    let again = opened.run(event("b", "and this")).await.unwrap();
    assert_eq!((again.turn_id(), &*again.text(), again.is_stored()), (result.turn_id(), "done", true));
    opened.close().await.unwrap();
}

#[both_linkages]
#[covers("STEER-01")]
async fn layers_of_the_step_replace_or_remove_what_has_joined() {
    let answers = vec![calls(&["look", "look"]), calls(&["look"]), says("done")];
    let steer = vec![event("b", "my card is 4242"), event("c", "never say that"), event("d", "fine")];
    let setting = Setting::new(steer, answers, json!({ "hold": true }), |agent| agent).await;
    setting.instance().run(event("a", "hello")).await.unwrap();
    assert_eq!(setting.requests()[1][4..], ["user: my card is ****", "user: fine"]);
    // What a step was told of is not told to the next one.
    assert_eq!(setting.log.take(), ["step 1: my card is 4242", "step 1: never say that", "step 1: fine"]);
    assert_eq!(setting.texts().await[4..6], ["user: my card is ****", "user: fine"]);
    let results: Vec<_> =
        setting.steered().await.into_iter().map(|result| result.unwrap().text().into_owned()).collect();
    assert_eq!(results, ["done"; 3]);
    setting.end().await;
}

#[both_linkages]
#[covers("STEER-01")]
async fn a_turn_that_ends_first_is_followed_by_one_for_the_input() {
    let setting =
        Setting::new(vec![event("b", "and this")], vec![says("one"), says("two")], json!({}), |agent| agent).await;
    let first = setting.instance().run(event("a", "hello")).await.unwrap();
    let second = setting.steered().await.remove(0).unwrap();
    assert_ne!(first.turn_id(), second.turn_id());
    assert_eq!((&*second.text(), second.is_stored()), ("two", false));
    assert_eq!(setting.texts().await, ["user: hello", "assistant: one", "user: and this", "assistant: two"]);
    // Without a turn that runs, it is as any other input, and its updates are streamed.
    let mut stream = setting.instance().steer_stream(event("c", "more"));
    let mut text = String::new();
    while let Some(update) = stream.next().await {
        if let TurnUpdate::Event(event) = update
            && let RuntimeEvent::TurnStarted { .. } = &*event
        {
            text.push_str("started ");
        }
    }
    text.push_str(&stream.finish().await.unwrap().text());
    assert_eq!(text, "started two");
    assert_eq!(setting.log.take(), Vec::<String>::new());
    setting.end().await;
}

#[both_linkages]
#[covers("STEER-01", "ONCE-01")]
async fn an_input_that_was_answered_or_is_no_input_joins_nothing() {
    let answers = vec![says("first"), calls(&["act"]), says("done")];
    let setting = Setting::new(Vec::new(), answers, json!({}), |agent| agent).await;
    let instance = setting.instance();
    let first = instance.run(event("a", "hello")).await.unwrap();
    // The turn that runs is asked to take its own event, one that was answered, and the same one twice.
    let steered: Vec<_> =
        [event("b", "go"), event("a", "hello"), event("c", "more"), event("c", "more"), event("d", " ")]
            .map(|event| instance.steer(event))
            .into();
    let turn = instance.run(event("b", "go")).await.unwrap();
    let mut results = Vec::new();
    for steering in steered {
        results.push(steering.await);
    }
    let error = results.pop().unwrap().unwrap_err();
    assert_eq!(*error.code(), ErrorCode::INPUT);
    let turns: Vec<_> = results.into_iter().map(|result| result.unwrap().turn_id().clone()).collect();
    let of_b = turn.turn_id().clone();
    assert_eq!(turns, [of_b.clone(), first.turn_id().clone(), of_b.clone(), of_b]);
    let texts = setting.texts().await;
    for (text, times) in [("user: go", 1), ("user: hello", 1), ("user: more", 1)] {
        assert_eq!(texts.iter().filter(|known| *known == text).count(), times, "{texts:?}");
    }
    setting.end().await;
}

#[both_linkages]
#[covers("STEER-01")]
async fn an_input_whose_future_was_dropped_joins_nothing() {
    let setting =
        Setting::new(vec![event("b", "and this")], vec![calls(&["look"]), says("done")], json!({}), |agent| agent)
            .await;
    let instance = setting.instance();
    drop(instance.steer(event("c", "dropped before")));
    let stream = instance.steer_stream(event("d", "dropped too"));
    drop(stream);
    instance.run(event("a", "hello")).await.unwrap();
    assert_eq!(setting.requests()[1].last().unwrap(), "user: and this");
    assert_eq!(setting.requests()[0], ["user: hello"]);
    setting.steered().await;
    setting.end().await;
}

/// Runs a turn into which an input is steered, until both are answered, however often it is interrupted.
#[expect(clippy::too_many_lines, reason = "it is told from its start to its end")]
async fn interrupted(store: impl Store, breaks: &[(usize, Break)], goes_on: GoesOn) -> (usize, bool) {
    let plan = Plan::new(breaks.to_vec());
    let asked = Arc::new(Notify::new());
    let is_asked = Arc::clone(&asked);
    let (to, kept) = (Arc::<Mutex<Option<Instance>>>::default(), Arc::<Mutex<Option<Steering>>>::default());
    let (instance_of_model, steered) = (Arc::clone(&to), Arc::clone(&kept));
    // A turn that goes on is answered in the same way.
    let act = move |number: usize, texts: &[String]| {
        if number == 0 {
            let instance = instance_of_model.lock().unwrap().clone().unwrap();
            *steered.lock().unwrap() = Some(instance.steer(event("b", "and this")));
            is_asked.notify_one();
        }
        if texts.iter().any(|text| text.starts_with("tool")) { says("done") } else { calls(&["look", "act"]) }
    };
    let model = Arc::new(Acting { requests: Mutex::default(), act });
    let log = Log::new();
    let agent = Agent::builder("assistant").model(Arc::clone(&model)).with::<Steered>(json!({ "log": log }));
    let agent = agent.store(Breaking::new(store, Arc::clone(&plan))).build().unwrap();
    let (mut a, mut b, mut is_steered) = (None, None, false);
    let mut instance = agent.instance("test").await.unwrap();
    while a.is_none() || b.is_none() {
        *to.lock().unwrap() = Some(instance.clone());
        let run_a = async {
            match a.is_none() {
                true => instance.run(event("a", "hello")).await,
                false => pending().await,
            }
        };
        let run_b = async {
            if !is_steered {
                asked.notified().await;
                let steering = kept.lock().unwrap().take().unwrap();
                return steering.await;
            }
            match b.is_none() {
                true => instance.steer(event("b", "and this")).await,
                false => pending().await,
            }
        };
        let is_away = |result: &Result<TurnResult>| {
            result.as_ref().is_err_and(|error| *error.code() == ErrorCode::STORE_UNAVAILABLE)
        };
        tokio::select! {
            biased;
            () = plan.broken() => {
                is_steered |= !model.requests.lock().unwrap().is_empty();
                to.lock().unwrap().take();
                kept.lock().unwrap().take();
                if goes_on == GoesOn::AfterANewOpening {
                    close(instance, &plan).await.unwrap();
                    instance = agent.instance("test").await.unwrap();
                }
            }
            result = run_a => if !is_away(&result) { a = Some(result.unwrap()) },
            result = run_b => {
                is_steered = true;
                if !is_away(&result) { b = Some(result.unwrap()) }
            }
        }
    }
    let (a, b) = (a.unwrap(), b.unwrap());
    let what = format!("{breaks:?}, {goes_on:?}");
    let messages = instance.messages().await.unwrap();
    let count = |text: &str| messages.iter().filter(|message| message.text() == text).count();
    assert_eq!((count("hello"), count("and this")), (1, 1), "{what}: {messages:?}");
    assert_eq!((&*a.text(), &*b.text()), ("done", "done"), "{what}");
    let before = model.requests.lock().unwrap().len();
    for (id, text, turn) in [("a", "hello", &a), ("b", "and this", &b)] {
        let again = instance.run(event(id, text)).await.unwrap();
        assert_eq!((again.turn_id(), again.is_stored()), (turn.turn_id(), true), "{what}");
    }
    let requests = model.requests.lock().unwrap().clone();
    assert_eq!(requests.len(), before, "{what}");
    // Every request after the one in which it was first sent has it once.
    let with = requests.iter().map(|request| request.iter().filter(|text| *text == "user: and this").count());
    let with: Vec<_> = with.skip_while(|count| *count == 0).collect();
    assert!(!with.is_empty() && with.iter().all(|count| *count == 1), "{what}: {requests:?}");
    let logged = log.take();
    assert!(logged.iter().all(|line| line == "step 1: and this"), "{what}: {logged:?}");
    let is_joined = a.turn_id() == b.turn_id();
    assert!(!is_joined || !logged.is_empty(), "{what}: a guard was not told");
    to.lock().unwrap().take();
    instance.close().await.unwrap();
    (plan.writes(), is_joined)
}

#[both_linkages]
#[covers("STEER-01", "RESUME-01")]
async fn an_input_is_there_once_wherever_the_turn_is_interrupted() {
    let (writes, is_joined) = interrupted(MemoryStore::new(), &[], GoesOn::InTheSameProcess).await;
    assert!(writes > 4 && is_joined);
    let dir = TempDir::new().unwrap();
    let (mut runs, mut joined) = (0, 0);
    let plans: [&[Break]; 5] =
        [&[Break::Before], &[Break::After], &[Break::Away], &[Break::After, Break::Before], &[Break::Lost]];
    for at in 1..=writes {
        for breaks in plans {
            let breaks: Vec<_> = breaks.iter().enumerate().map(|(next, kind)| (at + next, *kind)).collect();
            for goes_on in [GoesOn::InTheSameProcess, GoesOn::AfterANewOpening] {
                if breaks[0].1 == Break::Lost && goes_on == GoesOn::InTheSameProcess {
                    continue;
                }
                let (_, is_joined) = interrupted(MemoryStore::new(), &breaks, goes_on).await;
                (runs, joined) = (runs + 1, joined + usize::from(is_joined));
                if is_long_run() || runs % 5 == 0 {
                    let store = FileStore::open(dir.path().join(runs.to_string())).unwrap().fsync(Fsync::Never);
                    interrupted(store, &breaks, goes_on).await;
                }
            }
        }
    }
    println!("{runs} runs, in {joined} of which the input joined");
    assert!(runs > 40 && joined * 2 > runs, "{runs} runs, {joined}");
}
