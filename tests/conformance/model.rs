//! F-TURN and API-11: malformed answers, the choice of a model, streams and deadlines.

use std::sync::{Arc, Mutex};

use conformance_extensions::model::{Choosing, ModelSteering, Sleeping, Stuck};
use goondan::agent::TurnUpdate;
use goondan::event::TokenUsage;
use goondan::middleware::{FinishReason, ToolRequest};
use goondan::model::{DeltaSink, Model, ModelDelta, ModelInfo, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::prelude::*;
use goondan::{Agent, BoxFuture, ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent, one_turn};

fn raw(response: Value) -> ScriptItem {
    ScriptItem::raw(serde_json::from_value(response).unwrap())
}

#[tokio::test]
async fn a_malformed_answer_is_corrected_twice_and_then_given_up() {
    let announced = || raw(json!({ "finishReason": "tool-calls" }));
    let unreadable = || raw(json!({ "toolCalls": [{ "id": "1", "name": "a__b", "args": "{" }] }));
    let empty = || raw(json!({}));
    for malformed in [announced, unreadable, empty] {
        let script = [malformed(), malformed(), ScriptItem::say("now").when("could not be used").unwrap()];
        let agent = agent(script).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        let turn = instance.run("hello").await.unwrap();
        assert_eq!((turn.text().as_ref(), turn.steps(), turn.tool_calls().len()), ("now", 3, 0));
        assert_eq!(instance.messages().await.unwrap().len(), 4, "the input, two corrections, the answer");
    }
    let error = one_turn(agent([empty().repeat()])).await.unwrap_err();
    assert_eq!((error.code(), error.turn().unwrap().steps), (&ErrorCode::MODEL_UNUSABLE, 3));
}

#[tokio::test]
async fn an_empty_answer_after_tool_results_ends_the_turn() {
    let script = [ScriptItem::call("no__tool", json!({})), raw(json!({}))];
    let turn = one_turn(agent(script)).await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps(), turn.finish_reason()), ("", 2, FinishReason::TextResponse));
}

/// A model that records its options.
#[derive(Clone, Default)]
struct Optioned(Arc<Mutex<Option<Value>>>);

impl Model for Optioned {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        *self.0.lock().unwrap() = request.options().map(|options| serde_json::to_value(options).unwrap());
        Box::pin(async { Ok(ModelResponse::text("from the other")) })
    }
}

#[both_linkages]
#[covers("API-11", "CTX-10")]
async fn a_step_middleware_chooses_model_and_options() {
    let other = Optioned::default();
    let choosing = |model: &str| {
        agent([ScriptItem::say("from the first")])
            .named_model("other", other.clone())
            .hint("deployment", "test")
            .with::<Choosing>(json!({ "model": model }))
    };
    assert_eq!(one_turn(choosing("other")).await.unwrap().text(), "from the other");
    assert_eq!(other.0.lock().unwrap().take(), Some(json!({ "temperature": 0.0 })));
    let error = one_turn(choosing("none")).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::MODEL_NOT_FOUND);
    assert!(error.suggestion().unwrap().contains("other"));
    // CTX-10: without the hint the extension leaves the step alone.
    let unhinted = agent([ScriptItem::say("from the first")]).with::<Choosing>(json!({ "model": "other" }));
    assert_eq!(one_turn(unhinted).await.unwrap().text(), "from the first");
}

/// A model of which something is known. It records its options, and says first that it used 1,000 tokens.
#[derive(Clone, Default)]
struct Known(Optioned);

impl Model for Known {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            self.0.generate(request, deltas).await?;
            let call = ToolRequest::new("1".into(), "no__tool", json!({}));
            Ok(ModelResponse::tool_calls([call]).with_usage(TokenUsage::new(1_000, 10)))
        })
    }

    fn info(&self) -> ModelInfo {
        let mut info = ModelInfo::new("known", "k-1");
        info.context_window = Some(8_000);
        info
    }
}

#[both_linkages]
async fn layers_of_a_step_share_the_choice_of_the_model_its_options_and_what_is_known() {
    let (log, known) = (Log::new(), Known::default());
    let steering = agent([ScriptItem::say("done")]).named_model("other", known.clone()).system("12345678");
    let turn = one_turn(steering.with::<ModelSteering>(log.config())).await.unwrap();
    assert_eq!(turn.text(), "done", "the choice is for one step");
    let sent = json!({ "temperature": 0.25, "stop": ["END"], "provider": { "topK": 4 } });
    assert_eq!(known.0.0.lock().unwrap().take(), Some(sent));
    let (info, nothing) = (r#"{"provider":"known","model":"k-1","contextWindow":8000}"#, "{}");
    let chosen = r#"Some("other") {"temperature":0.5,"stop":["END"]}"#;
    // 2 of the system text, 2 of `hello`; then what the provider counted, the call and its result, by their bytes.
    let lines = log.take();
    let (estimated, lines): (Vec<&String>, Vec<&String>) = lines.iter().partition(|line| line.parse::<u64>().is_ok());
    assert_eq!(lines, ["None {}", nothing, chosen, info, "None {}", nothing, "None {}", nothing]);
    let estimated: Vec<u64> = estimated.iter().map(|line| line.parse().unwrap()).collect();
    assert_eq!(estimated[0], 4);
    assert!((1_010..1_200).contains(&estimated[1]), "{estimated:?}");
}

/// A model that streams its text in pieces.
struct Piecewise;

impl Model for Piecewise {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, deltas: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            ["in ", "three ", "pieces"].into_iter().for_each(|text| deltas.send(ModelDelta::Text { part: 0, text }));
            Ok(ModelResponse::text("in three pieces"))
        })
    }
}

#[tokio::test]
async fn a_streamed_turn_yields_text_and_events_as_they_come() {
    let agent = Agent::builder("assistant").model(Piecewise).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut turn = instance.run_stream("hello");
    let mut updates = Vec::new();
    while let Some(update) = turn.next().await {
        updates.push(match update {
            TurnUpdate::Text { text, .. } => text,
            TurnUpdate::Event(event) => event.name().to_owned(),
            TurnUpdate::Message(event) => event.appended().unwrap().role().as_str().to_owned(),
            _ => "something new".to_owned(),
        });
    }
    let expected = ["turn.started", "user", "step.started", "in ", "three ", "pieces", "assistant"];
    let expected: Vec<_> = expected.into_iter().chain(["step.completed", "turn.completed"]).collect();
    assert_eq!(updates, expected);
    assert_eq!(turn.finish().await.unwrap().text(), "in three pieces");
}

#[both_linkages(start_paused = true)]
#[covers("TIME-01")]
async fn what_hangs_has_a_deadline() {
    struct Hanging;
    impl Model for Hanging {
        fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
            Box::pin(std::future::pending())
        }
    }
    let error = one_turn(Agent::builder("assistant").model(Hanging)).await.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (&ErrorCode::MODEL_TIMEOUT, true));

    let script =
        [ScriptItem::call("sleeping__sleep", json!({})), ScriptItem::say("noted").when("E_TOOL_TIMEOUT").unwrap()];
    let turn = one_turn(agent(script).with::<Sleeping>(json!({}))).await.unwrap();
    assert_eq!(turn.text(), "noted", "the turn goes on");

    let error = one_turn(agent([]).with::<Stuck>(json!({}))).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::TURN_TIMEOUT);
}

#[tokio::test]
async fn an_unbuilt_agent_says_what_is_missing() {
    let error = Agent::builder("assistant").build().unwrap_err();
    assert!(error.message().contains("has no model"), "{error}");
    let named = Agent::builder("Not Legal").model(ScriptedModel::new([])).build().unwrap_err();
    assert_eq!(named.code(), &ErrorCode::CONFIG_NAME);
}
