//! OBSERVE-01: one port for whatever watches the conversations of an agent.

mod folding;

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use goondan::agent::{Observer, Told, TurnUpdate, Wants};
use goondan::event::{AgentEvent, EventScope, RuntimeEvent};
use goondan::middleware::ModelInfo;
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse, ScriptItem};
use goondan::store::TurnOutcome;
use goondan::testing::Chat;
use goondan::{Agent, BoxFuture, Error, ErrorCode, Instance, Result, json};
use goondan_covers::covers;

pub(crate) use folding::Folding;

use crate::support::agent;

/// Writes down what it is told.
#[derive(Clone)]
struct Noting {
    wants: Wants,
    told: Arc<Mutex<Vec<String>>>,
}

impl Noting {
    fn new(wants: Wants) -> Self {
        Self { wants, told: Arc::default() }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.told.lock().unwrap())
    }
}

impl Observer for Noting {
    fn wants(&self) -> Wants {
        self.wants
    }

    fn told(&self, scope: &EventScope, what: &Told<'_>) {
        let key = &scope.instance_key;
        self.told.lock().unwrap().push(match what {
            Told::Event(event) => {
                assert_eq!(event.scope(), scope);
                format!("{key}: {}", event.name())
            }
            Told::Message(event) => {
                format!("{key}: message {}", event.appended().map(|message| message.text()).unwrap_or_default())
            }
            Told::Piece { step, piece } => format!("{key}: {step} {piece:?}"),
            Told::Ended(TurnOutcome::Answered { .. }) => format!("{key}: answered"),
            other => format!("{key}: {other:?}"),
        });
    }
}

fn says(text: &str) -> ScriptItem {
    ScriptItem::say(text).pieces(NonZeroU32::new(2).unwrap())
}

#[tokio::test]
#[covers("OBSERVE-01")]
async fn an_observer_is_told_of_all_conversations_what_it_wants_in_order() {
    let all = Noting::new(Wants::EVENTS | Wants::MESSAGES | Wants::PIECES);
    let messages = Noting::new(Wants::MESSAGES);
    let agent = agent([says("hi"), says("yes")]).observer(all.clone()).observer(messages.clone()).build().unwrap();
    for key in ["one", "two"] {
        agent.instance(key).await.unwrap().run("hello").await.unwrap();
        let answer = if key == "one" { ["h", "i"] } else { ["y", "es"] };
        let expected = [
            "turn.started".to_owned(),
            "message hello".to_owned(),
            "step.started".to_owned(),
            format!("0 Text {{ part: 0, text: {:?} }}", answer[0]),
            format!("0 Text {{ part: 0, text: {:?} }}", answer[1]),
            format!("message {}", answer.concat()),
            "step.completed".to_owned(),
            "turn.completed".to_owned(),
            "answered".to_owned(),
        ];
        let expected = expected.map(|line| format!("{key}: {line}"));
        assert_eq!(all.take(), expected);
        let expected = expected.into_iter().filter(|line| line.contains("message") || line.contains("answered"));
        assert_eq!(messages.take(), expected.collect::<Vec<_>>());
    }
}

/// Is told of messages, and does not bear it.
struct Panicking;

impl Observer for Panicking {
    fn wants(&self) -> Wants {
        Wants::MESSAGES
    }

    fn told(&self, _: &EventScope, _: &Told<'_>) {
        panic!("it is too much");
    }

    fn name(&self) -> &str {
        "panicking"
    }
}

/// Does not even bear to be asked.
struct Unasked;

impl Observer for Unasked {
    fn wants(&self) -> Wants {
        panic!("it is too much");
    }

    fn told(&self, _: &EventScope, _: &Told<'_>) {}

    fn name(&self) -> &str {
        "unasked"
    }
}

/// Takes its time.
struct Blocking;

impl Observer for Blocking {
    fn wants(&self) -> Wants {
        Wants::MESSAGES
    }

    fn told(&self, _: &EventScope, what: &Told<'_>) {
        if let Told::Ended(_) = what {
            thread::sleep(Duration::from_secs(1));
        }
    }

    fn name(&self) -> &str {
        "blocking"
    }
}

async fn watched(observer: impl Observer) -> Chat {
    let agent = |agent: goondan::agent::AgentBuilder| agent.observer(observer);
    Chat::builder().script([ScriptItem::say("hi"), ScriptItem::say("yes")]).agent(agent).start().await.unwrap()
}

#[tokio::test]
#[covers("OBSERVE-01")]
async fn an_observer_that_panics_changes_nothing_and_is_named_once() {
    let after = Noting::new(Wants::MESSAGES);
    let panicking: [Arc<dyn Observer>; 2] = [Arc::new(Panicking), Arc::new(Unasked)];
    for panicking in panicking {
        let chat = watched(Arc::clone(&panicking)).await;
        assert_eq!(chat.say("hello").await.unwrap().text(), "hi");
        assert_eq!(chat.say("really?").await.unwrap().text(), "yes");
        assert_eq!(chat.messages().await.len(), 4);
        let named: Vec<_> = chat.logs().into_iter().filter(|line| line.fields.contains_key("observer")).collect();
        assert_eq!(named.len(), 1, "{named:?}");
        assert_eq!(named[0].fields["observer"], panicking.name());
        assert!(named[0].text.contains("it is too much"), "{named:?}");
    }
    let agent = agent([ScriptItem::say("hi")]).observer(Panicking).observer(after.clone()).build().unwrap();
    agent.instance("one").await.unwrap().run("hello").await.unwrap();
    assert_eq!(after.take(), ["one: message hello", "one: message hi", "one: answered"]);
}

#[tokio::test]
#[covers("OBSERVE-01")]
async fn an_observer_that_takes_long_delays_the_turn_and_is_named_once() {
    let (chat, begun) = (watched(Blocking).await, Instant::now());
    assert_eq!(chat.say("hello").await.unwrap().text(), "hi");
    assert_eq!(chat.say("really?").await.unwrap().text(), "yes");
    assert!(begun.elapsed() >= Duration::from_secs(2), "each turn is told before its result is returned");
    let named: Vec<_> = chat.logs().into_iter().filter(|line| line.fields.contains_key("observer")).collect();
    assert_eq!(named.len(), 1, "{named:?}");
    assert_eq!(named[0].fields["observer"], "blocking");
    // It has taken what it slept, at least.
    assert!(named[0].fields["took"].to_string().contains("1."), "{named:?}");
}

/// Adds another one when it is told of the first message.
struct Adding {
    agent: Arc<Mutex<Option<Agent>>>,
    added: Noting,
}

impl Observer for Adding {
    fn wants(&self) -> Wants {
        Wants::MESSAGES
    }

    fn told(&self, _: &EventScope, _: &Told<'_>) {
        if let Some(agent) = self.agent.lock().unwrap().take() {
            agent.observe(self.added.clone());
        }
    }
}

#[tokio::test]
#[covers("OBSERVE-01")]
async fn an_observer_that_is_added_while_a_turn_runs_is_told_from_the_next_one() {
    let (slot, added) = (Arc::<Mutex<Option<Agent>>>::default(), Noting::new(Wants::EVENTS));
    let adding = Adding { agent: Arc::clone(&slot), added: added.clone() };
    let agent = agent([ScriptItem::say("hi"), ScriptItem::say("yes")]).observer(adding).build().unwrap();
    *slot.lock().unwrap() = Some(agent.clone());
    let instance: Instance = agent.instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    assert_eq!(added.take(), [""; 0]);
    instance.run("really?").await.unwrap();
    assert_eq!(added.take().len(), 5);
}

#[tokio::test]
async fn an_observer_that_wants_nothing_is_told_nothing() {
    let nothing = Noting::new(Wants::NOTHING);
    let agent = agent([ScriptItem::say("hi")]).observer(nothing.clone()).build().unwrap();
    agent.instance("one").await.unwrap().run("hello").await.unwrap();
    assert_eq!(nothing.take(), [""; 0]);
}

#[tokio::test]
#[covers("OBSERVE-01")]
async fn the_stream_of_a_turn_has_its_messages() {
    let folding = Folding::default();
    let agent = agent([says("hi")]).observer(folding.clone()).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let mut turn = instance.run_stream(AgentEvent::input("hello"));
    let mut told = Vec::new();
    while let Some(update) = turn.next().await {
        match update {
            TurnUpdate::Message(event) => told.push(event.appended().unwrap().text().into_owned()),
            TurnUpdate::Text { text, .. } => told.push(text),
            _ => {}
        }
    }
    assert_eq!(told, ["hello", "h", "i", "hi"]);
    folding.check(&instance.messages().await.unwrap(), false);
    assert_eq!(folding.answers(), 1);
}

/// Counts how often it is asked what it wants.
#[derive(Clone, Default)]
struct Asked(Arc<AtomicUsize>);

impl Observer for Asked {
    fn wants(&self) -> Wants {
        self.0.fetch_add(1, Ordering::Relaxed);
        Wants::EVENTS | Wants::MESSAGES | Wants::PIECES
    }

    fn told(&self, _: &EventScope, _: &Told<'_>) {}
}

#[tokio::test]
async fn an_observer_is_asked_once_a_turn_what_it_wants() {
    let asked = Asked::default();
    let script = [ScriptItem::call("no__tool", json!({})), says("hi"), says("yes")];
    let agent = agent(script).observer(asked.clone()).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    for turns in 1..=2 {
        instance.run("hello").await.unwrap();
        assert_eq!(asked.0.load(Ordering::Relaxed), turns);
    }
}

/// Is known by a provider, sends its answer in pieces, and then fails.
struct Known;

impl Model for Known {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        let is_first = request.messages().count() == 1;
        Box::pin(async move {
            deltas.send(ModelDelta::Text { part: 0, text: "hi" });
            if is_first {
                return Ok(ModelResponse::text("hi"));
            }
            Err(Error::new(ErrorCode::MODEL_OVERLOADED, "too much to do"))
        })
    }

    fn info(&self) -> ModelInfo {
        ModelInfo::new("somewhere", "some-model")
    }
}

#[tokio::test]
#[covers("EVENT-04", "OBSERVE-01")]
async fn events_have_the_codes_of_errors_the_provider_and_the_time_to_the_first_piece() {
    let agent = Agent::builder("assistant").model(Known).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let mut turn = instance.run_stream("hello");
    let mut of_model = None;
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Event(event) = update
            && let RuntimeEvent::StepCompleted { provider, time_to_first_piece, duration, .. } = &*event
        {
            assert!(time_to_first_piece.unwrap() <= *duration + Duration::from_micros(1));
            of_model.clone_from(provider);
        }
    }
    assert_eq!(of_model.as_deref(), Some("somewhere"));
    let mut turn = instance.run_stream("and now?");
    let mut codes = Vec::new();
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Event(event) = update
            && let RuntimeEvent::StepFailed { error_code, .. } | RuntimeEvent::TurnFailed { error_code, .. } = &*event
        {
            codes.push(error_code.clone().unwrap());
        }
    }
    assert_eq!(codes, [ErrorCode::MODEL_OVERLOADED, ErrorCode::MODEL_OVERLOADED]);
}
