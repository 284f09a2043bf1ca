//! D-33: extensions ask a model by requests, without an agent and a router.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use conformance_extensions::model_requests::{AskingWrongly, ModelAsking};
use goondan::agent::{LocalRouter, TurnUpdate};
use goondan::event::{RuntimeEvent, TokenUsage};
use goondan::model::{
    DeltaSink, Model, ModelDelta, ModelFinish, ModelRequest, ModelResponse, ScriptItem, ScriptedModel,
};
use goondan::prelude::*;
use goondan::{Agent, BoxFuture, Value, json};
use goondan_covers::{both_linkages, covers};
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::{Log, agent, one_turn};

/// A model that answers with a title for ten tokens, and keeps its requests.
#[derive(Clone, Default)]
struct Titles(Arc<Mutex<Vec<Value>>>);

impl Model for Titles {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        deltas.send(ModelDelta::Text { part: 0, text: "a title" });
        self.0.lock().unwrap().push(json!({
            "system": request.system(),
            "messages": request.messages().map(|message| message.content.text().into_owned()).collect::<Vec<_>>(),
            "tools": request.tools().count(),
            "options": request.options(),
        }));
        Box::pin(async { Ok(ModelResponse::text("a title").with_usage(TokenUsage::new(9, 1))) })
    }
}

/// An answer of the agent's own model for a hundred tokens.
fn say(text: &str) -> ScriptItem {
    ScriptItem::raw(ModelResponse::text(text).with_usage(TokenUsage::new(90, 10)))
}

fn asking(log: &Log, place: &str) -> Value {
    json!({ "log": log, "place": place, "model": "small" })
}

#[both_linkages]
#[covers("CUT-01", "D-33")]
async fn an_answer_to_a_request_says_that_it_was_cut_off() {
    let log = Log::new();
    let cut = ModelResponse::text("a tit").with_finish_reason(ModelFinish::Length);
    let small = ScriptedModel::new([ScriptItem::raw(cut)]);
    let agent = agent([say("done")]).named_model("small", small);
    one_turn(agent.with::<ModelAsking>(asking(&log, "turn"))).await.unwrap();
    assert_eq!(log.take(), ["the model `small` said \"a tit\" for None, cut off"]);
}

#[both_linkages]
#[covers("D-33", "AGENTS-01")]
async fn a_model_is_asked_from_turns_steps_and_tools_and_leaves_no_trace_but_its_usage() {
    for place in ["turn", "after", "step", "tool"] {
        let (log, small) = (Log::new(), Titles::default());
        let call = (place == "tool").then(|| ScriptItem::call("model-asking__ask_model", json!({})));
        let steps = if place == "tool" { 2 } else { 1 };
        let agent = agent(call.into_iter().chain([say("done")]))
            .named_model("small", small.clone())
            .system("Be helpful.")
            .max_steps_per_turn(NonZeroU32::new(steps).unwrap())
            .with::<ModelAsking>(asking(&log, place))
            .build()
            .unwrap();
        let instance = agent.instance("test").await.unwrap();
        let (mut asked, mut told, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        let mut turn = instance.run_stream("hello");
        while let Some(update) = turn.next().await {
            match update {
                TurnUpdate::Event(event) => match &*event {
                    RuntimeEvent::ModelAsked { .. } => asked.push(RuntimeEvent::clone(&event)),
                    RuntimeEvent::TurnStarted { scope }
                    | RuntimeEvent::StepStarted { scope, .. }
                    | RuntimeEvent::ToolCalled { scope, .. } => spans.push(scope.span),
                    _ => {}
                },
                TurnUpdate::Text { text, .. } => told.push(text),
                _ => {}
            }
        }
        let result = turn.finish().await.unwrap();
        assert_eq!(log.take(), ["the model `small` said \"a title\" for Some(10)"], "{place}");
        assert_eq!((result.steps(), result.usage().unwrap().total_tokens), (steps, 110), "{place}");
        assert_eq!(told, ["done"], "{place}");
        let options = json!({ "temperature": 0.0 });
        let expected = json!({
            "system": "Answer with a title.", "messages": ["summarize this"], "tools": 0, "options": options,
        });
        assert_eq!(*small.0.lock().unwrap(), [expected]);
        let messages = instance.messages().await.unwrap();
        assert!(messages.iter().all(|message| !message.text().contains("title")), "{messages:?}");

        let [RuntimeEvent::ModelAsked { scope, extension_name, model_name, token_usage, error_message, .. }] =
            &asked[..]
        else {
            panic!("{asked:?}")
        };
        assert_eq!(extension_name.as_ref().unwrap().as_str(), "model-asking");
        assert_eq!(model_name.as_ref().unwrap().as_str(), "small");
        assert_eq!((token_usage.unwrap().total_tokens, error_message), (10, &None));
        let parent = match place {
            "turn" | "after" => spans[0],
            "tool" => spans[2],
            // A step is told when its model is called, which is after its layers have asked.
            _ => spans[1],
        };
        assert_eq!(scope.span.parent, Some(parent.id), "{place}");
    }
}

#[both_linkages]
#[covers("D-33")]
async fn without_a_name_it_is_the_agents_own_model() {
    let log = Log::new();
    let config = json!({ "log": log, "place": "turn" });
    let script = [say("a summary").when("summarize").unwrap(), say("done").when("hello").unwrap()];
    let turn = one_turn(agent(script).with::<ModelAsking>(config)).await.unwrap();
    assert_eq!(log.take(), ["the agent's model said \"a summary\" for Some(100)"]);
    assert_eq!(turn.usage().unwrap().total_tokens, 200);
}

/// A model that never answers, notifies when it was asked, and counts the calls that were cancelled.
#[derive(Clone, Default)]
struct Endless(Arc<(Notify, AtomicUsize)>);

impl Endless {
    fn cancelled(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

struct Cancelled(Endless);

impl Drop for Cancelled {
    fn drop(&mut self) {
        self.0.0.1.fetch_add(1, Ordering::SeqCst);
    }
}

impl Model for Endless {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let cancelled = Cancelled(self.clone());
        Box::pin(async move {
            let _cancelled = cancelled;
            self.0.0.notify_one();
            std::future::pending().await
        })
    }
}

#[both_linkages(start_paused = true)]
#[covers("D-33", "TIME-01")]
async fn a_silent_model_is_given_up_after_a_minute() {
    let (log, small) = (Log::new(), Endless::default());
    let agent = agent([say("done")]).named_model("small", small.clone()).with::<ModelAsking>(asking(&log, "step"));
    let start = tokio::time::Instant::now();
    one_turn(agent).await.unwrap();
    let waited = start.elapsed();
    assert!(waited >= Duration::from_secs(60) && waited < Duration::from_secs(61), "{waited:?}");
    let expected = "E_MODEL_TIMEOUT the model did not answer the request of an extension within 60s";
    assert_eq!((&log.take()[..], small.cancelled()), (&[expected.to_owned()][..], 1));
}

#[both_linkages]
#[covers("D-33")]
async fn a_dropped_request_and_a_dropped_turn_cancel_the_model_call() {
    let (log, small) = (Log::new(), Endless::default());
    let mut config = asking(&log, "turn");
    config["give_up"] = true.into();
    let agent_that_gives_up = agent([say("done")]).named_model("small", small.clone()).with::<ModelAsking>(config);
    one_turn(agent_that_gives_up).await.unwrap();
    assert_eq!((&log.take()[..], small.cancelled()), (&["gave up true".to_owned()][..], 1));

    for (cancelled, place) in [(2, "turn"), (3, "step"), (4, "tool")] {
        let call = ScriptItem::call("model-asking__ask_model", json!({}));
        let waiting = agent([call, say("done")]).named_model("small", small.clone());
        let waiting = waiting.with::<ModelAsking>(asking(&log, place)).build().unwrap();
        let instance = waiting.instance("test").await.unwrap();
        // The permit of an earlier request is taken.
        let _ = tokio::time::timeout(Duration::ZERO, small.0.0.notified()).await;
        tokio::select! {
            outcome = instance.run("hello") => panic!("the turn ended: {outcome:?}"),
            () = small.0.0.notified() => {}
        }
        assert_eq!(small.cancelled(), cancelled, "{place}");
    }
}

#[both_linkages]
#[covers("D-33", "AGENTS-02")]
async fn no_name_reaches_a_model_and_only_a_request_asks_one() {
    let (log, small, router) = (Log::new(), Titles::default(), LocalRouter::new());
    let agent = agent([say("done")]).named_model("small", small.clone()).with::<AskingWrongly>(log.config());
    let agent = agent.router(router.clone()).build().unwrap();
    router.add(&agent);
    let turn = agent.instance("test").await.unwrap().run("hello").await.unwrap();
    let only = "E_INPUT a model is asked only by a request that waits for its answer";
    let of_agents = "E_INPUT a request to a model has files, an instance or metadata, which only agents read";
    let of_models = "E_INPUT a request to an agent has `system` or `options`, which only models read";
    let empty = "E_INPUT the input is empty";
    let expected = [
        "AGENT_NOT_FOUND there is no agent `Model/small`",
        "AGENT_NOT_FOUND there is no agent `small`",
        only,
        only,
        empty,
        empty,
        of_agents,
        of_agents,
        of_models,
        of_models,
        "E_MODEL_NOT_FOUND the agent has no model `missing`",
    ];
    assert_eq!(log.take(), expected);
    assert_eq!((small.0.lock().unwrap().len(), turn.usage().unwrap().total_tokens), (0, 100));
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[both_linkages]
#[covers("D-33", "DEPTH-01")]
async fn an_answer_without_use_is_an_error_whose_tokens_count() {
    let answers = [
        (json!({ "finishReason": "refusal" }), "E_MODEL_REFUSED"),
        (json!({ "text": "half", "finishReason": "context-full" }), "E_MODEL_CONTEXT_OVERFLOW"),
        (json!({}), "E_MODEL_ANSWER the answer to the request of an extension: the answer is empty"),
        (
            json!({ "toolCalls": [{ "id": "1", "name": "a__b", "args": {} }] }),
            "E_MODEL_ANSWER the answer to the request of an extension: it has no text",
        ),
        (json!({ "text": "hm", "content": [{ "type": "hologram", "of": nested(200) }] }), "E_MODEL_ANSWER"),
    ];
    for (answer, expected) in answers {
        let log = Log::new();
        let answer: ModelResponse = serde_json::from_value(answer).unwrap();
        let small = ScriptedModel::new([ScriptItem::raw(answer.with_usage(TokenUsage::new(9, 1)))]);
        let agent = Agent::builder("assistant").model(ScriptedModel::new([say("done")])).named_model("small", small);
        let turn = one_turn(agent.with::<ModelAsking>(asking(&log, "turn"))).await.unwrap();
        let lines = log.take();
        assert!(lines[0].starts_with(expected), "{expected}: {lines:?}");
        assert_eq!(turn.usage().unwrap().total_tokens, 110);
    }
}
