//! D-45: calls of one answer that run side by side.

use std::sync::atomic::{AtomicUsize, Ordering};

use conformance_extensions::asking::Questioning;
use conformance_extensions::beside::Beside;
use goondan::agent::AgentBuilder;
use goondan::conversation::Role;
use goondan::decision::Decision;
use goondan::event::AgentEvent;
use goondan::middleware::FinishReason;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::{Agent, BoxFuture, Result, json};
use goondan_covers::{both_linkages, covers};

use crate::asking::results;
use crate::linkage::Extended;
use crate::support::{Log, run_for};

/// A model that calls these tools in one answer, with the numbers 1, 2 and so on.
struct Calling(Vec<&'static str>, AtomicUsize);

impl Model for Calling {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let has_results = request.messages().last().is_some_and(|message| message.role == Role::Tool);
        self.1.fetch_add(1, Ordering::Relaxed);
        let call = |(at, tool): (usize, &&str)| {
            let (number, name) = (at + 1, format!("beside__{tool}"));
            json!({ "id": format!("c{number}"), "name": name, "args": { "number": number } })
        };
        let answer = match has_results {
            true => json!({ "text": "done", "finishReason": "stop" }),
            false => json!({ "toolCalls": self.0.iter().enumerate().map(call).collect::<Vec<_>>(),
                             "finishReason": "tool-calls" }),
        };
        Box::pin(async move { Ok(serde_json::from_value(answer)?) })
    }
}

fn calling(log: &Log, tools: &[&'static str]) -> AgentBuilder {
    let model = Calling(tools.to_vec(), AtomicUsize::default());
    Agent::builder("assistant").model(model).with::<Beside>(log.config())
}

/// Lets a layer ask about these tools.
fn asked(agent: AgentBuilder, log: &Log, tools: &[&str]) -> AgentBuilder {
    let tools: Vec<_> = tools.iter().map(|tool| format!("beside__{tool}")).collect();
    agent.with::<Questioning>(json!({ "log": log, "asks": tools }))
}

/// Returns what begins and ends, in its order.
fn worked(log: &Log) -> Vec<String> {
    log.take().into_iter().filter(|line| line.ends_with("begins") || line.ends_with("ends")).collect()
}

#[both_linkages]
#[covers("D-45")]
async fn calls_run_side_by_side_if_each_may_and_their_results_keep_the_order() {
    for (tools, together) in [
        (["pay", "pay", "ship"], true),
        (["read", "pay", "read"], true),
        (["pay", "close", "read"], false),
        (["close", "close", "close"], false),
    ] {
        let log = Log::new();
        let instance = calling(&log, &tools).build().unwrap().instance("test").await.unwrap();
        assert_eq!(instance.run("go").await.unwrap().text(), "done");
        let lines = worked(&log);
        let begun = lines.iter().take_while(|line| line.ends_with("begins")).count();
        assert_eq!(begun, if together { 3 } else { 1 }, "{lines:?}");
        let texts: Vec<_> = results(&instance).await.into_iter().map(|(_, text)| text).collect();
        let expected: Vec<_> = tools.iter().zip(1..).map(|(tool, number)| format!("{tool} {number}")).collect();
        assert_eq!(texts, expected);
    }
}

#[both_linkages]
#[covers("D-45", "ASK-01")]
async fn a_call_is_held_behind_one_that_waits_and_not_before_it() {
    let log = Log::new();
    let agent = asked(calling(&log, &["pay", "ship", "pay"]), &log, &["ship"]);
    let instance = agent.build().unwrap().instance("test").await.unwrap();
    let turn = instance.run("go").await.unwrap();
    assert_eq!((turn.finish_reason(), turn.waits().len()), (FinishReason::Suspended, 1));
    assert_eq!(worked(&log), ["pay 1 begins", "pay 1 ends"]);
    let turn = instance.decide([Decision::approve(turn.waits()[0].call.clone())]).await.unwrap();
    assert_eq!(turn.text(), "done");
    assert_eq!(worked(&log), ["ship 2 begins", "pay 3 begins", "ship 2 ends", "pay 3 ends"]);
}

#[both_linkages]
#[covers("D-45", "ASK-04")]
async fn a_call_starts_only_when_a_handler_before_it_can_ask_nothing_more() {
    let log = Log::new();
    let agent = calling(&log, &["ask", "pay", "read"]).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let turn = instance.run("go").await.unwrap();
    assert_eq!(turn.finish_reason(), FinishReason::Suspended);
    // What only reads runs, and again after the decision.
    assert_eq!(worked(&log), ["read 3 begins", "read 3 ends"]);
    let turn = instance.decide([Decision::approve(turn.waits()[0].call.clone())]).await.unwrap();
    assert_eq!(turn.text(), "done");
    let lines = worked(&log);
    let at = |line: &str| lines.iter().position(|other| other == line).unwrap();
    assert!(at("ask 1 ends") < at("pay 2 begins"), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.ends_with("begins")).count(), 3, "{lines:?}");
}

/// Interrupted anywhere, a call that must not run twice does not.
#[both_linkages]
#[covers("D-45", "EFFECT-01", "RESUME-01")]
async fn what_runs_side_by_side_runs_once_over_interruptions() {
    for rounds in 0.. {
        let log = Log::new();
        let agent = calling(&log, &["pay", "ship", "pay", "read"]).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        let event = AgentEvent::input("go").with_id("e1");
        let mut turn = instance.run_stream(event.clone());
        let has_ended = run_for(&mut turn, rounds).await;
        drop(turn);
        assert_eq!(instance.run(event).await.unwrap().text(), "done");
        let lines = worked(&log);
        let results = results(&instance).await;
        assert_eq!(results.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["c1", "c2", "c3", "c4"]);
        for (number, (_, text)) in (1..).zip(&results) {
            let begun = lines.iter().filter(|line| line.ends_with(&format!("{number} begins"))).count();
            match number {
                1 | 3 => assert!(begun <= 1, "{rounds} {number}: {lines:?}"),
                _ => assert!((1..=2).contains(&begun), "{rounds} {number}: {lines:?}"),
            }
            assert!(text.ends_with(&number.to_string()) || text.contains("E_TOOL_OUTCOME_UNKNOWN"), "{text}");
        }
        if has_ended {
            break;
        }
        assert!(rounds < 500, "the turn does not end");
    }
}
