//! PREP-01: answers that extensions prepare are taken instead of asking the model or running a handler.

use std::sync::Arc;

use conformance_extensions::prepared::Preparing;
use goondan::agent::{AgentBuilder, TurnUpdate};
use goondan::conversation::Message;
use goondan::event::RuntimeEvent;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::name::{AgentName, InstanceKey};
use goondan::store::{FileStore, InstanceId};
use goondan::{Agent, BoxFuture, Result, Value, json};
use goondan_covers::{both_linkages, covers};
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::{Log, agent};

/// What there is to see of one turn.
struct Seen {
    answer: Result<String>,
    log: Vec<String>,
    /// The requests to the model.
    requests: Vec<Value>,
    messages: Vec<Arc<Message>>,
    /// The pieces of answers and the runtime events, one line each.
    updates: Vec<String>,
}

fn by(by: Option<impl std::fmt::Display>) -> String {
    by.map_or("nobody".to_owned(), |by| by.to_string())
}

/// Runs one turn of an agent whose model plays `script`.
async fn run(script: Vec<ScriptItem>, log: &Log, extend: impl FnOnce(AgentBuilder) -> AgentBuilder) -> Seen {
    let dir = tempfile::tempdir().unwrap();
    let requests = dir.path().join("requests.jsonl");
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script).record(&requests));
    let instance = extend(agent).build().unwrap().instance("test").await.unwrap();
    let mut turn = instance.run_stream("hello");
    let mut updates = Vec::new();
    while let Some(update) = turn.next().await {
        updates.push(match update {
            TurnUpdate::Text { text, .. } => format!("text {text}"),
            TurnUpdate::ToolCall { name, .. } => format!("call {name}"),
            TurnUpdate::Event(event) => match Arc::unwrap_or_clone(event) {
                RuntimeEvent::StepCompleted { prepared_by, .. } => format!("step.completed by {}", by(prepared_by)),
                RuntimeEvent::ToolCompleted { prepared_by, .. } => format!("tool.completed by {}", by(prepared_by)),
                event => event.name().to_owned(),
            },
            TurnUpdate::Message(_) | TurnUpdate::Output { .. } => continue,
            other => format!("{other:?}"),
        });
    }
    let answer = turn.finish().await.map(|turn| turn.text().into_owned());
    let requests = std::fs::read_to_string(&requests).unwrap_or_default();
    Seen {
        answer,
        log: log.take(),
        requests: requests.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        messages: instance.messages().await.unwrap(),
        updates,
    }
}

/// Runs one turn with the extension once, and `config` beside its log.
async fn one(script: Vec<ScriptItem>, config: Value) -> Seen {
    let log = Log::new();
    let mut config = config;
    config["log"] = json!(log);
    run(script, &log, |agent| agent.with::<Preparing>(config)).await
}

fn call(id: &str, tool: &str, args: Value) -> Value {
    json!({ "type": "tool-call", "toolCallId": id, "toolName": tool, "input": args })
}

fn act() -> ScriptItem {
    ScriptItem::call("preparing__act", json!({ "text": "it" }))
}

#[both_linkages]
#[covers("PREP-01")]
async fn a_prepared_answer_passes_the_inner_layers_and_asks_no_model() {
    let log = Log::new();
    let seen = run(vec![], &log, |agent| {
        agent
            .with_named("outer", "preparing", json!({ "log": log, "answers": ["from the outer one"] }))
            .with_named("middle", "preparing", json!({ "log": log, "answers": ["from the middle one"] }))
            .with_named("inner", "preparing", json!({ "log": log }))
    })
    .await;
    assert_eq!(seen.answer.unwrap(), "from the middle one", "the innermost one that prepares");
    let returned = |name| format!("{name}: step prepared by middle, calls [], tokens None");
    assert_eq!(
        seen.log,
        ["outer: step", "middle: step", "inner: step", &returned("inner"), &returned("middle"), &returned("outer")]
    );
    assert_eq!(seen.requests, [Value::Null; 0]);
    let answer = &seen.messages[1];
    assert_eq!((answer.text().as_ref(), &answer.metadata()["preparedBy"]), ("from the middle one", &json!("middle")));
    let expected =
        ["turn.started", "step.started", "text from the middle one", "step.completed by middle", "turn.completed"];
    assert_eq!(seen.updates, expected);
}

#[both_linkages]
#[covers("PREP-01", "DISPATCH-01")]
async fn prepared_tool_calls_pass_the_guards_and_then_the_model_is_asked() {
    let calls = json!([
        { "type": "text", "text": "let me see" },
        call("1", "preparing__act", json!({ "text": "it" })),
        call("1", "preparing__act", json!({ "text": 7 })),
        call("", "no__tool", json!({})),
    ]);
    let seen = one(vec![ScriptItem::say("done")], json!({ "answers": [calls] })).await;
    assert_eq!(seen.answer.unwrap(), "done");
    let own = |line: &str| format!("preparing: {line}");
    let expected = [
        own("step"),
        own("call"),
        "acted: it".to_owned(),
        own("call prepared by nobody, no error"),
        own("call"),
        own("call prepared by nobody, E_TOOL_INVALID_ARGS"),
        own("call"),
        own("call prepared by nobody, E_TOOL_NOT_IN_CATALOG"),
        own(r#"step prepared by preparing, calls ["nobody", "nobody", "nobody"], tokens None"#),
        own("step"),
        own("step prepared by nobody, calls [], tokens None"),
    ];
    assert_eq!(seen.log, expected);
    let [request] = &seen.requests[..] else { panic!("{:?}", seen.requests) };
    let sent = request["messages"].as_array().unwrap();
    assert_eq!(sent.len(), 2 + 3, "the calls with their results: {sent:?}");
    let ids: std::collections::BTreeSet<_> =
        (1..4).map(|call| sent[1]["content"][call]["toolCallId"].as_str().unwrap()).collect();
    assert!(ids.len() == 3 && !ids.contains(""), "the ids are made unique: {ids:?}");
}

#[both_linkages]
#[covers("PREP-01")]
async fn a_prepared_reply_starts_no_handler() {
    let log = Log::new();
    let seen = run(vec![act(), ScriptItem::say("done")], &log, |agent| {
        agent
            .with_named("outer", "preparing", json!({ "log": log, "reply": { "value": "no" } }))
            .with_named("middle", "preparing", json!({ "log": log, "reply": { "value": { "n": 1 } } }))
            .with_named("inner", "preparing", json!({ "log": log }))
    })
    .await;
    assert_eq!(seen.answer.unwrap(), "done");
    let of_calls: Vec<_> = seen.log.iter().filter(|line| line.contains(": call") || line.contains("acted")).collect();
    let returned = |name| format!("{name}: call prepared by middle, no error");
    assert_eq!(
        of_calls,
        ["outer: call", "middle: call", "inner: call", &returned("inner"), &returned("middle"), &returned("outer")]
    );
    assert!(seen.log.contains(&r#"outer: step prepared by nobody, calls ["middle"], tokens None"#.to_owned()));
    let expected = [
        "turn.started",
        "step.started",
        "call preparing__act",
        "tool.completed by middle",
        "step.completed by nobody",
        "step.started",
        "text done",
        "step.completed by nobody",
        "turn.completed",
    ];
    assert_eq!(seen.updates, expected, "without `tool.called`");
    let result = &seen.messages[2];
    assert_eq!(result.metadata()["preparedBy"], "middle");
    let output = &seen.requests[1]["messages"][2]["content"][0]["output"];
    assert_eq!(output, &json!({ "type": "json", "value": { "n": 1 } }));
}

#[both_linkages]
#[covers("PREP-01")]
async fn a_prepared_reply_has_the_guards_and_limits_of_other_replies() {
    let output = async |script: ScriptItem, reply: Value| {
        let seen = one(vec![script, ScriptItem::say("done")], json!({ "reply": reply })).await;
        assert_eq!(seen.answer.unwrap(), "done");
        let part = seen.requests[1]["messages"][2]["content"][0].clone();
        let line = seen.log.iter().find(|line| line.contains("call prepared")).cloned().unwrap_or_default();
        assert!(!seen.log.iter().any(|line| line.contains("acted")));
        (part, line.trim_start_matches("preparing: call prepared by ").to_owned())
    };
    let fine = || json!({ "value": "fine" });
    assert_eq!(output(act(), fine()).await.1, "preparing, no error");
    for (item, code) in [
        (ScriptItem::call("preparing__act", json!({ "text": 7 })), "E_TOOL_INVALID_ARGS"),
        (ScriptItem::call("no__tool", json!({})), "E_TOOL_NOT_IN_CATALOG"),
    ] {
        let (part, line) = output(item, fine()).await;
        assert_eq!(line, format!("nobody, {code}"), "{part}");
    }
    let (part, line) = output(act(), json!({ "failed": "it is gone" })).await;
    assert_eq!((&part["isError"], line.as_str()), (&json!(true), "preparing, E_TOOL_FAILED"));
    assert_eq!(
        (&part["output"]["value"][0]["text"], &part["output"]["value"][1]["type"]),
        (&json!("it is gone"), &json!("file"))
    );
    let (part, line) = output(act(), json!("deep")).await;
    assert_eq!(line, "", "`next` has failed");
    assert!(part["output"]["value"].as_str().unwrap().contains("E_VALUE_DEPTH"), "{part}");
}

#[both_linkages]
#[covers("PREP-01")]
async fn an_attempt_starts_without_what_was_prepared_for_the_one_before() {
    let seen = one(vec![ScriptItem::say("asked")], json!({ "answers": ["prepared", "prepared"], "retry": true })).await;
    assert_eq!((seen.answer.unwrap().as_str(), seen.requests.len()), ("asked", 1));
    let log = Log::new();
    let seen = run(vec![act(), ScriptItem::say("done")], &log, |agent| {
        // It prepares in the first attempt, which an outer layer asks to run again.
        agent.with_named("outer", "preparing", json!({ "log": log, "retry": true, "answers": [] })).with_named(
            "inner",
            "preparing",
            json!({ "log": log, "reply": { "value": "prepared" } }),
        )
    })
    .await;
    assert!(seen.log.contains(&"acted: it".to_owned()), "{:?}", seen.log);
}

#[both_linkages]
#[covers("PREP-01")]
async fn an_answer_that_cannot_be_used_fails_the_step_and_names_the_extension() {
    let thought = json!([{ "type": "reasoning", "text": "hm" }, { "type": "text", "text": "yes" }]);
    let result = json!({ "type": "text", "value": "done" });
    let result = json!([{ "type": "tool-result", "toolCallId": "1", "toolName": "a__b", "output": result }]);
    let url = format!("data:image/png;base64,{}", "A".repeat(8 << 20));
    let bad = [
        (json!(""), "E_EXT_ANSWER", "the answer is empty"),
        (json!([]), "E_EXT_ANSWER", "the answer is empty"),
        (json!([call("1", "preparing__act", json!(7))]), "E_EXT_ANSWER", "JSON object"),
        (result, "E_EXT_ANSWER", "the result of a tool call"),
        (thought, "E_MESSAGE_PART", "reasoning"),
        (json!("(deep)"), "E_VALUE_DEPTH", "64 levels"),
        (json!([{ "type": "file", "mediaType": "image/png", "url": url }]), "E_INPUT_FILE", "more than 5 MB"),
    ];
    for (answer, code, text) in bad {
        let seen = one(vec![ScriptItem::say("asked")], json!({ "answers": [answer] })).await;
        let error = seen.answer.unwrap_err();
        assert_eq!(error.code().as_str(), code, "{}", error.report());
        assert!(error.message().contains(text), "{}", error.report());
        assert_eq!(error.extension().unwrap().as_str(), "preparing", "{}", error.report());
        assert_eq!((seen.requests.len(), seen.messages.len()), (0, 1), "no model was asked, and nothing is kept");
    }
}

#[both_linkages]
#[covers("PREP-01")]
async fn a_prepared_answer_is_judged_like_one_of_a_model() {
    // After the results of tools, nothing is an answer.
    let answers = json!([[call("1", "preparing__act", json!({ "text": "it" }))], ""]);
    let seen = one(vec![], json!({ "answers": answers })).await;
    assert_eq!((seen.answer.unwrap().as_str(), seen.messages.len()), ("", 3));
    // What a model has said before may be said again.
    let log = Log::new();
    let thought = json!([{ "type": "reasoning", "text": "hm" }, { "type": "text", "text": "well" }]);
    let said = serde_json::from_value::<Vec<goondan::conversation::Part>>(thought.clone()).unwrap();
    let agent = agent([ScriptItem::content(said)]).with::<Preparing>(json!({ "log": log, "answers": [null] }));
    let agent = agent.build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    let next =
        crate::support::agent([]).with::<Preparing>(json!({ "log": log, "answers": [thought] })).build().unwrap();
    agent.reload(&next).await.unwrap();
    assert_eq!(instance.run("again").await.unwrap().text(), "well");
    assert_eq!(instance.messages().await.unwrap()[3].content(), instance.messages().await.unwrap()[1].content());
}

#[both_linkages]
#[covers("PREP-01")]
async fn after_next_nothing_can_be_prepared() {
    let config = json!({ "answers": ["late", "late"], "reply": { "value": "late" }, "late": true });
    let seen = one(vec![act(), ScriptItem::say("asked")], config).await;
    assert_eq!((seen.answer.unwrap().as_str(), seen.requests.len()), ("asked", 2));
    assert!(seen.log.contains(&"acted: it".to_owned()), "{:?}", seen.log);
    assert!(!seen.log.iter().any(|line| line.contains("prepared by preparing")), "{:?}", seen.log);
}

/// A model that asks for a call, and is silent then.
struct Silent(Arc<Notify>);

impl Model for Silent {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let first = request.messages().count() == 1;
        Box::pin(async move {
            if !first {
                self.0.notify_one();
                std::future::pending::<()>().await;
            }
            let args = json!({ "text": "it" });
            Ok(ModelResponse::tool_calls([goondan::middleware::ToolRequest::new("1".into(), "preparing__act", args)]))
        })
    }
}

#[both_linkages]
#[covers("PREP-01")]
async fn a_prepared_call_is_not_recorded_as_started() {
    for (reply, started) in [(json!({ "value": "prepared" }), false), (Value::Null, true)] {
        let (dir, log, asked) = (tempfile::tempdir().unwrap(), Log::new(), Arc::new(Notify::new()));
        let store = FileStore::open(dir.path()).unwrap();
        let agent = Agent::builder("assistant").model(Silent(Arc::clone(&asked))).store(store.clone());
        let agent = agent.with::<Preparing>(json!({ "log": log, "reply": reply })).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        tokio::select! {
            biased;
            _ = instance.run("hello") => panic!("the model is silent"),
            () = asked.notified() => {}
        }
        let agent = "assistant".parse::<AgentName>().unwrap();
        let id = InstanceId { agent, key: "test".parse::<InstanceKey>().unwrap() };
        let events = std::fs::read_to_string(store.instance_dir(&id).join("messages/events.jsonl")).unwrap();
        assert_eq!(events.contains(r#"{"started""#), started, "{events}");
        assert_eq!(events.contains("preparedBy"), !started, "{events}");
    }
}
