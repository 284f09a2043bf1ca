//! ASK-01, ASK-02, ASK-03: calls that wait for a decision.

use std::sync::Arc;
use std::time::Duration;

use conformance_extensions::agents::Asking;
use conformance_extensions::asking::{AroundInside, AroundOutside, JudgingWaits, Questioning, QuestioningAgain};
use goondan::agent::{AgentBuilder, AgentCall, BackgroundUpdate, LocalRouter, Router, TurnUpdate};
use goondan::decision::{Decision, QuestionId, Verdict, Wait};
use goondan::event::{AgentDelegate, AgentDelegationResult, AgentEvent, EventSource, Principal, RuntimeEvent};
use goondan::extension::Extension;
use goondan::middleware::{FinishReason, OnError, TurnResult};
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::{FileStore, InstanceId, MemoryStore};
use goondan::{Agent, Error, ErrorCode, Instance, Map, Result, Secret, Value, json};
use goondan_breaking::{Break, Breaking, GoesOn, Plan, close};
use goondan_covers::{both_linkages, covers, interruptible};
use tempfile::TempDir;

use crate::linkage::Extended;
use crate::support::Log;

const ACT: &str = "questioning__act";
const SET: &str = "questioning__set";
const LOOK: &str = "questioning__look";

/// An agent whose model asks for `calls` in one step, and says `done` then.
fn calling(calls: &[(&'static str, u32)]) -> AgentBuilder {
    let args = |(tool, x): &(&'static str, u32)| (*tool, json!({ "x": x }));
    let asked = (!calls.is_empty()).then(|| ScriptItem::calls(calls.iter().map(args)));
    let script = asked.into_iter().chain([ScriptItem::say("done").repeat()]);
    Agent::builder("assistant").model(ScriptedModel::new(script))
}

fn asks(log: &Log, tools: &[&str], more: Value) -> Value {
    let mut config = json!({ "log": log, "asks": tools });
    config.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    config
}

async fn opened(agent: AgentBuilder) -> Instance {
    agent.build().unwrap().instance("test").await.unwrap()
}

fn args(x: u32) -> Map<String, Value> {
    Map::from_iter([("x".to_owned(), x.into())])
}

fn approve(wait: &Wait) -> Vec<Decision> {
    let of = |asked: &goondan::decision::AskedQuestion| Decision::new(wait.call.clone(), 1).of(asked.by.clone());
    wait.questions.iter().map(of).collect()
}

/// Returns a detail that is JSON.
fn detail(error: &Error, name: &str) -> Value {
    serde_json::from_str(error.details()[name].as_str().unwrap()).unwrap()
}

fn of_agent(name: &str) -> AgentEvent {
    let mut event = AgentEvent::input("and?");
    event.source = EventSource::new("agent", name);
    event
}

fn ids(waits: &[Wait]) -> Vec<String> {
    waits.iter().map(|wait| wait.call.to_string()).collect()
}

/// Returns each result of a call: its id and its text.
pub(crate) async fn results(instance: &Instance) -> Vec<(String, String)> {
    let messages = instance.messages().await.unwrap();
    let parts = messages.iter().flat_map(|message| message.content().parts().iter());
    let results = parts.filter_map(|part| match part {
        goondan::conversation::Part::ToolResult(result) => {
            Some((result.tool_call_id.to_string(), result.output.to_text().into_owned()))
        }
        _ => None,
    });
    results.collect()
}

pub(crate) fn ran(log: &[String]) -> Vec<&str> {
    let is_run = |line: &&String| ["act ", "set ", "look "].iter().any(|tool| line.starts_with(tool));
    log.iter().filter(is_run).map(String::as_str).collect()
}

#[both_linkages]
#[covers("ASK-01", "ASK-02")]
async fn a_call_waits_and_runs_once_it_is_approved() {
    let log = Log::new();
    let agent = calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[ACT], json!({ "number": true })));
    let instance = opened(agent).await;
    let mut turn = instance.run_stream("pay");
    let mut told = None;
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Event(event) = update
            && let RuntimeEvent::TurnSuspended { waits, .. } = &*event
        {
            told = Some(waits.clone());
        }
    }
    let result = turn.finish().await.unwrap();
    assert_eq!((result.finish_reason(), result.text().as_ref()), (FinishReason::Suspended, ""));
    let [wait] = result.waits() else { panic!("{result:?}") };
    assert_eq!((wait.tool.as_str(), &wait.args, wait.presentation.line.as_str()), (ACT, &args(7), "acts with 7"));
    let asked = &wait.questions[0];
    let id = QuestionId::new(Questioning::DESCRIPTOR.name.parse().unwrap(), "ask", None);
    assert_eq!((&asked.by, asked.question.text.as_str()), (&id, "Run questioning__act?"));
    assert_eq!(told.unwrap(), result.waits());
    assert_eq!(instance.waits().await.unwrap(), result.waits());
    assert_eq!(log.take(), ["waits call-1".to_owned()].map(|_| format!("waits {}", wait.call)));

    let decide = |decision: Decision| instance.decide([decision]);
    let error = decide(Decision::new("another", 1)).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::NOT_WAITING);
    let error = decide(Decision::new(wait.call.clone(), "many")).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::DECISION_INVALID);
    let error = decide(Decision::new(wait.call.clone(), 3).with_args(Map::new())).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::DECISION_INVALID);
    let mut other = id.clone();
    other.name = Some("other".to_owned());
    let error = decide(Decision::new(wait.call.clone(), 3).of(other)).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::DECISION_INVALID);
    assert_eq!(instance.waits().await.unwrap(), result.waits(), "nothing has changed");
    assert!(log.take().is_empty());

    let result = decide(Decision::new(wait.call.clone(), 3).by(Principal::new("user", "ada"))).await.unwrap();
    assert_eq!((result.text().as_ref(), result.finish_reason()), ("done", FinishReason::TextResponse));
    assert_eq!(log.take(), ["decided 3", "act 7"]);
    let messages = instance.messages().await.unwrap();
    let of_tool = messages.iter().find(|message| message.metadata().contains_key("decisions")).unwrap();
    assert_eq!(of_tool.metadata()["decisions"][0]["by"]["id"], "ada");
    let error = decide(Decision::approve(wait.call.clone())).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::NOT_WAITING);
    instance.close().await.unwrap();
}

#[both_linkages]
#[covers("ASK-01")]
async fn a_rejected_call_does_not_run_and_the_model_reads_why() {
    let log = Log::new();
    let instance = opened(calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[ACT], json!({})))).await;
    let wait = instance.run("pay").await.unwrap().waits()[0].clone();
    let result = instance.decide([Decision::reject(wait.call.clone(), "not to her")]).await.unwrap();
    assert_eq!(result.text(), "done");
    let results = results(&instance).await;
    assert!(results[0].1.contains("E_TOOL_REJECTED: not to her"), "{results:?}");
    assert!(ran(&log.take()).is_empty());
    instance.close().await.unwrap();
}

#[both_linkages]
#[covers("ASK-03")]
async fn edited_arguments_run() {
    let log = Log::new();
    let instance = opened(calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[ACT], json!({})))).await;
    let wait = instance.run("pay").await.unwrap().waits()[0].clone();
    instance.decide([Decision::approve(wait.call).with_args(args(5))]).await.unwrap();
    assert_eq!(ran(&log.take()), ["act 5"]);
    let messages = instance.messages().await.unwrap();
    let rewritten = messages.iter().find(|message| message.metadata().contains_key("rewrittenArgs")).unwrap();
    assert_eq!(rewritten.metadata()["rewrittenArgs"], json!({ "x": 5 }));
    instance.close().await.unwrap();
}

/// Three calls, of which the second and the third ask: both questions are there at once, and the first has run.
#[both_linkages]
#[covers("ASK-01")]
async fn calls_behind_one_that_waits_are_held() {
    let log = Log::new();
    let agent = calling(&[(SET, 1), (ACT, 2), (ACT, 3), (LOOK, 4)]).with::<Questioning>(asks(&log, &[ACT], json!({})));
    let instance = opened(agent).await;
    let waits = instance.run("go").await.unwrap().waits().to_vec();
    assert_eq!(waits.len(), 2);
    assert_eq!(ran(&log.take()), ["set 1"]);
    assert_eq!(results(&instance).await.len(), 1);
    let still = instance.decide([Decision::approve(waits[1].call.clone())]).await.unwrap();
    assert_eq!((still.finish_reason(), ids(still.waits())), (FinishReason::Suspended, ids(&waits[..1])));
    let again = instance.decide([Decision::reject(waits[1].call.clone(), "too late")]).await.unwrap_err();
    assert_eq!(*again.code(), ErrorCode::DECISION_TAKEN);
    assert_eq!(detail(&again, "decision")["call"], waits[1].call.as_str());
    assert!(ran(&log.take()).is_empty(), "nothing runs before all is decided");
    let result = instance.decide([Decision::approve(waits[0].call.clone())]).await.unwrap();
    assert_eq!(result.text(), "done");
    assert_eq!(ran(&log.take()), ["act 2", "act 3", "look 4"]);
    let ids: Vec<_> = results(&instance).await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(ids, ["1", "2", "3", "4"]);
    instance.close().await.unwrap();
}

/// Calls that only read run side by side; those behind the first that waits run again.
#[both_linkages]
#[covers("ASK-01")]
async fn reading_calls_beside_one_that_waits_run_again() {
    let log = Log::new();
    let agent = calling(&[(LOOK, 1), (LOOK, 2), (LOOK, 3)]);
    let config = asks(&log, &[], json!({}));
    let instance =
        opened(agent.with::<Questioning>(config).with::<QuestioningAgain>(asks(&log, &[LOOK], json!({})))).await;
    let waits = instance.run("go").await.unwrap().waits().to_vec();
    assert_eq!(waits.len(), 3);
    let decisions = waits.iter().flat_map(approve);
    assert_eq!(instance.decide(decisions).await.unwrap().text(), "done");
    let log = log.take();
    let mut ran = ran(&log);
    ran.sort_unstable();
    assert_eq!(ran, ["look 1", "look 2", "look 3"]);
    instance.close().await.unwrap();
}

/// What layers do around, inside and outside of those that ask, and what is decided.
#[both_linkages]
#[covers("ASK-01", "ASK-03", "PAIR-01")]
async fn no_call_runs_without_its_decision_whatever_layers_do() {
    const HOW: [&str; 14] = [
        "errorBefore",
        "panicBefore",
        "retryBefore",
        "answer",
        "same",
        "random",
        "secondOther",
        "errorAfter",
        "panicAfter",
        "retryAfter",
        "recover",
        "hide",
        "nothing",
        "",
    ];
    for (how, place) in HOW.iter().flat_map(|how| ["outside", "inside", "both"].map(|place| (*how, place))) {
        for (verdict, twice, skips) in [
            ("approve", false, false),
            ("approve", true, false),
            ("approve", false, true),
            ("reject", false, false),
            ("reject", true, true),
            ("edit", false, false),
            ("edit", true, false),
        ] {
            attack(how, place, verdict, twice, skips).await;
        }
    }
}

#[interruptible]
async fn attack(how: &str, place: &str, verdict: &str, twice: bool, skips: bool) {
    let what = format!("{how} {place} {verdict} twice: {twice} skips: {skips}");
    let log = Log::new();
    let mut agent = calling(&[(ACT, 7), (SET, 8)]).with::<Questioning>(asks(&log, &[ACT], json!({})));
    let around = json!({ "log": log, "how": how });
    if place != "inside" {
        agent = agent.with::<AroundOutside>(around.clone());
    }
    if place != "outside" {
        agent = agent.with::<AroundInside>(around);
    }
    if twice {
        agent = agent.with::<QuestioningAgain>(asks(&log, &[ACT], json!({})));
    }
    if skips {
        agent = agent.on_error("questioning", OnError::Skip);
    }
    let instance = opened(agent).await;
    let mut result = instance.run("go").await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let (mut approved, mut rounds) = (Vec::new(), 0);
    let mut acts = Vec::new();
    let mut take = |log: &Log| {
        acts.extend(log.take().into_iter().filter(|line| line.starts_with("act ")));
        acts.clone()
    };
    assert!(take(&log).is_empty(), "{what}: it ran without a decision");
    while result.finish_reason() == FinishReason::Suspended {
        rounds += 1;
        assert!(rounds < 9, "{what}: it is asked for ever");
        for wait in result.waits().to_vec() {
            assert_eq!(wait.tool, ACT, "{what}");
            let decisions: Vec<_> = match verdict {
                "reject" => vec![Decision::reject(wait.call.clone(), "no")],
                "edit" if rounds == 1 => {
                    approved.push(5);
                    approve(&wait).into_iter().map(|decision| decision.with_args(args(5))).collect()
                }
                _ => {
                    approved.push(wait.args["x"].as_u64().unwrap());
                    approve(&wait)
                }
            };
            result = instance.decide(decisions).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        }
    }
    let acts = take(&log);
    assert!(acts.len() <= 1, "{what}: {acts:?}");
    if verdict == "reject" {
        assert!(acts.is_empty(), "{what}: {acts:?}");
    }
    if let Some(act) = acts.first() {
        assert_eq!(*act, format!("act {}", approved.last().unwrap()), "{what}: another than what was approved last");
    }
    if verdict == "approve" && ["", "nothing", "same", "secondOther", "hide", "recover"].contains(&how) {
        assert_eq!(acts.len(), 1, "{what}: it was approved");
    }
    let results = results(&instance).await;
    assert_eq!(results.len(), 2, "{what}: {results:?}");
    instance.close().await.unwrap();
}

/// What a layer shows of the call is asked about with it: if it is something else when the call goes on, it is asked again.
#[both_linkages]
#[covers("ASK-03")]
async fn what_is_shown_is_a_part_of_what_is_approved() {
    let shown = |result: &TurnResult| -> Vec<_> {
        result.waits().iter().flat_map(|wait| &wait.shown).map(ToString::to_string).collect()
    };
    for (how, rounds, acts) in
        [("show", &["this"][..], 1), ("showSecondOther", &["\u{fffd}0", "\u{fffd}1"], 1), ("showOther", &["0", "1"], 0)]
    {
        for edits in [false, true] {
            let log = Log::new();
            let around = json!({ "log": log, "how": how });
            let agent = calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[ACT], json!({})));
            let instance = opened(agent.with::<AroundInside>(around)).await;
            let mut result = instance.run("go").await.unwrap();
            let mut seen = Vec::new();
            while result.finish_reason() == FinishReason::Suspended {
                assert_eq!(result.waits()[0].again, !seen.is_empty(), "{how}");
                seen.extend(shown(&result));
                assert_eq!(instance.waits().await.unwrap(), result.waits());
                let mut decision = Decision::approve(result.waits()[0].call.clone());
                if edits {
                    decision = decision.with_args(args(5));
                }
                result = instance.decide([decision]).await.unwrap();
            }
            // What is shown of other arguments is another thing.
            let (rounds, acts) = if edits { (&rounds[..1], 1) } else { (rounds, acts) };
            assert_eq!(seen, rounds, "{how}");
            assert_eq!(ran(&log.take()).len(), acts, "{how}");
            instance.close().await.unwrap();
        }
    }
}

/// Arguments of any size, depth and characters are asked about and run as they are, also in a new opening.
#[both_linkages]
#[covers("ASK-01", "ASK-03", "DEPTH-01")]
async fn odd_arguments_are_approved_as_a_whole() {
    let _secret = Secret::new("the-secret-4711");
    let deep =
        (0..60).fold(
            json!("\u{202e}\u{1b}[2J"),
            |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) },
        );
    let long = format!("the-secret-4711 \u{1b}[2J{}", "ä".repeat(1 << 19));
    let odd = json!({ "x": 7, "deep": deep, "long": long, "\u{7}": 1.5e-7 });
    let log = Log::new();
    let directory = TempDir::new().unwrap();
    let agent = |model: ScriptedModel| {
        let agent = Agent::builder("assistant").model(model).store(FileStore::open(directory.path()).unwrap());
        agent.with::<Questioning>(asks(&log, &[ACT], json!({}))).with::<AroundInside>(json!({ "log": log, "how": "" }))
    };
    let instance = opened(agent(ScriptedModel::new([ScriptItem::call(ACT, odd.clone())]))).await;
    let result = instance.run("go").await.unwrap();
    let wait = result.waits()[0].clone();
    assert_eq!(Value::Object(wait.args.clone()), odd);
    let told = serde_json::to_string(&wait.masked()).unwrap();
    assert!(told.contains("*** ") && !told.contains("4711"), "{}", &told[..400]);
    instance.close().await.unwrap();

    let instance = opened(agent(ScriptedModel::new([ScriptItem::say("done")]))).await;
    assert_eq!(instance.waits().await.unwrap()[0].call, wait.call);
    assert_eq!(instance.decide([Decision::approve(wait.call)]).await.unwrap().text(), "done");
    assert_eq!(ran(&log.take()), ["act 7"]);
    instance.close().await.unwrap();
}

/// What layers show is bounded, and without a question nothing is shown.
#[both_linkages]
#[covers("ASK-03")]
async fn what_is_shown_is_bounded() {
    let log = Log::new();
    let around = json!({ "log": log, "how": "showMany" });
    for (asked, expected) in [(&[ACT][..], vec![64 * 1024; 8]), (&[], vec![])] {
        let agent = calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, asked, json!({})));
        let instance = opened(agent.with::<AroundInside>(around.clone())).await;
        let result = instance.run("go").await.unwrap();
        let shown = result.waits().iter().flat_map(|wait| &wait.shown);
        assert_eq!(shown.map(|shown| shown.to_string().chars().count()).collect::<Vec<_>>(), expected);
        assert_eq!(result.finish_reason() == FinishReason::Suspended, !asked.is_empty());
        instance.close().await.unwrap();
    }
}

/// An extension that has asked is not skipped, and one that does not read its decision lets nothing run.
#[both_linkages]
#[covers("ASK-01", "FAIL-01")]
async fn an_asker_that_fails_lets_nothing_run() {
    for (fails, on_error, runs) in [
        ("before", OnError::Skip, 0),
        ("before", OnError::Abort, 0),
        ("after", OnError::Skip, 1),
        ("unread", OnError::Skip, 0),
    ] {
        let log = Log::new();
        let config = asks(&log, &[ACT], json!({ "fails": fails }));
        let instance = opened(calling(&[(ACT, 7)]).with::<Questioning>(config).on_error("questioning", on_error)).await;
        let wait = instance.run("go").await.unwrap().waits()[0].clone();
        assert_eq!(instance.decide([Decision::approve(wait.call)]).await.unwrap().text(), "done");
        assert_eq!(ran(&log.take()).len(), runs, "{fails}");
        let result = &results(&instance).await[0].1;
        let code = if fails == "unread" { "E_TOOL_REJECTED" } else { "E_EXT_PANIC" };
        assert!(result.contains(code), "{fails}: {result}");
        instance.close().await.unwrap();
    }
}

#[both_linkages]
#[covers("ASK-01")]
async fn what_layers_make_of_a_suspended_step_or_turn_is_not_used() {
    for how in ["", "fail", "panic", "retry", "replace", "hold", "project"] {
        let log = Log::new();
        let (config, judges) = (asks(&log, &[ACT], json!({})), json!({ "log": log, "how": how }));
        let instance = opened(calling(&[(ACT, 7)]).with::<Questioning>(config).with::<JudgingWaits>(judges)).await;
        let result = instance.run("go").await.unwrap();
        assert_eq!((result.finish_reason(), result.text().as_ref()), (FinishReason::Suspended, ""), "{how}");
        let lines = log.take();
        assert!(lines.contains(&"step Suspended, 1 of 1".to_owned()), "{how}: {lines:?}");
        if how != "panic" {
            assert!(lines.iter().any(|line| line.starts_with("turn Suspended")), "{how}: {lines:?}");
        }
        let texts: Vec<_> = instance.messages().await.unwrap().iter().map(|it| it.text().into_owned()).collect();
        assert!(!texts.iter().any(|text| text.contains("is over")), "{how}: {texts:?}");
        let outcome = instance.decide([Decision::approve(result.waits()[0].call.clone())]).await;
        assert_eq!(outcome.is_err(), ["fail", "panic"].contains(&how), "{how}");
        assert_eq!(ran(&log.take()), ["act 7"], "{how}");
        let texts: Vec<_> = instance.messages().await.unwrap().iter().map(|it| it.text().into_owned()).collect();
        assert_eq!(texts.iter().filter(|text| *text == "the step is over").count(), 2, "{how}: {texts:?}");
        instance.close().await.unwrap();
    }
}

/// A year later, in a new process.
#[both_linkages]
#[covers("ASK-01", "ASK-02", "RESUME-01")]
async fn a_turn_waits_on_the_disk() {
    let directory = TempDir::new().unwrap();
    let log = Log::new();
    let build = |script: Vec<ScriptItem>| {
        let agent = Agent::builder("assistant")
            .model(ScriptedModel::new(script))
            .store(FileStore::open(directory.path()).unwrap());
        agent.with::<Questioning>(asks(&log, &[ACT], json!({}))).build().unwrap()
    };
    let event = AgentEvent::input("go").with_id("e1");
    let instance = build(vec![ScriptItem::call(ACT, json!({ "x": 7 }))]).instance("test").await.unwrap();
    let waits = instance.run(event.clone()).await.unwrap().waits().to_vec();
    assert_eq!(instance.run(event.clone()).await.unwrap().waits(), waits, "no layer runs");
    instance.close().await.unwrap();
    log.take();
    let instance = build(vec![ScriptItem::say("done")]).instance("test").await.unwrap();
    assert_eq!(instance.waits().await.unwrap(), waits);
    assert!(log.take().is_empty());
    assert_eq!(instance.decide([Decision::approve(waits[0].call.clone())]).await.unwrap().text(), "done");
    assert_eq!(log.take(), ["decided true", "act 7"]);
    assert_eq!(instance.run(event).await.unwrap().text(), "done", "the event is answered");
    instance.close().await.unwrap();
}

#[both_linkages]
#[covers("ASK-01")]
async fn other_inputs_wait_or_reject() {
    let old = AgentEvent::input("made before the question");
    for gives_way in [false, true] {
        let log = Log::new();
        let config = asks(&log, &[ACT], json!({ "givesWay": gives_way }));
        let instance = opened(calling(&[(ACT, 7), (SET, 8)]).with::<Questioning>(config)).await;
        let waits = instance.run("go").await.unwrap().waits().to_vec();
        let from_agent = of_agent("other");
        for event in [old.clone(), from_agent] {
            let error = instance.run(event).await.unwrap_err();
            assert_eq!(*error.code(), ErrorCode::INSTANCE_SUSPENDED);
            assert_eq!(detail(&error, "waits")[0]["call"], waits[0].call.as_str());
        }
        assert_eq!(*instance.steer(old.clone()).await.unwrap_err().code(), ErrorCode::INSTANCE_SUSPENDED);
        // Its time is that of the question at the earliest.
        let mut new = AgentEvent::input("stop that");
        new.created_at = new.created_at.after(Duration::from_secs(1));
        match (gives_way, instance.run(new).await) {
            (true, Ok(result)) => {
                assert_eq!(result.text(), "done");
                let results = results(&instance).await;
                let is_rejected = |(_, text): &(String, String)| text.contains("E_TOOL_REJECTED: the user said");
                assert!(results.len() == 2 && results.iter().all(is_rejected), "{results:?}");
                assert_eq!(*instance.decide([]).await.unwrap_err().code(), ErrorCode::NOT_WAITING);
            }
            (false, Err(error)) => assert_eq!(*error.code(), ErrorCode::INSTANCE_SUSPENDED),
            (_, outcome) => panic!("{outcome:?}"),
        }
        assert!(ran(&log.take()).is_empty());
        instance.close().await.unwrap();
    }
}

/// The calls are rejected once: while the conversation is open, and when it is opened later.
#[both_linkages(start_paused = true)]
#[covers("ASK-01")]
async fn a_question_expires() {
    let log = Log::new();
    let agent = calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[ACT], json!({ "expiresMs": 60_000 })));
    let agent = agent.store(Arc::new(MemoryStore::default())).build().unwrap();
    let mut told = agent.subscribe_turns();
    let instance = agent.instance("test").await.unwrap();
    let waits = instance.run("go").await.unwrap().waits().to_vec();
    let expires = waits[0].expires.unwrap();
    assert_eq!(expires.since(waits[0].since), Duration::from_secs(60));
    // The clock of the runtime runs on its own when nothing else does.
    let Some(BackgroundUpdate::Ended(turn)) = told.next().await else { panic!("no turn") };
    assert_eq!(turn.outcome.as_ref().unwrap().text(), "done");
    let results = results(&instance).await;
    assert!(results[0].1.contains("E_TOOL_REJECTED: nobody decided within 1m"), "{results:?}");
    let error = instance.decide([Decision::approve(waits[0].call.clone())]).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::NOT_WAITING);
    assert!(ran(&log.take()).is_empty());
    instance.close().await.unwrap();
}

/// Two decide at the same time: one is taken, and the other is told.
#[both_linkages]
#[covers("ASK-02")]
async fn the_first_decision_counts() {
    let log = Log::new();
    let agent = calling(&[(ACT, 7), (ACT, 8)]).with::<Questioning>(asks(&log, &[ACT], json!({})));
    let instance = opened(agent).await;
    let waits = instance.run("go").await.unwrap().waits().to_vec();
    let decide = |decision: Decision| instance.decide([decision]);
    let (yes, no) = (Decision::approve(waits[0].call.clone()), Decision::reject(waits[0].call.clone(), "no"));
    let (one, other) = tokio::join!(decide(yes.clone()), decide(no.clone()));
    let outcomes: Vec<Result<TurnResult>> = vec![one, other];
    let taken: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    assert!(taken.len() == 1 && *taken[0].code() == ErrorCode::DECISION_TAKEN, "{taken:?}");
    let first: Decision = serde_json::from_value(detail(taken[0], "decision")).unwrap();
    assert!(matches!(first.verdict, Verdict::Accept { .. }));
    // All of them or none.
    let both = [Decision::approve(waits[1].call.clone()), yes];
    assert_eq!(*instance.decide(both).await.unwrap_err().code(), ErrorCode::DECISION_TAKEN);
    assert_eq!(ids(&instance.waits().await.unwrap()), ids(&waits[1..]));
    instance.decide([Decision::reject(waits[1].call.clone(), "no")]).await.unwrap();
    assert_eq!(ran(&log.take()), ["act 7"]);
    instance.close().await.unwrap();
}

/// Each question of a call is decided by itself, and an edit is shown to those that had decided before.
#[both_linkages]
#[covers("ASK-01", "ASK-03")]
async fn a_call_with_several_questions() {
    let log = Log::new();
    let agent = calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[ACT], json!({})));
    let instance = opened(agent.with::<QuestioningAgain>(asks(&log, &[ACT], json!({})))).await;
    let wait = instance.run("go").await.unwrap().waits()[0].clone();
    assert_eq!(wait.questions.len(), 3);
    let unnamed = instance.decide([Decision::approve(wait.call.clone())]).await.unwrap_err();
    assert_eq!(*unnamed.code(), ErrorCode::DECISION_INVALID);
    let [first, second, third] = <[Decision; 3]>::try_from(approve(&wait)).unwrap();
    assert_eq!(instance.decide([first.clone(), second]).await.unwrap().finish_reason(), FinishReason::Suspended);
    let result = instance.decide([third.with_args(args(5))]).await.unwrap();
    let again = &result.waits()[0];
    assert!(again.again && again.args == args(5), "{again:?}");
    assert!(ran(&log.take()).is_empty(), "two of them have seen something else");
    assert_eq!(again.questions.len(), 2);
    assert_eq!(instance.decide(approve(again)).await.unwrap().text(), "done");
    assert_eq!(ran(&log.take()), ["act 5"]);
    instance.close().await.unwrap();
}

/// A turn that waits is closed, cancelled, or taken back: nothing runs.
#[both_linkages]
#[covers("ASK-01", "BACK-01", "PAIR-01")]
async fn a_turn_that_waits_is_given_up() {
    for how in ["abandon", "cancel", "undo"] {
        let log = Log::new();
        let instance = opened(calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[ACT], json!({})))).await;
        let event = AgentEvent::input("go").with_id("e1");
        let wait = instance.run(event.clone()).await.unwrap().waits()[0].clone();
        match how {
            "abandon" => instance.abandon().await.unwrap(),
            "cancel" => assert!(instance.cancel(&event.id).await.unwrap()),
            _ => drop(instance.undo().await.unwrap()),
        }
        assert_eq!(*instance.decide([Decision::approve(wait.call)]).await.unwrap_err().code(), ErrorCode::NOT_WAITING);
        assert!(ran(&log.take()).is_empty(), "{how}");
        assert_eq!(results(&instance).await.len(), usize::from(how != "undo"), "{how}");
        assert_eq!(instance.run("next").await.unwrap().text(), "done", "{how}");
        instance.close().await.unwrap();
    }
}

/// An agent that asks another one which waits gets an error at once, with what waits.
#[both_linkages]
#[covers("ASK-01")]
async fn a_request_to_an_agent_that_waits_has_an_error() {
    let log = Log::new();
    let router = LocalRouter::new();
    let clerk = calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[ACT], json!({}))).build().unwrap();
    router.add(&clerk);
    let call = AgentCall::new("assistant".parse().unwrap(), "test".parse().unwrap(), of_agent("boss"));
    let error = router.request(call).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::AGENT_SUSPENDED);
    assert_eq!(detail(&error, "waits")[0]["tool"], ACT);
    let instance = clerk.instance("test").await.unwrap();
    let wait = instance.waits().await.unwrap()[0].clone();
    assert_eq!(instance.decide([Decision::approve(wait.call)]).await.unwrap().text(), "done");
    instance.close().await.unwrap();
    router.close().await.unwrap();
}

/// A reload takes the extension that has asked away: nobody is asked, and nothing runs.
#[both_linkages]
#[covers("ASK-01")]
async fn a_reload_takes_what_has_asked_away() {
    let log = Log::new();
    let build = |asks_again: bool| {
        let calls = if asks_again { &[(ACT, 7)][..] } else { &[] };
        let agent = calling(calls).with::<Questioning>(asks(&log, &[], json!({})));
        if asks_again { agent.with::<QuestioningAgain>(asks(&log, &[ACT], json!({}))) } else { agent }
    };
    let agent = build(true).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let wait = instance.run("go").await.unwrap().waits()[0].clone();
    agent.reload(&build(false).build().unwrap()).await.unwrap();
    let result = instance.decide(approve(&wait)).await.unwrap();
    assert_eq!(result.finish_reason(), FinishReason::TextResponse);
    let results = results(&instance).await;
    assert!(results[0].1.contains("E_TOOL_REJECTED"), "{results:?}");
    assert!(ran(&log.take()).is_empty());
    instance.close().await.unwrap();
}

/// A question that no schema is, an extension that asks after `next`, and values that are too deep.
#[both_linkages]
#[covers("ASK-02", "DEPTH-01")]
async fn decisions_that_are_too_deep_are_refused() {
    let log = Log::new();
    let instance = opened(calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[ACT], json!({})))).await;
    let wait = instance.run("go").await.unwrap().waits()[0].clone();
    let deep = (0..2_000).fold(json!(1), |value, _| Value::Array(vec![value]));
    let error = instance.decide([Decision::new(wait.call.clone(), deep.clone())]).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::VALUE_DEPTH);
    let args = Map::from_iter([("x".to_owned(), deep)]);
    let error = instance.decide([Decision::approve(wait.call.clone()).with_args(args)]).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::VALUE_DEPTH);
    instance.decide([Decision::reject(wait.call, "no")]).await.unwrap();
    instance.close().await.unwrap();
}

/// A reload changes the schema of the tool, or takes the tool away: nobody is asked again, nothing runs, and the model
/// reads why.
#[both_linkages]
#[covers("ASK-01", "ASK-03")]
async fn a_reload_takes_the_tool_away() {
    let log = Log::new();
    let asker = asks(&log, &[ACT], json!({}));
    let agent = calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[], json!({})));
    let agent = agent.with::<QuestioningAgain>(asker.clone()).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let wait = instance.run("go").await.unwrap().waits()[0].clone();
    let without = calling(&[]).with::<QuestioningAgain>(asker).build().unwrap();
    agent.reload(&without).await.unwrap();
    assert_eq!(instance.decide(approve(&wait)).await.unwrap().text(), "done");
    let results = results(&instance).await;
    assert!(results[0].1.contains("E_TOOL_NOT_IN_CATALOG"), "{results:?}");
    assert!(ran(&log.take()).is_empty());
    instance.close().await.unwrap();
}

/// A layer that asks about calls, and has a timer whose state outlives the wait.
#[both_linkages]
#[covers("ASK-01", "RESUME-01")]
async fn a_turn_that_waits_is_exported_and_decided_elsewhere() {
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let log = Log::new();
    let build = |directory: &TempDir, script: Vec<ScriptItem>| {
        let store = FileStore::open(directory.path()).unwrap();
        let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).store(store);
        agent.with::<Questioning>(asks(&log, &[ACT], json!({}))).build().unwrap()
    };
    let instance = build(&here, vec![ScriptItem::call(ACT, json!({ "x": 7 }))]).instance("test").await.unwrap();
    let waits = instance.run("go").await.unwrap().waits().to_vec();
    instance.close().await.unwrap();
    let id = InstanceId { agent: "assistant".parse().unwrap(), key: "test".parse().unwrap() };
    let mut exported = Vec::new();
    FileStore::open(here.path()).unwrap().export(&id, &mut exported).unwrap();
    FileStore::open(there.path()).unwrap().import(&mut &*exported, None).unwrap();
    let instance = build(&there, vec![ScriptItem::say("done")]).instance("test").await.unwrap();
    assert_eq!(instance.waits().await.unwrap(), waits);
    assert_eq!(instance.decide([Decision::approve(waits[0].call.clone())]).await.unwrap().text(), "done");
    assert_eq!(ran(&log.take()), ["act 7"]);
    instance.close().await.unwrap();
}

/// The store is interrupted at each write of a turn that waits: what was asked is asked again, or is decided and goes on,
/// and no call runs without its decision or twice.
#[both_linkages]
#[covers("ASK-01", "ASK-02", "RESUME-01", "PAIR-01")]
async fn a_store_that_is_interrupted_at_each_write_lets_nothing_run_undecided() {
    let writes = interrupted(None, GoesOn::InTheSameProcess).await;
    assert!(writes >= 8, "{writes}");
    for at in 1..=writes {
        for how in [Break::Before, Break::After, Break::Away, Break::AwayAfter] {
            interrupted(Some((at, how)), GoesOn::InTheSameProcess).await;
            interrupted(Some((at, how)), GoesOn::AfterANewOpening).await;
        }
        interrupted(Some((at, Break::Lost)), GoesOn::AfterANewOpening).await;
    }
}

/// Returns how many writes there were.
async fn interrupted(at: Option<(usize, Break)>, goes_on: GoesOn) -> usize {
    let what = format!("{at:?} {goes_on:?}");
    let (log, plan) = (Log::new(), Plan::new(at));
    let store = Breaking::new(MemoryStore::new(), Arc::clone(&plan));
    // Asked again, the model answers the same.
    let calls = [(SET, 6), (ACT, 7), (SET, 8)].map(|(tool, x)| (tool, json!({ "x": x })));
    let script = [ScriptItem::calls(calls).when("^go").unwrap().repeat(), ScriptItem::say("done").repeat()];
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).store(store);
    let agent = agent.with::<Questioning>(asks(&log, &[ACT], json!({}))).build().unwrap();
    let event = AgentEvent::input("go").with_id("e1");
    let mut lines = Vec::new();
    let decided = goondan_breaking::run_decided(&agent, &event, &plan, goes_on, |wait| {
        lines.extend(log.take());
        assert!(!ran(&lines).contains(&"act 7"), "{what}: it ran undecided");
        Decision::approve(wait.call.clone())
    });
    let (instance, result) = decided.await.unwrap();
    lines.extend(log.take());
    let acts = ran(&lines).into_iter().filter(|line| *line == "act 7").count();
    let results = results(&instance).await;
    assert_eq!(results.len(), 3, "{what}: {results:?}");
    match results[1].1.as_str() {
        "7" => assert_eq!(acts, 1, "{what}"),
        text => assert!(acts <= 1 && text.contains("E_TOOL_OUTCOME_UNKNOWN"), "{what}: {text}"),
    }
    assert_eq!(result.finish_reason(), FinishReason::TextResponse, "{what}");
    close(instance, &plan).await.unwrap();
    plan.writes()
}

/// `request_later` gets the answer once a person has decided; nobody waits for it meanwhile.
#[both_linkages]
#[covers("ASK-01", "AGENTS-03")]
async fn a_later_answer_is_the_final_one() {
    let log = Log::new();
    let router = LocalRouter::new();
    let clerk = calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[ACT], json!({}))).build().unwrap();
    router.add(&clerk);
    let config = json!({ "log": log, "target": "assistant", "from": "later" });
    let boss = Agent::builder("boss").model(ScriptedModel::new([ScriptItem::say("asked").repeat()]));
    let boss = boss.with::<Asking>(config).router(router.clone()).build().unwrap();
    let instance = boss.instance("test").await.unwrap();
    let mut turns = clerk.subscribe_turns();
    assert_eq!(instance.run("ask the clerk").await.unwrap().text(), "asked");

    let desk = clerk.instance("test").await.unwrap();
    while desk.waits().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    // A turn that waits is not pending.
    while turns.next_pending().await.is_some() {}
    let wait = desk.waits().await.unwrap().remove(0);
    desk.decide([Decision::approve(wait.call)]).await.unwrap();
    loop {
        instance.run("and?").await.unwrap();
        let messages = instance.messages().await.unwrap();
        if messages.iter().any(|message| message.text() == "Answer of the agent `assistant`: done") {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(ran(&log.take()), ["act 7"]);
    for handle in [instance, desk] {
        handle.close().await.unwrap();
    }
    router.close().await.unwrap();
}

/// So does a delegation; one whose turn is given up gets that.
#[both_linkages]
#[covers("ASK-01", "WAKE-01")]
async fn a_delegation_has_the_final_answer() {
    for is_approved in [true, false] {
        let log = Log::new();
        let agent = calling(&[(ACT, 7)]).with::<Questioning>(asks(&log, &[ACT], json!({}))).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        let mut results = instance.events().subscribe(AgentDelegationResult::NAME).unwrap();
        let delegate = AgentDelegate::new("assistant".parse().unwrap(), "go");
        instance.events().delegate(delegate).await.unwrap();
        while instance.waits().await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let wait = instance.waits().await.unwrap().remove(0);
        let expected = match is_approved {
            true => {
                instance.decide([Decision::approve(wait.call)]).await.unwrap();
                (Some(json!("done")), None)
            }
            false => {
                instance.abandon().await.unwrap();
                (None, Some(ErrorCode::TURN_INTERRUPTED))
            }
        };
        let result: AgentDelegationResult = results.next().await.unwrap().payload().unwrap();
        assert_eq!((result.result, result.error_code), expected);
        instance.close().await.unwrap();
    }
}

/// State that changes while a turn waits counts at once, and is there after the decision.
#[both_linkages]
#[covers("ASK-01", "D-18")]
async fn state_that_changes_meanwhile_is_stored() {
    let directory = TempDir::new().unwrap();
    let log = Log::new();
    let build = |script: Vec<ScriptItem>| {
        let agent = Agent::builder("assistant").model(ScriptedModel::new(script));
        let agent = agent.store(FileStore::open(directory.path()).unwrap());
        agent.with::<Questioning>(asks(&log, &[ACT], json!({}))).build().unwrap()
    };
    let noted = async |instance: &Instance| instance.states().await.unwrap().into_values().next();
    let instance = build(vec![ScriptItem::call(ACT, json!({ "x": 7 }))]).instance("test").await.unwrap();
    let wait = instance.run("go").await.unwrap().waits()[0].clone();
    instance.events().emit("questioning.note", ("while it waits",)).await.unwrap();
    while noted(&instance).await.is_none() {
        tokio::task::yield_now().await;
    }
    instance.close().await.unwrap();
    let instance = build(vec![ScriptItem::say("done")]).instance("test").await.unwrap();
    assert_eq!(noted(&instance).await, Some(json!("while it waits")));
    assert_eq!(instance.decide([Decision::approve(wait.call)]).await.unwrap().text(), "done");
    assert_eq!(noted(&instance).await, Some(json!("while it waits")));
    instance.close().await.unwrap();
}

/// A year later, another process with a bundle that was reloaded takes the decision.
#[both_linkages(start_paused = true)]
#[covers("ASK-01", "ASK-02")]
async fn a_turn_waits_for_a_year_over_a_reload() {
    let store = Arc::new(MemoryStore::new());
    let log = Log::new();
    let build = |script: Vec<ScriptItem>| {
        let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).store(Arc::clone(&store));
        agent.with::<Questioning>(asks(&log, &[ACT], json!({}))).build().unwrap()
    };
    let instance = build(vec![ScriptItem::call(ACT, json!({ "x": 7 }))]).instance("test").await.unwrap();
    let wait = instance.run("go").await.unwrap().waits()[0].clone();
    instance.close().await.unwrap();
    tokio::time::advance(Duration::from_secs(365 * 86_400)).await;
    let agent = build(Vec::new());
    let instance = agent.instance("test").await.unwrap();
    agent.reload(&build(vec![ScriptItem::say("done")])).await.unwrap();
    assert_eq!(instance.waits().await.unwrap()[0], wait);
    assert_eq!(instance.decide([Decision::approve(wait.call)]).await.unwrap().text(), "done");
    assert_eq!(ran(&log.take()), ["act 7"]);
    instance.close().await.unwrap();
}
