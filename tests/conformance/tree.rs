//! D-40: the turns of other agents that a turn waits for belong to it.

mod ephemeral;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use conformance_extensions::agents::Asking;
use conformance_extensions::tree::Tree;
use goondan::agent::{BackgroundUpdate, LocalRouter, Observer, Policy, Told, TurnUpdate, Wants};
use goondan::conversation::Role;
use goondan::event::{AgentEvent, EventScope, RuntimeEvent, TokenUsage};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::store::{InstanceQuery, MemoryStore, Store};
use goondan::{Agent, BoxFuture, ErrorCode, Instance, Result, Value, json};
use goondan_covers::{both_linkages, covers};
use tokio::task::yield_now;

use crate::linkage::Extended;
use crate::support::{Log, run_for};

/// What the models of all agents do together.
#[derive(Default)]
struct Models {
    running: AtomicUsize,
    answers: AtomicUsize,
}

/// A model that calls a tool, and says something once it has the result. It takes a while.
struct Calling {
    tool: Option<&'static str>,
    hangs: bool,
    /// The time until it answers.
    takes: Duration,
    models: Arc<Models>,
}

/// A request that a model works on.
struct Runs<'a>(&'a Models);

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

fn usage() -> TokenUsage {
    TokenUsage::new(10, 1)
}

fn times(usage: TokenUsage, count: usize) -> TokenUsage {
    let mut sum = TokenUsage::default();
    (0..count).for_each(|_| sum += usage);
    sum
}

impl Model for Calling {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let has_result = request.messages().last().is_some_and(|message| message.role == Role::Tool);
        let answer = match self.tool.filter(|_| !has_result) {
            Some(tool) => {
                let call = json!({ "id": "call", "name": tool, "args": {} });
                json!({ "toolCalls": [call], "finishReason": "tool-calls", "usage": usage() })
            }
            None => json!({ "text": "done", "finishReason": "stop", "usage": usage() }),
        };
        self.models.running.fetch_add(1, Ordering::Relaxed);
        let runs = Runs(&self.models);
        Box::pin(async move {
            let _runs = runs;
            if self.hangs {
                std::future::pending::<()>().await;
            }
            yield_now().await;
            if !self.takes.is_zero() {
                tokio::time::sleep(self.takes).await;
            }
            let answer = serde_json::from_value(answer)?;
            self.models.answers.fetch_add(1, Ordering::Relaxed);
            Ok(answer)
        })
    }
}

/// The usage that the end of each turn of an agent was reported with: its own, and the whole one.
#[derive(Clone, Default)]
struct Reported(Arc<Mutex<Vec<[Option<TokenUsage>; 2]>>>);

impl Observer for Reported {
    fn wants(&self) -> Wants {
        Wants::EVENTS
    }

    fn told(&self, _: &EventScope, what: &Told<'_>) {
        if let Told::Event(event) = what
            && let RuntimeEvent::TurnCompleted { token_usage, whole_usage, .. }
            | RuntimeEvent::TurnFailed { token_usage, whole_usage, .. } = &***event
        {
            self.0.lock().unwrap().push([*token_usage, *whole_usage]);
        }
    }
}

/// What the last agent does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaf {
    /// Its tool is polled so often.
    Works(u32),
    WorksForEver,
    /// Its model never answers.
    Thinks,
}

/// How an agent asks the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum From {
    Tool,
    Layer,
}

/// Agents that ask one another in a row.
struct Tower {
    agents: Vec<Agent>,
    models: Arc<Models>,
    log: Log,
    reported: Reported,
    _router: LocalRouter,
}

impl Tower {
    /// Builds a tower with so many agents below the first.
    fn new(depth: usize, from: From, leaf: Leaf) -> Self {
        Self::with(depth, from, leaf, |_| {})
    }

    fn with(depth: usize, from: From, leaf: Leaf, change: impl Fn(&mut Value)) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self::over(&store, depth, from, leaf, |at, config| {
            if at == 0 {
                change(config);
            }
        })
    }

    /// As [`Tower::new`], with a conversation for each request.
    fn ephemeral(store: &Arc<impl Store>, depth: usize, from: From, leaf: Leaf) -> Self {
        Self::over(store, depth, from, leaf, |_, config| config["ephemeral"] = json!(true))
    }

    fn over(store: &Arc<impl Store>, depth: usize, from: From, leaf: Leaf, change: impl Fn(usize, &mut Value)) -> Self {
        Self::timed(store, depth, from, leaf, change, (Duration::ZERO, Duration::from_hours(1)))
    }

    /// Builds a tower whose models take a time to answer. The turns of the first agent have the other time.
    fn timed(
        store: &Arc<impl Store>,
        depth: usize,
        from: From,
        leaf: Leaf,
        change: impl Fn(usize, &mut Value),
        (takes, until): (Duration, Duration),
    ) -> Self {
        let mut policy = Policy::default();
        policy.turn_timeout = until;
        let (models, log, router, reported) =
            (Arc::<Models>::default(), Log::new(), LocalRouter::new(), Reported::default());
        let agent = |at: usize| {
            let mut config = json!({ "log": log });
            let mut model = Calling { tool: Some("tree__work"), hangs: false, takes, models: Arc::clone(&models) };
            if at < depth {
                config["targets"] = json!([format!("a{}", at + 1)]);
                config["inLayer"] = json!(from == From::Layer);
                model.tool = (from == From::Tool).then_some("tree__delegate");
            } else {
                model.hangs = leaf == Leaf::Thinks;
                if let Leaf::Works(polls) = leaf {
                    config["polls"] = json!(polls);
                }
            }
            change(at, &mut config);
            let agent = Agent::builder(format!("a{at}")).model(model).with::<Tree>(config).router(router.clone());
            let agent = agent.store(Arc::clone(store));
            let agent = if at == 0 { agent.observer(reported.clone()).policy(policy) } else { agent };
            let agent = agent.build().unwrap();
            router.add(&agent);
            agent
        };
        let agents = (0..=depth).map(agent).collect();
        Self { agents, models, log, reported, _router: router }
    }

    async fn conversation(&self, at: usize) -> Instance {
        self.agents[at].instance("test").await.unwrap()
    }

    /// Asserts that nothing runs any more, and returns the log.
    fn assert_still(&self, why: &str) -> Vec<String> {
        assert_eq!(self.models.running.load(Ordering::Relaxed), 0, "{why}");
        let lines = self.log.take();
        let count = |expected: &str| lines.iter().filter(|line| *line == expected).count();
        assert_eq!(count("work begins"), count("work ends"), "{why}");
        lines
    }

    /// Returns how many of the turns are open.
    async fn open_turns(&self) -> usize {
        let mut open = 0;
        for at in 0..self.agents.len() {
            open += usize::from(self.conversation(at).await.interrupted().await.unwrap().is_some());
        }
        open
    }

    fn answers(&self) -> usize {
        self.models.answers.load(Ordering::Relaxed)
    }
}

/// Returns the conversations of a store, but for the one of the first agent.
async fn kept(store: &impl Store) -> Vec<String> {
    let page = store.list(&InstanceQuery::new()).await.unwrap();
    page.instances.iter().map(|stored| stored.id.to_string()).filter(|id| id != "a0:test").collect()
}

fn event() -> AgentEvent {
    AgentEvent::input("go").with_id("e1")
}

const LEAVES: [Leaf; 3] = [Leaf::Works(3), Leaf::WorksForEver, Leaf::Thinks];

/// More rounds than any of these turns has until it ends or hangs.
const ROUNDS: usize = 400;

#[both_linkages(start_paused = true)]
#[covers("WORK-01", "WORK-02")]
async fn what_a_cancelled_turn_waits_for_ends_with_it() {
    for (depth, from) in [(1, From::Tool), (2, From::Layer), (3, From::Tool), (4, From::Layer)] {
        for leaf in LEAVES {
            let (mut rounds, mut sums) = (0, 0);
            loop {
                let why = format!("{depth} {from:?} {leaf:?} {rounds}");
                let tower = Tower::new(depth, from, leaf);
                let instance = tower.conversation(0).await;
                let mut turn = instance.run_stream(event());
                let has_ended = run_for(&mut turn, rounds).await;
                if rounds % 2 == 0 {
                    turn.cancel().await.unwrap();
                } else {
                    // It is interrupted, and cancelled or closed then.
                    drop(turn);
                    match (rounds % 3, leaf) {
                        (0, Leaf::Works(_)) => _ = instance.run("another").await.unwrap(),
                        (1, _) => instance.abandon().await.unwrap(),
                        _ => _ = instance.cancel(&event().id).await.unwrap(),
                    }
                }
                tower.assert_still(&why);
                assert_eq!(tower.open_turns().await, 0, "{why}");
                let reported = tower.reported.0.lock().unwrap().clone();
                if let [[own, whole]] = reported[..]
                    && rounds % 2 == 0
                {
                    sums += 1;
                    let sum = whole.or(own).unwrap_or_default();
                    assert_eq!(sum, times(usage(), tower.answers()), "{why}");
                }
                if has_ended || rounds == ROUNDS {
                    break;
                }
                rounds += if rounds < 150 { 1 } else { 50 };
            }
            assert!(sums > 5, "{depth} {from:?} {leaf:?}: {sums} ends were reported");
        }
    }
}

/// Begins the turn, and drops it after so many rounds. Returns whether it had ended.
async fn dropped_after(instance: &Instance, rounds: usize, depth: usize) -> bool {
    let mut turn = instance.run_stream(event());
    let has_ended = run_for(&mut turn, rounds).await;
    drop(turn);
    // The tasks of the others are dropped when they would run.
    for _ in 0..2 * depth {
        yield_now().await;
    }
    has_ended
}

#[both_linkages(start_paused = true)]
#[covers("D-40")]
async fn what_a_dropped_turn_waits_for_stays_open_and_goes_on_with_it() {
    for (depth, from) in [(1, From::Tool), (2, From::Layer), (3, From::Tool), (4, From::Layer)] {
        let tower = Tower::new(depth, from, Leaf::Works(3));
        assert_eq!(tower.conversation(0).await.run(event()).await.unwrap().text(), "done");
        let expected = tower.answers();
        let mut rounds = 0;
        loop {
            let why = format!("{depth} {from:?} {rounds}");
            let tower = Tower::new(depth, from, Leaf::Works(3));
            let instance = tower.conversation(0).await;
            let has_ended = dropped_after(&instance, rounds, depth).await;
            tower.assert_still(&why);
            let answered = tower.answers();
            let result = instance.run(event()).await.unwrap();
            assert_eq!(result.text(), "done", "{why}");
            // What was answered and not recorded is asked again.
            assert!(
                (expected..=expected + 1).contains(&tower.answers()),
                "{why}: {answered}, then {}",
                tower.answers()
            );
            for at in 0..=depth {
                let messages = tower.conversation(at).await.messages().await.unwrap();
                let texts: Vec<_> = messages.iter().map(|message| message.text().into_owned()).collect();
                assert_eq!(texts.iter().filter(|text| *text == "go").count(), 1, "{why}: {texts:?}");
            }
            assert_eq!(tower.open_turns().await, 0, "{why}");
            if has_ended {
                break;
            }
            rounds += 1;
        }
    }
}

/// Returns the error codes of the turns of an agent that another one has asked.
async fn ended(turns: &mut goondan::agent::BackgroundTurns) -> Vec<Option<ErrorCode>> {
    let mut codes = Vec::new();
    while let Some(update) = turns.next_pending().await {
        let BackgroundUpdate::Ended(turn) = update else { panic!("{update:?}") };
        codes.push(turn.outcome.as_ref().err().map(|error| error.code().clone()));
    }
    codes
}

#[both_linkages(start_paused = true)]
#[covers("WORK-01")]
async fn a_request_that_is_not_waited_for_ends_while_the_turn_runs_on() {
    // The first answer of several, and a deadline.
    for (targets, seconds, expected) in [
        (json!(["a1", "quick"]), 3_600, vec!["work begins", "work ends", "goes on"]),
        (json!(["a1"]), 7, vec!["work begins", "AGENT_REQUEST_TIMEOUT for [\"a1\"]", "work ends", "goes on"]),
    ] {
        for from in [From::Tool, From::Layer] {
            let tower = Tower::with(1, from, Leaf::WorksForEver, |config| {
                (config["targets"], config["seconds"]) = (targets.clone(), json!(seconds));
            });
            let models = Arc::clone(&tower.models);
            let quick = Calling { tool: None, hangs: false, takes: Duration::ZERO, models };
            let quick = Agent::builder("quick").model(quick).build().unwrap();
            tower._router.add(&quick);
            let mut turns = tower.agents[1].subscribe_turns();
            let outcome = tower.conversation(0).await.run(event()).await;
            assert_eq!(outcome.is_ok(), from == From::Tool || seconds > 7, "{outcome:?}");
            assert_eq!(tower.assert_still("the turn has ended"), expected);
            assert_eq!(ended(&mut turns).await, [Some(ErrorCode::TURN_CANCELLED)]);
            assert_eq!(tower.open_turns().await, 0);
        }
    }
}

#[both_linkages(start_paused = true)]
#[covers("WORK-01")]
async fn the_deadline_of_a_turn_is_that_of_what_it_waits_for() {
    let tower = Tower::new(1, From::Tool, Leaf::Thinks);
    let mut policy = Policy::default();
    policy.turn_timeout = Duration::from_secs(3);
    let (models, takes) = (Arc::clone(&tower.models), Duration::ZERO);
    let model = Calling { tool: Some("tree__delegate"), hangs: false, takes, models };
    let boss = Agent::builder("boss").model(model).policy(policy).router(tower._router.clone());
    let boss = boss.with::<Tree>(json!({ "log": tower.log, "targets": ["a0"] })).build().unwrap();
    let start = tokio::time::Instant::now();
    let error = boss.instance("test").await.unwrap().run("go").await.unwrap_err();
    assert_eq!((error.code(), start.elapsed().as_secs()), (&ErrorCode::TURN_TIMEOUT, 3));
    tower.assert_still("the turn has ended");
    assert_eq!(tower.open_turns().await, 0);
}

/// The models take a second each, and the deadline comes in the middle of each second.
#[both_linkages(start_paused = true)]
#[covers("WORK-01", "WORK-02")]
async fn a_deadline_ends_what_the_turn_waits_for_at_any_time() {
    let second = Duration::from_secs(1);
    for (depth, from) in [(0, From::Tool), (1, From::Tool), (2, From::Layer), (3, From::Tool), (4, From::Layer)] {
        for (leaf, is_ephemeral) in LEAVES.into_iter().flat_map(|leaf| [(leaf, false), (leaf, true)]) {
            let mut seconds = 0;
            loop {
                let why = format!("{depth} {from:?} {leaf:?} {is_ephemeral} {seconds}");
                let until = second * seconds + second / 2;
                let store = Arc::new(MemoryStore::new());
                let change = |_, config: &mut Value| config["ephemeral"] = json!(is_ephemeral);
                let tower = Tower::timed(&store, depth, from, leaf, change, (second, until));
                let start = tokio::time::Instant::now();
                let outcome = tower.conversation(0).await.run(event()).await;
                tower.assert_still(&why);
                if is_ephemeral {
                    assert_eq!(kept(&*store).await, Vec::<String>::new(), "{why}");
                }
                assert_eq!(tower.open_turns().await, 0, "{why}");
                let reported = tower.reported.0.lock().unwrap().clone();
                let [[own, whole]] = reported[..] else { panic!("{why}: {reported:?}") };
                assert_eq!(whole.or(own).unwrap_or_default(), times(usage(), tower.answers()), "{why}");
                if let Ok(result) = outcome {
                    assert_eq!((&*result.text(), leaf), ("done", Leaf::Works(3)), "{why}");
                    break;
                }
                assert_eq!((outcome.unwrap_err().code(), start.elapsed()), (&ErrorCode::TURN_TIMEOUT, until), "{why}");
                if seconds > 9 {
                    assert_ne!(leaf, Leaf::Works(3), "{why}");
                    break;
                }
                seconds += 1;
            }
        }
    }
}

/// An agent that is busy does not work on a request that was cancelled meanwhile.
#[both_linkages(start_paused = true)]
#[covers("WORK-01")]
async fn a_request_in_the_queue_is_cancelled_too() {
    let tower = Tower::new(1, From::Tool, Leaf::Thinks);
    let busy = tower.conversation(1).await;
    let mut own = busy.run_stream(AgentEvent::input("mine"));
    run_for(&mut own, 10).await;
    let mut turn = tower.conversation(0).await.run_stream(event());
    run_for(&mut turn, 100).await;
    turn.cancel().await.unwrap();
    own.cancel().await.unwrap();
    tower.assert_still("both are cancelled");
    let texts: Vec<_> = busy.messages().await.unwrap().iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["mine"]);
}

#[both_linkages]
#[covers("WORK-02")]
async fn a_turn_has_its_own_usage_and_that_of_all_that_it_waited_for() {
    for (from, own) in [(From::Tool, 2), (From::Layer, 1)] {
        let tower = Tower::new(3, from, Leaf::Works(1));
        let result = tower.conversation(0).await.run(event()).await.unwrap();
        let whole = 3 * own + 2;
        assert_eq!((result.usage(), result.whole_usage()), (Some(times(usage(), own)), Some(times(usage(), whole))));
        let reported = tower.reported.0.lock().unwrap().clone();
        assert_eq!(reported, [[Some(times(usage(), own)), Some(times(usage(), whole))]]);
    }
    let alone = Tower::new(0, From::Tool, Leaf::Works(1));
    let result = alone.conversation(0).await.run(event()).await.unwrap();
    assert_eq!((result.usage(), result.whole_usage()), (Some(times(usage(), 2)), Some(times(usage(), 2))));
    assert_eq!(*alone.reported.0.lock().unwrap(), [[Some(times(usage(), 2)), None]]);
}

/// What is asked for later begins a tree of its own.
#[both_linkages(start_paused = true)]
#[covers("WORK-01", "WORK-02")]
async fn a_request_for_later_runs_on() {
    let tower = Tower::new(0, From::Tool, Leaf::Works(50));
    let model = Calling { tool: None, hangs: true, takes: Duration::ZERO, models: Arc::clone(&tower.models) };
    let boss = Agent::builder("boss").model(model).router(tower._router.clone());
    let boss = boss.with::<Asking>(json!({ "log": tower.log, "target": "a0", "from": "later" })).build().unwrap();
    let mut turns = tower.agents[0].subscribe_turns();
    let mut turn = boss.instance("test").await.unwrap().run_stream("go");
    run_for(&mut turn, 20).await;
    turn.cancel().await.unwrap();
    assert_eq!(ended(&mut turns).await, [None]);
    assert_eq!(tower.assert_still("the other turn has ended"), ["work begins", "work ends"]);
}

/// Returns the agents that an update comes through, and what is in it.
fn unwrapped(mut update: TurnUpdate) -> (Vec<String>, TurnUpdate) {
    let mut agents = Vec::new();
    while let TurnUpdate::Child { call, agent, update: inner, .. } = update {
        agents.push(format!("{agent} for {}", call.map_or("a layer".to_owned(), |call| call.to_string())));
        update = *inner;
    }
    (agents, update)
}

#[both_linkages]
#[covers("D-40")]
async fn the_stream_of_a_turn_has_what_others_do_for_it_if_that_is_wanted() {
    for (from, call) in [(From::Tool, "call"), (From::Layer, "a layer")] {
        let texts = async |is_wanted: bool| {
            let tower = Tower::new(2, from, Leaf::Works(1));
            let mut turn = tower.conversation(0).await.run_stream(event());
            if is_wanted {
                turn = turn.with_children();
            }
            let mut ends = Vec::new();
            while let Some(update) = turn.next().await {
                if let (agents, TurnUpdate::Event(event)) = unwrapped(update)
                    && let RuntimeEvent::TurnCompleted { scope, .. } = &*event
                {
                    ends.push((agents, scope.agent_name.to_string()));
                }
            }
            assert_eq!(turn.finish().await.unwrap().text(), "done");
            ends
        };
        let of = |number: u32| format!("a{number} for {call}");
        let (root, a1, a2) = ((vec![], "a0".into()), (vec![of(1)], "a1".into()), (vec![of(1), of(2)], "a2".into()));
        assert_eq!(texts(true).await, [a2, a1, root.clone()]);
        assert_eq!(texts(false).await, [root]);
    }
}
