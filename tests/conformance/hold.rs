//! `ctx.hold_stream()`: an answer is sent when the layers of its step have returned, as they have left it.

use std::num::NonZeroU32;
use std::sync::Arc;

use conformance_extensions::hold::Guarding;
use goondan::agent::{AgentBuilder, TurnUpdate};
use goondan::middleware::TurnResult;
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse, ScriptItem};
use goondan::{Agent, BoxFuture, Error, Instance, Result, Value, json};
use goondan_covers::{both_linkages, covers};
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::{Log, agent};

/// An answer that is streamed in pieces.
fn pieces(text: &str) -> ScriptItem {
    ScriptItem::say(text).reasoning("they greet me").pieces(NonZeroU32::new(7).unwrap())
}

/// Returns what a watcher of the turn receives, one line each, and the outcome of the turn. `piece` is called with
/// each piece of an answer.
async fn watched(instance: &Instance, mut piece: impl FnMut()) -> (Vec<String>, Result<TurnResult>) {
    let mut turn = instance.run_stream("hello");
    let mut seen = Vec::new();
    while let Some(update) = turn.next().await {
        if matches!(update, TurnUpdate::Message(_)) {
            continue;
        }
        if !matches!(update, TurnUpdate::Event(_) | TurnUpdate::Output { .. }) {
            piece();
        }
        seen.push(match update {
            TurnUpdate::Text { step, part, text } => format!("{step}.{part} text {text}"),
            TurnUpdate::Reasoning { step, part, text } => format!("{step}.{part} reasoning {text}"),
            TurnUpdate::ToolCall { step, part, name, .. } => format!("{step}.{part} call {name}"),
            TurnUpdate::Output { text, .. } => format!("output {text}"),
            TurnUpdate::Event(event) => event.name().to_owned(),
            other => format!("{other:?}"),
        });
    }
    (seen, turn.finish().await)
}

/// Returns the pieces that a watcher of one turn receives, and the outcome of the turn.
async fn pieces_of(agent: AgentBuilder) -> (Vec<String>, Result<String>) {
    let agent = agent.build().unwrap();
    let (seen, outcome) = watched(&agent.instance("test").await.unwrap(), || ()).await;
    let pieces = seen.into_iter().filter(|line| line.contains(' ')).collect();
    (pieces, outcome.map(|turn| turn.text().into_owned()))
}

fn guarded(script: impl IntoIterator<Item = ScriptItem>, log: &Log, then: Value) -> AgentBuilder {
    agent(script).with::<Guarding>(json!({ "log": log, "hold": "before", "then": then }))
}

#[both_linkages]
async fn no_piece_comes_before_the_outermost_layer_has_returned() {
    for (outer, inner) in [(Value::Null, "before"), (json!("before"), "before"), (Value::Null, "twice")] {
        let log = Log::new();
        let agent = agent([pieces("hello, who are you?")])
            .with_named("outer", "guarding", json!({ "log": log, "hold": outer }))
            .with_named("inner", "guarding", json!({ "log": log, "hold": inner }))
            .build()
            .unwrap();
        let mut returned = Vec::new();
        let (seen, turn) = watched(&agent.instance("test").await.unwrap(), || returned.extend(log.take())).await;
        assert_eq!(returned, ["returned", "returned"], "both layers, before the first piece");
        let expected = [
            "turn.started",
            "step.started",
            "0.0 reasoning they greet me",
            "0.1 text hello, who are you?",
            "step.completed",
            "turn.completed",
        ];
        assert_eq!(seen, expected);
        assert_eq!(turn.unwrap().text(), "hello, who are you?");
    }
}

#[both_linkages]
async fn without_it_or_after_next_the_pieces_come_at_once() {
    for hold in [Value::Null, json!("after")] {
        let log = Log::new();
        let agent = agent([pieces("hello, who are you?")]).with::<Guarding>(json!({ "log": log, "hold": hold }));
        let agent = agent.build().unwrap();
        let mut returned = Vec::new();
        let mut first = true;
        let look = || {
            if std::mem::take(&mut first) {
                returned = log.take()
            }
        };
        let (seen, _) = watched(&agent.instance("test").await.unwrap(), look).await;
        assert_eq!(returned, [""; 0]);
        assert_eq!(seen.len(), 4 + 2 * 7);
    }
}

#[both_linkages]
async fn only_what_the_conversation_holds_is_sent() {
    let log = Log::new();
    let script = || [pieces("the secret")];
    let sent = async |then| {
        let (pieces, text) = pieces_of(guarded(script(), &log, then)).await;
        (pieces, text.unwrap())
    };
    assert_eq!(sent(json!({ "replace": "withheld" })).await, (vec!["0.0 text withheld".to_owned()], "withheld".into()));
    assert_eq!(sent(json!({ "replace": "" })).await, (vec![], String::new()));
    assert_eq!(sent(json!("remove")).await, (vec![], String::new()));
    assert_eq!(sent(json!("truncate")).await, (vec![], String::new()));
    assert_eq!(sent(json!({ "removeAndAppend": "no" })).await, (vec!["0.0 text no".to_owned()], "no".into()));
    // An outer layer replaces what an inner one held.
    let agent = agent(script())
        .with_named("outer", "guarding", json!({ "log": log, "then": { "replace": "withheld" } }))
        .with_named("inner", "guarding", json!({ "log": log, "hold": "before" }));
    assert_eq!(pieces_of(agent).await.0, ["0.0 text withheld"]);
}

#[both_linkages]
#[covers("OBSERVE-01")]
async fn messages_of_a_held_step_are_told_once_its_layers_have_returned_as_they_have_left_them() {
    for then in
        [json!({ "replace": "withheld" }), json!("remove"), json!("truncate"), json!({ "removeAndAppend": "no" })]
    {
        let log = Log::new();
        let agent = guarded([pieces("the secret")], &log, then.clone()).build().unwrap();
        let mut turn = agent.instance("test").await.unwrap().run_stream("hello");
        let (mut returned, mut told) = (Vec::new(), Vec::new());
        while let Some(update) = turn.next().await {
            returned.extend(log.take());
            if let TurnUpdate::Message(event) = update {
                let event = json!(event).to_string();
                // The input comes before the step.
                assert!(returned == ["returned"] || event.contains("hello"), "{then}: {event} after {returned:?}");
                told.push(event);
            }
        }
        assert!(!told.is_empty() && !told.concat().contains("secret"), "{then}: {told:?}");
    }
}

#[both_linkages]
async fn of_a_step_that_failed_nothing_is_sent() {
    let log = Log::new();
    let script = || [pieces("the secret")];
    let (pieces, outcome) = pieces_of(guarded(script(), &log, json!("fail"))).await;
    assert_eq!((pieces, outcome.unwrap_err().message().as_ref()), (vec![], "refused"));
    // A layer that could not replace the answer.
    let (pieces, outcome) = pieces_of(guarded(script(), &log, json!("replaceBadly"))).await;
    assert_eq!((pieces, outcome.unwrap_err().code().as_str()), (vec![], "E_MESSAGE_DUPLICATE_ID"));
    // A layer recovered from the failure of the one that holds.
    let agent = agent(script()).with_named("outer", "guarding", json!({ "log": log, "then": "recover" })).with_named(
        "inner",
        "guarding",
        json!({ "log": log, "hold": "before", "then": "fail" }),
    );
    assert_eq!(pieces_of(agent).await.0, [""; 0]);
}

#[both_linkages]
async fn a_step_that_is_run_again_holds_again_and_only_its_own_answer() {
    let log = Log::new();
    let script = [pieces("the secret"), pieces("the answer")];
    let (pieces, text) = pieces_of(guarded(script, &log, json!("retry"))).await;
    assert_eq!(pieces, ["1.0 reasoning they greet me", "1.1 text the answer"]);
    assert_eq!(text.unwrap(), "the answer");
}

#[both_linkages]
async fn runtime_events_are_not_held() {
    let log = Log::new();
    let script = [ScriptItem::call("guarding__look", json!({})).reasoning("hm"), pieces("nothing there")];
    let agent = guarded(script, &log, Value::Null).build().unwrap();
    let (seen, _) = watched(&agent.instance("test").await.unwrap(), || ()).await;
    let expected = [
        "turn.started",
        "step.started",
        "tool.called",
        "output nothing to see",
        "tool.completed",
        "0.0 reasoning hm",
        "0.1 call guarding__look",
        "step.completed",
        "step.started",
        "1.0 reasoning they greet me",
        "1.1 text nothing there",
        "step.completed",
        "turn.completed",
    ];
    assert_eq!(seen, expected);
}

/// A model that says half an answer, and then ends as its variant says.
#[derive(Clone, Copy)]
enum HalfWay {
    Hangs,
    Fails,
    StartsAnew,
}

struct Interrupted(HalfWay, Arc<Notify>);

impl Model for Interrupted {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, deltas: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        deltas.send(ModelDelta::Text { part: 0, text: "half the secret" });
        self.1.notify_one();
        Box::pin(async move {
            match self.0 {
                HalfWay::Hangs => std::future::pending().await,
                HalfWay::Fails => Err(Error::msg("the connection was cut")),
                HalfWay::StartsAnew => {
                    deltas.send(ModelDelta::Restart { reason: "the connection was cut", wait: None });
                    deltas.send(ModelDelta::Text { part: 0, text: "whole" });
                    Ok(ModelResponse::text("whole"))
                }
            }
        })
    }
}

#[both_linkages]
async fn of_an_answer_that_was_not_completed_nothing_is_sent_or_kept() {
    for watching in [true, false] {
        for (way, kept) in [(HalfWay::Hangs, ""), (HalfWay::Fails, ""), (HalfWay::StartsAnew, "whole")] {
            let (log, asked) = (Log::new(), Arc::new(Notify::new()));
            let agent = Agent::builder("assistant").model(Interrupted(way, Arc::clone(&asked)));
            let agent = agent.with::<Guarding>(json!({ "log": log, "hold": "before" })).build().unwrap();
            let instance = agent.instance("test").await.unwrap();
            let mut pieces = Vec::new();
            // Dropping the turn cancels it.
            if watching {
                let mut turn = instance.run_stream("hello");
                let watch = async {
                    while let Some(update) = turn.next().await {
                        match update {
                            TurnUpdate::Event(_) | TurnUpdate::Message(_) => {}
                            TurnUpdate::Text { text, .. } => pieces.push(text),
                            other => panic!("{other:?}"),
                        }
                    }
                };
                tokio::select! {
                    biased;
                    () = watch => {}
                    () = asked.notified() => {}
                }
            } else {
                tokio::select! {
                    biased;
                    _ = instance.run("hello") => {}
                    () = asked.notified() => {}
                }
            }
            assert_eq!(pieces.concat(), if watching { kept } else { "" });
            agent.close().await.unwrap();
            let messages = agent.instance("test").await.unwrap().messages().await.unwrap();
            let texts: Vec<_> = messages.iter().map(|message| message.text().into_owned()).collect();
            assert_eq!(texts, if kept.is_empty() { vec!["hello"] } else { vec!["hello", kept] });
        }
    }
}
