//! PIPE and F-TURN: the steps of a turn, its limits, and the queue of an instance.

use std::num::NonZeroU32;
use std::sync::Arc;

use conformance_extensions::turn::{Retrying, Steering, Surrounding, Tracing};
use goondan::conversation::{Part, TextPart};
use goondan::middleware::{FinishReason, ToolCallStatus, ToolRequest};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::prelude::*;
use goondan::{BoxFuture, ErrorCode, json};
use goondan_covers::{both_linkages, covers};
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::{Log, agent, one_turn};

#[both_linkages]
#[covers("PIPE-02", "PIPE-08", "PIPE-10", "PIPE-11", "PIPE-12", "API-05", "API-07")]
async fn steps_run_while_there_are_tool_calls() {
    let log = Log::new();
    let call = |name: &str| (name.to_owned(), json!({}));
    let script = [
        ScriptItem::calls([call("a__one"), call("a__two")]),
        ScriptItem::calls([call("a__three")]),
        ScriptItem::say("done"),
    ];
    let turn = one_turn(agent(script).with::<Tracing>(log.config())).await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.finish_reason(), turn.steps()), ("done", FinishReason::TextResponse, 3));
    let calls: Vec<_> = turn.tool_calls().iter().map(|call| (call.name.as_str(), call.status)).collect();
    let refused = ToolCallStatus::Error;
    assert_eq!(calls, [("a__one", refused), ("a__two", refused), ("a__three", refused)]);
    assert_eq!(
        log.take(),
        [
            "call a__one in step 0",
            "call a__two in step 0",
            "step 0: Completed, tool calls: true, 2 of 2 answered",
            "call a__three in step 1",
            "step 1: Completed, tool calls: true, 1 of 1 answered",
            "step 2: Completed, tool calls: false, 0 of 0 answered",
            "turn",
        ]
    );
}

/// A model that notes when it is asked.
struct Noting {
    log: Log,
    script: ScriptedModel,
}

impl Model for Noting {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        self.log.write("the model is asked");
        self.script.generate(request, deltas)
    }
}

#[both_linkages]
#[covers("PIPE-07")]
async fn a_step_middleware_is_around_the_model_call_and_its_tool_calls() {
    let log = Log::new();
    let script = ScriptedModel::new([ScriptItem::call("surrounding__act", json!({})), ScriptItem::say("done")]);
    let agent = goondan::Agent::builder("assistant").model(Noting { log: log.clone(), script });
    assert_eq!(one_turn(agent.with::<Surrounding>(log.config())).await.unwrap().text(), "done");
    assert_eq!(
        log.take(),
        [
            "before step 0",
            "the model is asked",
            "the tool acts",
            "after step 0",
            "before step 1",
            "the model is asked",
            "after step 1",
        ]
    );
}

#[tokio::test]
async fn the_limit_of_steps_ends_the_turn_with_a_notice_or_the_last_text() {
    let limit = NonZeroU32::new(2).unwrap();
    let call = || ScriptItem::call("a__b", json!({}));
    let turn = one_turn(agent([call().repeat()]).max_steps_per_turn(limit)).await.unwrap();
    assert_eq!((turn.finish_reason(), turn.steps()), (FinishReason::MaxSteps, 2));
    assert!(turn.text().contains("limit of 2 steps"), "{}", turn.text());

    let talking = |text: &str| {
        let mut response = ModelResponse::tool_calls([ToolRequest::new("c1".into(), "a__b", json!({}))]);
        response.content.insert(0, Part::Text(TextPart::new(text)));
        agent([ScriptItem::raw(response), call()]).max_steps_per_turn(limit)
    };
    let turn = one_turn(talking("let me see")).await.unwrap();
    assert_eq!((turn.finish_reason(), turn.text().as_ref()), (FinishReason::MaxSteps, "let me see"));
    let turn = one_turn(talking(" \n")).await.unwrap();
    assert!(turn.text().contains("limit of 2 steps"), "blanks are no answer: {:?}", turn.text());
}

#[both_linkages]
#[covers("PIPE-11")]
async fn a_step_middleware_decides_whether_another_step_comes() {
    let script = || [ScriptItem::say("one"), ScriptItem::say("two")];
    let turn = one_turn(agent(script()).with::<Steering>(json!({ "prolong": true }))).await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps()), ("two", 2));
    let calling = [ScriptItem::call("a__b", json!({})), ScriptItem::say("never")];
    let turn = one_turn(agent(calling).with::<Steering>(json!({ "prolong": false }))).await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps()), ("", 1));
}

#[both_linkages(start_paused = true)]
#[covers("PATTERN-RETRY-01")]
async fn a_retry_is_a_new_step_after_the_requested_delay() {
    let (log, start) = (Log::new(), tokio::time::Instant::now());
    let script = [ScriptItem::fail("busy", true), ScriptItem::fail("busy", true), ScriptItem::say("here")];
    let turn = one_turn(agent(script).with::<Retrying>(log.config())).await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps()), ("here", 3));
    // A second after the first failure, two after the second.
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!(
        log.take(),
        ["step 0, attempt None", "step 1, attempt Some(Number(1))", "step 2, attempt Some(Number(2))"]
    );
}

#[both_linkages(start_paused = true)]
async fn retries_end_and_the_error_goes_out() {
    let log = Log::new();
    let failing = || ScriptItem::fail("busy", true).repeat();
    let error = one_turn(agent([failing()]).with::<Retrying>(log.config())).await.unwrap_err();
    assert_eq!(error.message(), "busy");
    assert_eq!(log.take().len(), 4, "the first attempt and three retries");
    let error = one_turn(agent([ScriptItem::fail("broken", false)]).with::<Retrying>(log.config()));
    assert_eq!(error.await.unwrap_err().message(), "broken");
    assert_eq!(log.take().len(), 1);
}

#[tokio::test]
async fn a_failed_turn_is_kept_and_does_not_block_the_next() {
    let agent = agent([ScriptItem::fail("no", false), ScriptItem::say("yes")]).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let error = instance.run("one").await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::MODEL);
    assert_eq!(error.turn().unwrap().steps, 1);
    assert_eq!(instance.run("two").await.unwrap().text(), "yes");
    let texts: Vec<_> = instance.messages().await.unwrap().iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["one", "two", "yes"]);
}

/// A model that notifies when it was asked, and waits for a notification before it answers.
#[derive(Clone, Default)]
struct GatedModel {
    asked: Arc<Notify>,
    open: Arc<Notify>,
}

impl Model for GatedModel {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            let input = request.messages().last().map(|message| message.content.text().into_owned());
            self.asked.notify_one();
            self.open.notified().await;
            Ok(ModelResponse::text(format!("re: {}", input.unwrap_or_default())))
        })
    }
}

#[tokio::test]
#[covers("PIPE-18")]
async fn events_are_handled_one_at_a_time_in_the_order_of_the_calls() {
    let model = GatedModel::default();
    let agent = goondan::Agent::builder("assistant").model(model.clone()).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let asking = |text: &'static str| {
        let instance = instance.clone();
        tokio::spawn(async move { instance.run(text).await.unwrap().text().into_owned() })
    };
    let first = asking("first");
    model.asked.notified().await;
    let (second, third) = (asking("second"), asking("third"));
    for _ in 0..3 {
        model.open.notify_one();
        tokio::task::yield_now().await;
        while !(first.is_finished() && second.is_finished() && third.is_finished()) {
            model.open.notify_one();
            tokio::task::yield_now().await;
        }
    }
    assert_eq!((first.await.unwrap(), second.await.unwrap()), ("re: first".into(), "re: second".into()));
    assert_eq!(third.await.unwrap(), "re: third");
    let texts: Vec<_> = instance.messages().await.unwrap().iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["first", "re: first", "second", "re: second", "third", "re: third"]);
}

#[tokio::test]
async fn a_cancelled_turn_is_kept_and_the_next_goes_on() {
    let model = GatedModel::default();
    let agent = goondan::Agent::builder("assistant").model(model.clone()).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    tokio::select! {
        _ = instance.run("one") => panic!("the gate is closed"),
        () = model.asked.notified() => {}
    }
    model.open.notify_one();
    assert_eq!(instance.run("two").await.unwrap().text(), "re: two");
    let texts: Vec<_> = instance.messages().await.unwrap().iter().map(|message| message.text().into_owned()).collect();
    assert_eq!(texts, ["one", "two", "re: two"]);
}

#[tokio::test]
async fn two_instances_do_not_wait_for_each_other() {
    let model = GatedModel::default();
    let agent = goondan::Agent::builder("assistant").model(model.clone()).build().unwrap();
    let one = agent.instance("one").await.unwrap();
    let two = agent.instance("two").await.unwrap();
    let waiting = tokio::spawn(async move { one.run("one").await });
    model.asked.notified().await;
    let also = tokio::spawn(async move { two.run("two").await });
    // The second model call happens while the first is still waiting.
    model.asked.notified().await;
    model.open.notify_waiters();
    assert_eq!(waiting.await.unwrap().unwrap().text(), "re: one");
    assert_eq!(also.await.unwrap().unwrap().text(), "re: two");
}
