//! VALUE-01: the answer of a turn is a value that fits a schema, or a named error.

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use conformance_extensions::reviewed::Reviewing;
use conformance_extensions::transformed::Transforming;
use conformance_extensions::values::Valuing;
use goondan::agent::{AgentBuilder, LocalRouter, TurnUpdate};
use goondan::conversation::Message;
use goondan::event::{AgentEvent, AnswerFormat};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel, ValueBy};
use goondan::store::MemoryStore;
use goondan::{Agent, BoxFuture, Error, ErrorCode, Instance, Map, Result, Value, json};
use goondan_breaking::{Break, Breaking, GoesOn, Plan};
use goondan_covers::{both_linkages, covers};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::linkage::Extended;
use crate::support::Log;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Weather {
    city: String,
    degrees: f64,
    #[serde(default)]
    wind: Option<Wind>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Wind {
    from: String,
}

const GOOD: &str = r#"{"city":"Lisbon","degrees":21.0}"#;

fn lisbon() -> Weather {
    Weather { city: "Lisbon".to_owned(), degrees: 21.0, wind: None }
}

/// A conversation whose model plays `script`, and its requests.
struct Asked {
    instance: Instance,
    directory: TempDir,
}

impl Asked {
    async fn new(script: Vec<ScriptItem>, extend: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Self {
        let directory = TempDir::new().unwrap();
        let model = ScriptedModel::new(script).record(directory.path().join("requests"));
        let agent = extend(Agent::builder("assistant").model(model)).build().unwrap();
        Self { instance: agent.instance("test").await.unwrap(), directory }
    }

    async fn weather(&self) -> Result<Weather> {
        self.instance.run_as("How is the weather?").await
    }

    /// Returns the texts of the requests, without the instruction.
    fn requests(&self) -> Vec<Vec<String>> {
        let text = |message: &Value| {
            let content = &message["content"];
            content.as_str().map_or_else(|| content.to_string(), str::to_owned)
        };
        let is_own = |text: &String| !text.starts_with("When you have all that you need");
        let texts = |line: &str| {
            let request: Value = serde_json::from_str(line).unwrap();
            request["messages"].as_array().unwrap().iter().map(text).filter(is_own).collect()
        };
        let requests = std::fs::read_to_string(self.directory.path().join("requests")).unwrap();
        requests.lines().map(texts).collect()
    }

    async fn stored(&self) -> Vec<String> {
        let text = |message: &Arc<goondan::conversation::Message>| message.text().into_owned();
        self.instance.messages().await.unwrap().iter().map(text).collect()
    }
}

fn plain(agent: AgentBuilder) -> AgentBuilder {
    agent
}

#[tokio::test]
#[covers("VALUE-01")]
async fn an_answer_is_a_value() {
    for text in
        [GOOD.to_owned(), format!(" {GOOD}\n"), format!("```json\n{GOOD}\n```"), format!("Here:\n```\n{GOOD}```")]
    {
        let asked = Asked::new(vec![ScriptItem::say(text)], plain).await;
        assert_eq!(asked.weather().await.unwrap(), lisbon());
        assert_eq!(asked.stored().await, ["How is the weather?", GOOD], "what is stored is the value");
    }
}

#[tokio::test]
#[covers("VALUE-01")]
async fn the_model_is_asked_again_with_its_attempt_and_what_is_wrong() {
    let script = vec![
        ScriptItem::say("It is warm."),
        ScriptItem::say(r#"{"city":"Lisbon","degrees":"warm"}"#),
        ScriptItem::say(GOOD),
        ScriptItem::say("bye"),
    ];
    let asked = Asked::new(script, plain).await;
    let event = AgentEvent::input("How is the weather?").expecting(AnswerFormat::of::<Weather>());
    let (mut turn, mut told) = (asked.instance.run_stream(event), Vec::new());
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Text { text, .. } = update {
            told.push(text);
        }
    }
    let turn = turn.finish().await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps(), told), (GOOD, 3, vec![GOOD.to_owned()]));
    assert_eq!(asked.stored().await, ["How is the weather?", GOOD]);
    asked.instance.run("thanks").await.unwrap();
    let requests = asked.requests();
    assert_eq!(requests[1][1], "It is warm.");
    assert!(
        requests[1][2].contains("the text is no JSON value and nothing else: expected value at line 1"),
        "{requests:?}"
    );
    assert!(requests[2][4].contains("/degrees: "), "{requests:?}");
    assert_eq!(requests[3], ["How is the weather?", GOOD, "thanks"], "no later request has the attempts");
}

#[tokio::test]
#[covers("VALUE-01")]
async fn without_a_value_the_turn_fails_with_the_last_attempt() {
    for (at_most, requests) in [(0, 1), (2, 3), (4, 5)] {
        let asked = Asked::new(vec![ScriptItem::say("{}").repeat()], plain).await;
        let format = AnswerFormat::of::<Weather>().at_most(at_most);
        let event = AgentEvent::input("How is the weather?").expecting(format);
        let error = asked.instance.run(event).await.unwrap_err();
        assert_eq!(error.code().as_str(), "E_ANSWER_SCHEMA");
        assert!(error.message().contains("/: \"city\" is a required property"), "{error}");
        assert_eq!((error.details()["attempt"].as_str(), asked.requests().len()), (Some("{}"), requests));
        assert_eq!(asked.stored().await, ["How is the weather?"]);
    }
    let asked = Asked::new(vec![ScriptItem::say("unused")], plain).await;
    let event = AgentEvent::input("?").expecting(AnswerFormat::new(json!({ "type": 7 })));
    assert_eq!(asked.instance.run(event).await.unwrap_err().code().as_str(), "E_SCHEMA_INVALID");
    assert!(asked.stored().await.is_empty());
}

#[both_linkages]
#[covers("VALUE-01", "REVIEW-01")]
async fn tools_are_called_before_and_reviewers_judge_the_value() {
    let log = Log::new();
    let rules = json!([{ "when": "Porto", "then": { "askAgain": "It is about Lisbon." } }]);
    let call = ScriptItem::call("reviewing__act", json!({ "text": "look" }));
    let script = vec![call, ScriptItem::say(GOOD.replace("Lisbon", "Porto")), ScriptItem::say(GOOD)];
    let config = json!({ "log": log, "rules": rules });
    let asked = Asked::new(script, |agent| agent.with::<Reviewing>(config)).await;
    assert_eq!(asked.weather().await.unwrap(), lisbon());
    assert!(log.take().contains(&"acted: look".to_owned()));
    assert_eq!(asked.stored().await.last().unwrap(), GOOD);
    assert!(asked.requests()[2].contains(&"It is about Lisbon.".to_owned()), "{:?}", asked.requests());
}

/// A model that is held to values in one way, logs how it was asked, and may refuse that.
struct Held {
    by: ValueBy,
    refuses: bool,
    script: ScriptedModel,
    asked: Lines,
}

/// How a model was asked, one line for each request.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Model for Held {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        let schema = request.value_schema().map(|schema| schema["type"].to_string());
        let choice = request.options().and_then(|options| options.tool_choice.as_ref());
        let tools: Vec<_> = request.tools().map(|tool| tool.name.to_string()).collect();
        let texts: Vec<_> = request.messages().map(|message| message.content.text().into_owned()).collect();
        let line = format!("{schema:?} {choice:?} {tools:?} {}", texts.join(" | "));
        self.asked.0.lock().unwrap().push(line);
        if self.refuses && (schema.is_some() || choice.is_some()) {
            let error = Error::new(ErrorCode::MODEL_REQUEST, "unknown member");
            return Box::pin(async move { Err(error) });
        }
        self.script.generate(request, deltas)
    }

    fn value_by(&self, _: &ModelRequest<'_>, _: &Map<String, Value>) -> ValueBy {
        self.by
    }
}

async fn held(by: ValueBy, refuses: bool, script: Vec<ScriptItem>) -> (Instance, Lines) {
    let asked = Lines::default();
    let model = Held { by, refuses, script: ScriptedModel::new(script), asked: asked.clone() };
    (Agent::builder("assistant").model(model).build().unwrap().instance("test").await.unwrap(), asked)
}

fn give(value: Value) -> ScriptItem {
    ScriptItem::call("goondan__answer", value)
}

#[tokio::test]
#[covers("VALUE-01")]
async fn a_model_is_held_to_the_schema_if_it_can_be_or_given_a_tool() {
    let text = ScriptItem::say(GOOD);
    let call = give(serde_json::from_str(GOOD).unwrap());
    let told = "When you have all that you need, give your answer by calling the tool `goondan__answer`.";
    for (by, item, asked) in [
        (ValueBy::Schema, text.clone(), "Some(\"\\\"object\\\"\") None [] hello".to_owned()),
        (ValueBy::RequiredTool, call.clone(), "None Some(Required) [\"goondan__answer\"] hello".to_owned()),
        (ValueBy::Tool, call, format!("None None [\"goondan__answer\"] hello | {told}")),
    ] {
        let (instance, log) = held(by, false, vec![item, ScriptItem::say("bye")]).await;
        assert_eq!(instance.run_as::<Weather>("hello").await.unwrap(), lisbon());
        assert_eq!(log.take(), [asked]);
        let stored = instance.messages().await.unwrap();
        assert_eq!((stored.len(), &*stored[1].text()), (2, GOOD), "no call is stored");
        instance.run("thanks").await.unwrap();
        let next = format!("None None [] hello | {GOOD} | thanks");
        assert_eq!(log.take(), [next], "the next turn expects no value");
    }
}

#[tokio::test]
#[covers("VALUE-01")]
async fn a_provider_that_refuses_the_schema_is_asked_without_it() {
    for by in [ValueBy::Schema, ValueBy::RequiredTool] {
        let (instance, log) = held(by, true, vec![ScriptItem::say("warm"), ScriptItem::say(GOOD).repeat()]).await;
        assert_eq!(instance.run_as::<Weather>("hello").await.unwrap(), lisbon());
        let asked = log.take();
        assert_eq!(asked.len(), 3, "{asked:?}");
        assert!(asked[1].starts_with("None None"), "{asked:?}");
        assert!(asked[2].contains("JSON Schema: {"), "the words have the schema: {asked:?}");
        instance.run_as::<Weather>("again").await.unwrap();
        assert_eq!(log.take().len(), 1, "it is not tried again in this conversation");
    }
    let (instance, log) = held(ValueBy::Schema, true, vec![ScriptItem::fail("no", false)]).await;
    assert_eq!(instance.run_as::<Weather>("hello").await.unwrap_err().message(), "no");
    assert_eq!(log.take().len(), 2);
}

#[tokio::test]
#[covers("VALUE-01")]
async fn a_value_beside_other_calls_waits_for_their_results() {
    let good: Value = serde_json::from_str(GOOD).unwrap();
    let both = json!({ "text": "Let me look.", "toolCalls": [
        { "id": "1", "name": "goondan__answer", "args": good }, { "id": "2", "name": "nobody__knows", "args": {} },
    ] });
    let talking =
        json!({ "text": "Here it is:", "toolCalls": [{ "id": "3", "name": "goondan__answer", "args": good }] });
    let twice = json!({ "toolCalls": [
        { "id": "4", "name": "goondan__answer", "args": good },
        { "id": "5", "name": "goondan__answer", "args": { "city": "Porto", "degrees": 7.0 } },
    ] });
    let raw = |answer| ScriptItem::raw(serde_json::from_value(answer).unwrap());
    let asked = Asked::new(vec![raw(twice)], plain).await;
    assert_eq!(asked.weather().await.unwrap(), lisbon(), "the first one counts");
    assert_eq!(asked.stored().await.len(), 2);
    let asked = Asked::new(vec![raw(both), raw(talking)], plain).await;
    assert_eq!(asked.weather().await.unwrap(), lisbon());
    let stored = asked.stored().await;
    assert_eq!((stored.len(), &*stored[1], &*stored[3]), (4, "Let me look.", GOOD), "{stored:?}");
}

async fn value<T: DeserializeOwned + JsonSchema + Debug>(script: Vec<ScriptItem>) -> Result<T> {
    Asked::new(script, plain).await.instance.run_as("?").await
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Shape {
    Circle { radius: f64 },
    Square { side: f64 },
}

#[tokio::test]
#[covers("VALUE-01")]
async fn values_are_of_any_shape() {
    let say = |text: &str| vec![ScriptItem::say(text)];
    assert_eq!(value::<Vec<String>>(say(r#"["a","b"]"#)).await.unwrap(), ["a", "b"]);
    assert_eq!(value::<Vec<String>>(say(r#"{"value":["a"]}"#)).await.unwrap(), ["a"]);
    assert_eq!(value::<Vec<u8>>(vec![give(json!({ "value": [1] }))]).await.unwrap(), [1]);
    assert_eq!(value::<Option<bool>>(say("null")).await.unwrap(), None);
    assert_eq!(value::<u64>(say("18446744073709551615")).await.unwrap(), u64::MAX);
    assert_eq!(value::<Shape>(say(r#"{"kind":"square","side":2.0}"#)).await.unwrap(), Shape::Square { side: 2.0 });
    let deep = (0..30).fold(r#"{"name":"leaf","children":[]}"#.to_owned(), |inner, _| {
        format!(r#"{{"name":"node","children":[{inner}]}}"#)
    });
    assert_eq!(value::<Tree>(say(&deep)).await.unwrap().name, "node");
    let huge: Vec<_> = (0..5_000).map(|n| format!("word-{n}")).collect();
    let format = AnswerFormat::new(json!({ "enum": huge }));
    let asked = Asked::new(vec![ScriptItem::say("\"word-4999\"")], plain).await;
    let turn = asked.instance.run(AgentEvent::input("?").expecting(format)).await.unwrap();
    assert!(turn.is_value() && turn.value::<String>().unwrap() == "word-4999");
}

#[tokio::test]
#[covers("VALUE-01")]
async fn what_is_no_value_is_named_with_its_place() {
    let repeated = |text: &str| vec![ScriptItem::say(text).repeat()];
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (text, problem) in [
        (
            r#"{"name":"a","children":[{"name":"b","children":[{"name":7,"children":[]}]}]}"#,
            "/children/0/children/0/name: ",
        ),
        (r#"{"name":"a","children":[]} {"name":"b","children":[]}"#, "trailing characters at line 1 column 28"),
        (r#"{"name":"a","children":["#, "EOF while parsing a list"),
        (&*deep, "recursion limit exceeded"),
        ("null", "/: "),
    ] {
        let error = value::<Tree>(repeated(text)).await.unwrap_err();
        assert_eq!(error.code(), "E_ANSWER_SCHEMA");
        assert!(error.message().contains(problem), "{text}: {error}");
        assert_eq!(error.details()["attempt"], *text);
    }
    let error = value::<Shape>(repeated(r#"{"kind":"oval"}"#)).await.unwrap_err();
    assert!(error.message().contains("kind"), "{error}");
    for (finish, code, problem) in [
        ("length", "E_MODEL_LENGTH", "in the middle of the value"),
        ("refusal", "E_MODEL_REFUSED", "{\"name\":"),
        ("content-filter", "E_MODEL_REFUSED", "{\"name\":"),
    ] {
        let answer = json!({ "text": "{\"name\":", "finishReason": finish });
        let script = vec![ScriptItem::raw(serde_json::from_value(answer).unwrap())];
        let error = value::<Tree>(script).await.unwrap_err();
        assert!(error.code() == code && error.message().contains(problem), "{finish}: {error}");
    }
    let half = json!({ "toolCalls": [{ "id": "1", "name": "goondan__answer", "args": "{\"name\":" }] });
    let script =
        vec![ScriptItem::raw(serde_json::from_value(half).unwrap()), give(json!({ "name": "a", "children": [] }))];
    assert_eq!(value::<Tree>(script).await.unwrap().name, "a", "arguments that are no JSON are asked for again");
}

#[tokio::test]
#[covers("VALUE-01")]
async fn an_agent_expects_a_value_of_every_input_unless_it_has_one_of_its_own() {
    let format = AnswerFormat::new(json!({ "type": "integer" })).at_most(1);
    let script = vec![ScriptItem::say("one"), ScriptItem::say("1"), ScriptItem::say("\"two\"")];
    let asked = Asked::new(script, |agent| agent.answer(format.clone())).await;
    let turn = asked.instance.run("a number").await.unwrap();
    assert!(turn.is_value() && turn.value::<u32>().unwrap() == 1);
    assert_eq!(asked.instance.run_as::<String>("a text").await.unwrap(), "two");
    let bad = Agent::builder("assistant").model(ScriptedModel::new([])).answer(AnswerFormat::new(json!({ "type": 7 })));
    assert_eq!(bad.build().unwrap_err().code(), "E_SCHEMA_INVALID");
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "items": inner }));
    let too_deep = Agent::builder("assistant").model(ScriptedModel::new([])).answer(AnswerFormat::new(deep.clone()));
    assert_eq!(too_deep.build().unwrap_err().code(), "E_VALUE_DEPTH");
    let event = AgentEvent::input("?").expecting(AnswerFormat::new(deep));
    assert_eq!(asked.instance.run(event).await.unwrap_err().code(), "E_VALUE_DEPTH");
    let nested = (0..28).fold(json!({ "type": "integer" }), |inner, _| json!({ "type": "array", "items": inner }));
    let event = AgentEvent::input("?").expecting(AnswerFormat::new(nested));
    let value = (0..28).fold(json!(1), |inner, _| json!([inner]));
    let deep = Asked::new(vec![ScriptItem::say(value.to_string())], plain).await;
    assert_eq!(deep.instance.run(event).await.unwrap().value::<Value>().unwrap(), value);
}

#[tokio::test]
#[covers("VALUE-01", "ONCE-01")]
async fn an_event_that_was_answered_has_its_value() {
    let asked = Asked::new(vec![ScriptItem::say("[1]")], plain).await;
    let event = AgentEvent::input("?").expecting(AnswerFormat::of::<Vec<u8>>());
    asked.instance.run(event.clone()).await.unwrap();
    let again = asked.instance.run(event.clone()).await.unwrap();
    assert!(again.is_stored() && again.is_value() && again.value::<Vec<u8>>().unwrap() == [1]);
    let other = event.expecting(AnswerFormat::of::<Vec<String>>());
    assert_eq!(asked.instance.run(other).await.unwrap_err().code(), "E_EVENT_REUSED");
    let joining = AgentEvent::input("and?").expecting(AnswerFormat::of::<u8>());
    assert_eq!(asked.instance.steer(joining).await.unwrap_err().code(), "E_INPUT");
}

#[both_linkages]
#[covers("VALUE-01")]
async fn extensions_ask_models_and_agents_for_values() {
    const MOOD: &str = r#"{"angry":true,"words":["no"]}"#;
    for (place, agent) in [("turn", None), ("tool", None), ("turn", Some("b")), ("tool", Some("b"))] {
        for (at_most, expected) in [(None, "angry true: no"), (Some(0), "E_ANSWER_SCHEMA after Some(String(\"who?\"))")]
        {
            let (log, router) = (Log::new(), LocalRouter::new());
            let answers = [ScriptItem::say("who?"), ScriptItem::say(MOOD), ScriptItem::say("done")];
            let mut script = if agent.is_none() { answers[..2].to_vec() } else { Vec::new() };
            if at_most == Some(0) && agent.is_none() {
                script.pop();
            }
            if place == "tool" {
                script.insert(0, ScriptItem::call("valuing__mood", json!({})));
            }
            script.push(answers[2].clone());
            let config = json!({ "log": log, "place": place, "agent": agent, "at_most": at_most });
            let a = Agent::builder("a").model(ScriptedModel::new(script)).with::<Valuing>(config);
            let a = a.router(router.clone()).build().unwrap();
            let b = Agent::builder("b").model(ScriptedModel::new(answers)).router(router.clone()).build().unwrap();
            router.add(&a);
            router.add(&b);
            let turn = a.instance("test").await.unwrap().run("hello").await.unwrap();
            assert_eq!(turn.text(), "done");
            assert_eq!(log.take(), [expected, "\"done\" is value: false"], "{place} {agent:?}");
        }
    }
}

#[both_linkages]
#[covers("VALUE-01")]
async fn an_answer_that_comes_later_is_a_value_too() {
    let (log, router) = (Log::new(), LocalRouter::new());
    let config = json!({ "log": log, "place": "later", "agent": "b", "at_most": 1 });
    let script = [ScriptItem::call("nobody__knows", json!({})), ScriptItem::say("done")];
    let a = Agent::builder("a").model(ScriptedModel::new(script)).with::<Valuing>(config);
    let a = a.router(router.clone()).build().unwrap();
    let mood = [ScriptItem::say("who?"), ScriptItem::say(r#"{"angry":false,"words":[]}"#)];
    let b = Agent::builder("b").model(ScriptedModel::new(mood)).router(router.clone()).build().unwrap();
    router.add(&a);
    router.add(&b);
    let (instance, peer) = (a.instance("test").await.unwrap(), b.instance("test").await.unwrap());
    instance.run("hello").await.unwrap();
    while peer.messages().await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(peer.messages().await.unwrap()[1].text(), r#"{"angry":false,"words":[]}"#);
}

#[both_linkages]
#[covers("VALUE-01", "REVIEW-01")]
async fn layers_see_the_value_and_pieces_of_it_are_transformed() {
    let log = Log::new();
    let script = || vec![give(json!({ "city": "Lisbon", "degrees": 21.0 }))];
    let config = json!({ "log": log, "place": "none" });
    let asked = Asked::new(script(), |agent| agent.with::<Valuing>(config)).await;
    asked.weather().await.unwrap();
    assert_eq!(log.take(), [format!("{GOOD:?} is value: true")]);
    let config = json!({ "log": log, "word": "Lisbon", "by": "Porto" });
    let asked = Asked::new(script(), |agent| agent.with::<Transforming>(config)).await;
    assert_eq!(asked.weather().await.unwrap().city, "Porto");
    assert!(!format!("{:?}", asked.instance.messages().await.unwrap()).contains("Lisbon"));
}

/// A model that gives a value only when it is asked a third time, and calls a tool before.
struct Slow(Arc<AtomicUsize>);

impl Model for Slow {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let texts: Vec<_> = request.messages().map(|message| message.content.text().into_owned()).collect();
        let has = |text: &str| texts.iter().any(|other| other.contains(text));
        let call = json!({ "toolCalls": [{ "id": "1", "name": "reviewing__act", "args": { "text": "look" } }] });
        let answer = match () {
            () if has("two") => json!({ "text": "3" }),
            () if has("one") => json!({ "text": "two" }),
            () if has("did look") => json!({ "text": "one" }),
            () => call,
        };
        Box::pin(async move { Ok(serde_json::from_value(answer)?) })
    }
}

/// Interrupted at any write, a turn ends with its value as if it had not been, and the model is asked again as often as
/// is allowed.
#[both_linkages]
#[covers("VALUE-01", "RESUME-01")]
async fn a_turn_that_is_interrupted_goes_on_to_its_value() {
    async fn interrupted(plan: &Arc<Plan>, goes_on: GoesOn, at_most: u32) -> (Vec<String>, String, usize) {
        let (asked, log) = (Arc::new(AtomicUsize::new(0)), Log::new());
        let agent = Agent::builder("assistant").model(Slow(Arc::clone(&asked)));
        let agent = agent.with::<Reviewing>(json!({ "log": log }));
        let agent = agent.store(Breaking::new(MemoryStore::new(), Arc::clone(plan))).build().unwrap();
        let event = AgentEvent::input("hello").expecting(AnswerFormat::of::<u8>().at_most(at_most));
        let (instance, outcome) = goondan_breaking::run(&agent, "test", &event, plan, goes_on).await.unwrap();
        let line = |message: &Arc<Message>| format!("{:?} {}", message.role(), message.text());
        let messages = instance.messages().await.unwrap().iter().map(line).collect();
        instance.close().await.unwrap();
        let outcome = match outcome {
            Ok(turn) => turn.value::<u8>().unwrap().to_string(),
            Err(error) => error.code().to_string(),
        };
        (messages, outcome, asked.load(Ordering::SeqCst))
    }
    for (at_most, ends) in [(2, "3"), (1, "E_ANSWER_SCHEMA")] {
        let whole = Plan::new([]);
        let expected = interrupted(&whole, GoesOn::InTheSameProcess, at_most).await;
        assert_eq!(expected.1, ends);
        for at in 1..=whole.writes() {
            for kind in [Break::Before, Break::After, Break::Away, Break::AwayAfter, Break::Lost] {
                let of_kind = [GoesOn::InTheSameProcess, GoesOn::AfterANewOpening];
                for goes_on in of_kind.into_iter().skip(usize::from(kind == Break::Lost)) {
                    let seen = interrupted(&Plan::new([(at, kind)]), goes_on, at_most).await;
                    assert_eq!((&seen.0, &seen.1), (&expected.0, &expected.1), "{kind:?} at {at}, {goes_on:?}");
                    assert!(seen.2 <= expected.2 + 1, "{kind:?} at {at}, {goes_on:?}: one request more at most");
                }
            }
        }
    }
}
