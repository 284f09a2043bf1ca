//! ASK-04: tools whose handlers ask before they act.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use conformance_extensions::asking::{AroundInside, Questioning};
use conformance_extensions::tools_ask::ToolsAsk;
use goondan::agent::AgentBuilder;
use goondan::decision::{AnswerKind, Decision, Verdict, Wait};
use goondan::event::AgentEvent;
use goondan::middleware::FinishReason;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::{FileStore, MemoryStore};
use goondan::{Agent, ErrorCode, Instance, json};
use goondan_breaking::{Break, Breaking, GoesOn, Plan, close};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use crate::asking::results;
use crate::linkage::Extended;
use crate::support::Log;

const SEND: &str = "tools-ask__send";

fn asks(log: &Log, how: &str) -> AgentBuilder {
    let call = ScriptItem::call(SEND, json!({ "how": how })).when("^go").unwrap().repeat();
    let script = [call, ScriptItem::say("done").repeat()];
    Agent::builder("assistant").model(ScriptedModel::new(script)).with::<ToolsAsk>(json!({ "log": log }))
}

async fn opened(agent: AgentBuilder) -> Instance {
    agent.build().unwrap().instance("test").await.unwrap()
}

async fn wait(instance: &Instance) -> Wait {
    let mut waits = instance.waits().await.unwrap();
    assert_eq!(waits.len(), 1, "{waits:?}");
    waits.remove(0)
}

/// Returns the result of the only call.
async fn result(instance: &Instance) -> String {
    results(instance).await.remove(0).1
}

#[both_linkages]
#[covers("ASK-04", "ASK-02")]
async fn a_handler_that_asks_runs_again_with_the_decision() {
    let log = Log::new();
    let instance = opened(asks(&log, "carrier")).await;
    let turn = instance.run("go").await.unwrap();
    assert_eq!(turn.finish_reason(), FinishReason::Suspended);
    let wait = wait(&instance).await;
    assert_eq!(turn.waits(), std::slice::from_ref(&wait));
    assert_eq!((wait.tool.as_str(), wait.presentation.line.as_str()), (SEND, "sends it, carrier"));
    let asked = &wait.questions[0];
    assert!(asked.of_handler && wait.withdrawn);
    assert_eq!((asked.by.extension.as_str(), asked.by.function.as_str()), ("tools-ask", SEND));
    let AnswerKind::Choose(options) = asked.question.kind() else { panic!("{asked:?}") };
    assert_eq!(options.iter().map(|option| &*option.title).collect::<Vec<_>>(), ["Post", "Express"]);
    assert_eq!(log.take(), ["runs"]);

    let error = instance.decide([Decision::new(wait.call.clone(), "by hand")]).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::DECISION_INVALID);
    assert!(log.take().is_empty());
    let turn = instance.decide([Decision::new(wait.call.clone(), "Express")]).await.unwrap();
    assert_eq!(turn.text(), "done");
    assert_eq!(log.take(), ["runs", "sent Express"]);
    assert_eq!(result(&instance).await, "Express");
    let error = instance.decide([Decision::new(wait.call, "Post")]).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::NOT_WAITING);
    instance.close().await.unwrap();
}

#[both_linkages]
#[covers("ASK-04")]
async fn a_handler_whose_question_is_rejected_does_not_run_again() {
    let log = Log::new();
    let instance = opened(asks(&log, "carrier")).await;
    instance.run("go").await.unwrap();
    let call = wait(&instance).await.call;
    assert_eq!(instance.decide([Decision::reject(call, "not today")]).await.unwrap().text(), "done");
    assert_eq!(log.take(), ["runs"]);
    assert!(result(&instance).await.contains("E_TOOL_REJECTED: not today"));
    instance.close().await.unwrap();
}

/// Each question is decided once, whatever the handler asks after it; also over new openings.
#[both_linkages]
#[covers("ASK-04")]
async fn a_handler_asks_one_question_after_the_other() {
    let (log, directory) = (Log::new(), TempDir::new().unwrap());
    let open = || opened(asks(&log, "both").store(FileStore::open(directory.path()).unwrap()));
    let mut instance = open().await;
    instance.run("go").await.unwrap();
    for value in [json!("Post"), json!({ "street": "Main Street", "number": 7 })] {
        let wait = wait(&instance).await;
        assert_eq!(wait.questions.len(), 1, "{wait:?}");
        instance.close().await.unwrap();
        instance = open().await;
        instance.decide([Decision::new(wait.call, value)]).await.unwrap();
    }
    assert_eq!(log.take(), ["runs", "runs", "runs", "sent Post to Main Street 7"]);
    assert_eq!(result(&instance).await, "Post to Main Street 7");
    instance.close().await.unwrap();
}

#[both_linkages]
#[covers("ASK-04")]
async fn a_handler_that_asks_what_it_must_not_ask_fails() {
    let log = Log::new();
    for (how, rounds, problem) in [
        ("again", 1, "asked again what is decided"),
        ("without end", 32, "asked 32 times"),
        ("badly", 0, "E_SCHEMA_INVALID"),
    ] {
        let instance = opened(asks(&log, how)).await;
        let mut turn = instance.run("go").await.unwrap();
        let mut asked = 0;
        while turn.finish_reason() == FinishReason::Suspended {
            asked += 1;
            let value = if how == "again" { json!("Post") } else { json!(asked) };
            turn = instance.decide([Decision::new(turn.waits()[0].call.clone(), value)]).await.unwrap();
        }
        let result = result(&instance).await;
        assert!(asked == rounds && result.contains(problem), "{how}: asked {asked} times: {result}");
        instance.close().await.unwrap();
    }
    let script = [ScriptItem::call("tools-ask__secretly", json!({})), ScriptItem::say("done")];
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script));
    let instance = opened(agent.with::<ToolsAsk>(json!({ "log": log }))).await;
    assert_eq!(instance.run("go").await.unwrap().text(), "done");
    assert!(result(&instance).await.contains("E_TOOL_ASKS"), "{}", result(&instance).await);
    instance.close().await.unwrap();
}

/// The calls behind it wait, and a layer around it asks before the handler does.
#[both_linkages]
#[covers("ASK-04", "ASK-01")]
async fn a_layer_asks_before_the_handler() {
    let log = Log::new();
    let calls = [(SEND, json!({ "how": "carrier" })), ("questioning__act", json!({ "x": 7 }))];
    let script = [ScriptItem::calls(calls), ScriptItem::say("done")];
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).with::<ToolsAsk>(json!({ "log": log }));
    let agent = agent.with::<Questioning>(json!({ "log": log, "asks": [SEND] }));
    let instance = opened(agent.with::<AroundInside>(json!({ "log": log, "how": "" }))).await;
    instance.run("go").await.unwrap();
    let by_layer = wait(&instance).await;
    assert!(!by_layer.questions[0].of_handler && !by_layer.withdrawn);
    log.take();
    instance.decide([Decision::approve(by_layer.call.clone())]).await.unwrap();
    assert_eq!(log.take(), ["decided true", "runs", &format!("waits {}", by_layer.call)]);
    let by_handler = wait(&instance).await;
    assert!(by_handler.questions[0].of_handler, "{by_handler:?}");
    let turn = instance.decide([Decision::new(by_handler.call, "Post")]).await.unwrap();
    assert_eq!(turn.text(), "done");
    assert_eq!(log.take(), ["decided true", "runs", "sent Post", "act 7"]);
    instance.close().await.unwrap();
}

/// Edited arguments are those of the handler.
#[both_linkages]
#[covers("ASK-04", "ASK-03")]
async fn edited_arguments_reach_the_handler() {
    let log = Log::new();
    let instance = opened(asks(&log, "both")).await;
    instance.run("go").await.unwrap();
    let wait = wait(&instance).await;
    let args = json!({ "how": "carrier" }).as_object().cloned().unwrap();
    let decision = Decision::new(wait.call.clone(), "Post").of(wait.questions[0].by.clone()).with_args(args);
    let turn = instance.decide([decision]).await.unwrap();
    // Its question has no name, and is another one.
    assert_eq!(turn.finish_reason(), FinishReason::Suspended);
    let turn = instance.decide([Decision::new(wait.call, "Express")]).await.unwrap();
    assert_eq!(turn.text(), "done");
    assert_eq!(result(&instance).await, "Express");
    instance.close().await.unwrap();
}

/// A secret is stored in no file, and asked for again if the process has ended before it was used.
#[both_linkages]
#[covers("ASK-04")]
async fn a_secret_is_stored_nowhere() {
    const CODE: &str = "open-sesame-4711";
    for how in ["secret", "secret first"] {
        let (log, directory) = (Log::new(), TempDir::new().unwrap());
        let open = || opened(asks(&log, how).store(FileStore::open(directory.path()).unwrap()));
        let mut instance = open().await;
        instance.run("go").await.unwrap();
        let wait_of = wait(&instance).await;
        assert_eq!(wait_of.questions[0].question.kind(), AnswerKind::Secret);
        let code = || Decision::new(wait_of.call.clone(), CODE);
        instance.decide([code()]).await.unwrap();
        if how == "secret first" {
            let error = instance.decide([code().of(wait_of.questions[0].by.clone())]).await.unwrap_err();
            assert_eq!(*error.code(), ErrorCode::DECISION_TAKEN);
            assert!(!format!("{error:?}").contains(CODE), "{error:?}");
            instance.close().await.unwrap();
            assert_in_no_file(directory.path(), CODE);
            instance = open().await;
            let asked = wait(&instance).await.questions;
            assert_eq!(asked.len(), 2, "{asked:?}");
            let sure = asked.iter().find(|asked| asked.by.name.as_deref() == Some("sure")).unwrap();
            instance.decide([Decision::approve(wait_of.call.clone()).of(sure.by.clone())]).await.unwrap();
            assert_eq!(wait(&instance).await.questions.len(), 1);
            instance.decide([code()]).await.unwrap();
        }
        assert_eq!(result(&instance).await, format!("{} characters", CODE.len()), "{how}");
        let withheld = Decision::approve("call").withheld();
        assert_eq!(withheld.verdict, Verdict::Withheld);
        assert!(instance.decide([withheld]).await.is_err());
        instance.close().await.unwrap();
        assert_in_no_file(directory.path(), CODE);
    }
}

fn assert_in_no_file(directory: &Path, text: &str) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_in_no_file(&path, text);
        } else {
            let content = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!content.contains(text), "{}: {content}", path.display());
        }
    }
}

/// Interrupted at any write, before it or after it, the handler acts at most once, and only after the decision.
#[both_linkages]
#[covers("ASK-04", "ASK-02", "RESUME-01", "PAIR-01")]
async fn a_store_that_is_interrupted_lets_the_handler_act_once() {
    let writes = interrupted(None, GoesOn::InTheSameProcess).await;
    assert!(writes >= 6, "{writes}");
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
    let call = ScriptItem::call(SEND, json!({ "how": "carrier" })).when("^go").unwrap().repeat();
    let script = [call, ScriptItem::say("done").repeat()];
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).store(store);
    let agent = agent.with::<ToolsAsk>(json!({ "log": log })).build().unwrap();
    let event = AgentEvent::input("go").with_id("e1");
    let mut lines = Vec::new();
    let decided = goondan_breaking::run_decided(&agent, &event, &plan, goes_on, |wait| {
        lines.extend(log.take());
        assert!(!lines.iter().any(|line| line.starts_with("sent")), "{what}: it acted undecided");
        Decision::new(wait.call.clone(), "Post")
    });
    let (instance, turn) = decided.await.unwrap();
    lines.extend(log.take());
    let acts = lines.iter().filter(|line| *line == "sent Post").count();
    match result(&instance).await.as_str() {
        "Post" => {
            assert_eq!(acts, 1, "{what}");
            assert!(instance.states().await.unwrap()["tools-ask"].as_u64().unwrap() >= 2, "{what}");
        }
        text => assert!(acts <= 1 && text.contains("E_TOOL_OUTCOME_UNKNOWN"), "{what}: {text}"),
    }
    assert_eq!(turn.finish_reason(), FinishReason::TextResponse, "{what}");
    close(instance, &plan).await.unwrap();
    plan.writes()
}
