//! FAIL-01: what a failure of an extension means, by `onError`, and that guards never fail open.

use std::sync::Arc;

use conformance_extensions::next::{Impatient, Panicking, Stashing};
use conformance_extensions::skip::{Failing, Warden, Within};
use goondan::agent::AgentBuilder;
use goondan::event::RuntimeEvent;
use goondan::middleware::{LayerInfo, MiddlewareKind, OnError};
use goondan::model::ScriptItem;
use goondan::testing::{Chat, time};
use goondan::{Agent, ErrorCode, Instance, Result, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, SilentModel, agent, one_turn};

const KINDS: [&str; 3] = ["turn", "step", "toolCall"];

/// What runs inside of the failing layers in a turn with a tool call, each once.
const INSIDE: [&str; 5] = ["turn", "step", "toolCall", "handler", "step"];

fn script() -> [ScriptItem; 2] {
    [ScriptItem::call("innermost__note", json!({})), ScriptItem::say("done")]
}

/// Adds an extension that fails as the words say, with `Within` inside of it.
fn failing(agent: AgentBuilder, [kind, when, how]: [&str; 3], log: &Log, on_error: OnError) -> AgentBuilder {
    let config = json!({ "kind": kind, "when": when, "how": how });
    agent.with::<Failing>(config).with::<Within>(log.config()).on_error("brittle", on_error)
}

/// Returns what `extension.skipped` reported.
fn skipped(chat: &Chat) -> Vec<(String, bool, String)> {
    let events = chat.events("extension.skipped").into_iter().map(|event| event.payload::<RuntimeEvent>().unwrap());
    let told = events.map(|event| match event {
        RuntimeEvent::ExtensionSkipped { extension_name: extension, part, after_next, error_code, .. } => {
            assert_eq!(extension, "brittle");
            (part, after_next, error_code.to_string())
        }
        other => panic!("{other:?}"),
    });
    told.collect()
}

#[both_linkages]
#[covers("FAIL-01")]
async fn a_failing_layer_is_skipped_as_if_it_were_not_there() {
    time::pause();
    for kind in KINDS {
        for (when, after_next) in [("before", false), ("after", true)] {
            for (how, code) in [("error", "E_BROKEN"), ("panic", "E_EXT_PANIC"), ("hang", "E_EXT_RUNTIME")] {
                let case = [kind, when, how];
                let log = Log::new();
                let chat = Chat::builder().agent(|agent| failing(agent, case, &log, OnError::Skip));
                let chat = chat.script(script()).start().await.unwrap();
                let turn = chat.say("hello").await.unwrap_or_else(|error| panic!("{case:?}: {error:?}"));
                assert_eq!((turn.text().as_ref(), turn.steps()), ("done", 2), "{case:?}");
                assert_eq!(log.take(), INSIDE, "{case:?}");
                assert!(chat.transcript().await.contains(&"tool: noted".to_owned()), "{:?}", chat.transcript().await);
                // Once for each run of the layer, and each time one line in the log.
                let function = if kind == "toolCall" { "call" } else { kind };
                let told = (format!("{kind} middleware `{function}`"), after_next, code.to_owned());
                let runs = if kind == "step" { 2 } else { 1 };
                assert_eq!(skipped(&chat), vec![told; runs], "{case:?}");
                let lines = chat.logs();
                let lines: Vec<_> = lines.iter().filter(|line| line.text.contains("is skipped")).collect();
                assert_eq!(lines.len(), runs, "{case:?}: {lines:?}");
                assert!(lines.iter().all(|line| line.extension.as_deref() == Some("brittle")), "{lines:?}");
            }
        }
    }
}

#[both_linkages]
#[covers("FAIL-01")]
async fn without_skip_the_same_failures_abort() {
    for when in ["before", "after"] {
        for (how, code) in [("error", "E_BROKEN"), ("panic", "E_EXT_PANIC")] {
            for kind in KINDS {
                let log = Log::new();
                let chat = Chat::builder().agent(|agent| failing(agent, [kind, when, how], &log, OnError::Abort));
                let chat = chat.script(script()).start().await.unwrap();
                let outcome = chat.say("hello").await;
                assert_eq!(skipped(&chat), []);
                if kind == "toolCall" {
                    // The model is told.
                    let transcript = chat.transcript().await;
                    assert!(
                        transcript.iter().any(|line| line.starts_with("tool: ") && line.contains(code)),
                        "{transcript:?}"
                    );
                    assert_eq!(outcome.unwrap().text(), "done");
                } else {
                    assert_eq!(outcome.unwrap_err().code(), code, "{kind} {when} {how}");
                }
            }
        }
    }
}

#[both_linkages]
async fn what_a_skipped_layer_has_emitted_stays() {
    let log = Log::new();
    let chat = Chat::builder().agent(|agent| failing(agent, ["turn", "before", "error"], &log, OnError::Skip));
    let chat = chat.script(script()).start().await.unwrap();
    chat.say("hello").await.unwrap();
    assert!(chat.transcript().await.contains(&"system: emitted".to_owned()));
}

#[both_linkages]
#[covers("FAIL-01")]
async fn errors_from_inside_are_never_skipped() {
    // The layer passes the error on, or fails on it in its own way.
    for (when, code) in [("after", "E_MODEL"), ("failed", "E_BROKEN")] {
        let log = Log::new();
        let agent = agent([ScriptItem::fail("overloaded", false)]);
        let error = one_turn(failing(agent, ["turn", when, "error"], &log, OnError::Skip)).await.unwrap_err();
        assert_eq!(error.code(), code);
        assert_eq!(log.take(), ["turn", "step"]);
    }
    // A panic of another extension inside is that extension's.
    let log = Log::new();
    let agent = failing(agent([ScriptItem::say("hi")]), ["turn", "after", "error"], &log, OnError::Skip);
    let error = one_turn(agent.with::<Panicking>(json!({ "place": "turn" }))).await.unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_PANIC, "panicking"));
}

#[both_linkages]
async fn a_layer_that_dropped_next_has_no_result_to_go_on_with() {
    let log = Log::new();
    let agent = Agent::builder("assistant").model(SilentModel(Arc::default()));
    let error = one_turn(failing(agent, ["turn", "dropped", "error"], &log, OnError::Skip)).await.unwrap_err();
    assert_eq!((error.code().to_string().as_str(), error.extension().unwrap().as_str()), ("E_BROKEN", "brittle"));
    assert_eq!(log.take(), ["turn", "step"]);
    // One that was dropped before it started has not run: the rest of the chain runs.
    let agent = self::agent([ScriptItem::say("hi")]).with::<Impatient>(json!({})).on_error("impatient", OnError::Skip);
    assert_eq!(one_turn(agent).await.unwrap().text(), "hi");
}

#[both_linkages]
#[covers("FAIL-01", "NEXT-01")]
async fn a_result_of_another_run_is_a_failure_too() {
    let agent = agent([ScriptItem::say("one"), ScriptItem::say("two")]).with::<Stashing>(json!({}));
    // Its first run asks for another one, which is no failure.
    let turn = one_turn(agent.on_error("stashing", OnError::Skip)).await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps()), ("two", 2));
}

#[both_linkages]
async fn a_request_to_run_again_is_no_failure() {
    let log = Log::new();
    let chat = Chat::builder().agent(|agent| failing(agent, ["step", "before", "retry"], &log, OnError::Skip));
    let chat = chat.script(script()).start().await.unwrap();
    assert_eq!(chat.say("hello").await.unwrap().text(), "done");
    assert_eq!(skipped(&chat), []);
    // A turn is never run again, so there it is a failure like any other.
    let chat = Chat::builder().agent(|agent| failing(agent, ["turn", "before", "retry"], &log, OnError::Skip));
    let chat = chat.script(script()).start().await.unwrap();
    assert_eq!(chat.say("hello").await.unwrap().text(), "done");
    assert_eq!(skipped(&chat).len(), 1);
}

#[both_linkages]
#[covers("FAIL-01", "ENTRY-06")]
async fn an_initializer_or_a_tool_that_fails_is_not_skipped() {
    let log = Log::new();
    let agent = agent([]);
    let error = one_turn(failing(agent, ["", "init", "error"], &log, OnError::Skip)).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_INIT);

    let chat = Chat::builder().agent(|agent| failing(agent, ["", "before", "error"], &log, OnError::Skip));
    let result = chat.start().await.unwrap().call("brittle__fail", json!({})).await.unwrap();
    assert_eq!(result.error().unwrap().code.as_deref(), Some("E_BROKEN"));
}

#[both_linkages]
#[covers("FAIL-01")]
async fn an_extension_that_guards_always_aborts() {
    let guarded = || agent(script()).with::<Warden>(json!({}));
    let error = guarded().on_error("warden", OnError::Skip).build().unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_GUARD, "warden"));
    assert!(error.suggestion().unwrap().contains("onError: abort"), "{error:?}");

    let log = Log::new();
    let agent = guarded().with::<Within>(log.config()).build().unwrap();
    let turn = agent.instance("test").await.unwrap().run("hello").await.unwrap();
    assert_eq!(turn.text(), "done");
    assert_eq!(log.take(), ["turn", "step", "step"]);
}

#[both_linkages]
async fn a_reload_changes_what_a_failure_means() {
    let log = Log::new();
    let build = |on_error| failing(agent(script()), ["turn", "before", "error"], &log, on_error).build().unwrap();
    let (skips, aborts) = (build(OnError::Skip), build(OnError::Abort));
    let instance = skips.instance("test").await.unwrap();
    assert_eq!(layers(&instance).await, [("brittle", OnError::Skip), ("innermost", OnError::Abort)].map(owned));
    assert_eq!(instance.run("one").await.unwrap().text(), "done");
    skips.reload(&aborts).await.unwrap();
    assert_eq!(instance.run("two").await.unwrap_err().code(), "E_BROKEN");
}

fn owned((extension, on_error): (&str, OnError)) -> (String, OnError) {
    (extension.to_owned(), on_error)
}

async fn layers(instance: &Instance) -> Vec<(String, OnError)> {
    let layers = instance.layers(MiddlewareKind::Turn).await.unwrap();
    layers.into_iter().map(|LayerInfo { extension, on_error, .. }| (extension.to_string(), on_error)).collect()
}

#[test]
fn a_name_that_no_extension_has_is_an_error() -> Result<()> {
    let agent = Agent::builder("assistant").model(goondan::model::ScriptedModel::new([]));
    let error = agent.on_error("loging", OnError::Skip).build().unwrap_err();
    assert_eq!(error.code(), &ErrorCode::CONFIG_REF_NOT_FOUND);
    assert!(error.message().contains("loging"), "{error}");
    assert_eq!(serde_json::to_value(OnError::Skip)?, Value::from("skip"));
    Ok(())
}
