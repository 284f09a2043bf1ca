//! ASK-01: the rules of `approval`, and what a person decides.

use std::fs;
use std::time::Duration;

use crate::linkage::WithPlugin;
use goondan::agent::AgentBuilder;
use goondan::decision::{Decision, Wait};
use goondan::event::AgentEvent;
use goondan::middleware::{FinishReason, OnError, TurnResult};
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::name::ExtensionName;
use goondan::{Agent, ErrorCode, Instance, Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

const REPLACE: &str = "text-transform__replace";

/// An agent whose model calls a tool again and again, with `config` for the rules.
fn agent(calls: usize, config: Value) -> AgentBuilder {
    let call = ScriptItem::call(REPLACE, json!({ "text": "a", "search": "a", "replacement": "A" }));
    let script = (0..calls).flat_map(|_| [call.clone(), ScriptItem::say("done")]);
    let agent = Agent::builder("clerk").model(ScriptedModel::new(script));
    agent.plugin("approval", "approval", config).one_of("basics", "text-transform", json!({}))
}

async fn opened(agent: AgentBuilder) -> Instance {
    agent.build().unwrap().instance("test").await.unwrap()
}

/// Returns what the model has read of the calls, oldest first.
async fn read(instance: &Instance) -> Vec<String> {
    let messages = instance.messages().await.unwrap();
    let of_tools = messages.iter().filter(|message| message.role() == goondan::conversation::Role::Tool);
    of_tools.map(|message| message.content().parts()[0].to_string()).collect()
}

async fn waits(instance: &Instance) -> Vec<Wait> {
    let result = instance.run("go").await.unwrap();
    assert_eq!(result.finish_reason(), FinishReason::Suspended);
    result.waits().to_vec()
}

#[both_linkages]
#[covers("ASK-01")]
async fn always_is_for_the_same_call_in_this_conversation() {
    let instance = opened(agent(3, json!({}))).await;
    let wait = waits(&instance).await.remove(0);
    let asked = &wait.questions[0];
    assert_eq!((asked.by.extension.as_str(), asked.by.function.as_str()), ("approval", "approve"));
    assert_eq!(asked.question.text, format!("Run {REPLACE}?\nAlways: calls with the same arguments."));
    let error = instance.decide([Decision::new(wait.call.clone(), "perhaps")]).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::DECISION_INVALID);
    let always = Decision::new(wait.call, json!({ "always": true }));
    assert_eq!(instance.decide([always]).await.unwrap().text(), "done");
    assert_eq!(instance.run("again").await.unwrap().text(), "done", "nobody is asked");
    let state = &instance.states().await.unwrap()[&ExtensionName::new("approval").unwrap()];
    assert_eq!(state["always"][0]["tool"], REPLACE);
    assert_eq!(read(&instance).await.len(), 2);
    instance.close().await.unwrap();
}

#[both_linkages]
#[covers("ASK-01")]
async fn what_is_decided_is_what_happens() {
    for (decision, expected) in
        [(json!(true), "A"), (json!(false), "E_TOOL_REJECTED"), (json!({ "always": false }), "A")]
    {
        let instance = opened(agent(1, json!({ "otherwise": "ask" }))).await;
        let wait = waits(&instance).await.remove(0);
        assert_eq!(instance.decide([Decision::new(wait.call, decision)]).await.unwrap().text(), "done");
        assert!(read(&instance).await[0].contains(expected), "{:?}", read(&instance).await);
        instance.close().await.unwrap();
    }
}

#[both_linkages]
#[covers("ASK-01")]
async fn a_denied_call_runs_for_nobody() {
    let rule = json!({ "tool": "text-*", "args": { "/replacement": "A*" }, "because": "nobody shouts here" });
    let instance = opened(agent(1, json!({ "deny": [rule], "otherwise": "allow" }))).await;
    assert_eq!(instance.run("go").await.unwrap().text(), "done");
    assert!(read(&instance).await[0].contains("E_TOOL_REJECTED: nobody shouts here"));
    instance.close().await.unwrap();
}

#[both_linkages]
#[covers("ASK-01")]
async fn a_person_who_says_something_else_rejects_if_the_config_says_so() {
    let instance = opened(agent(2, json!({ "onInput": "reject", "expires": "7d", "always": "never" }))).await;
    let wait = waits(&instance).await.remove(0);
    assert_eq!(wait.expires.unwrap().since(wait.since), Duration::from_secs(7 * 86_400));
    assert_eq!(wait.questions[0].question.text, format!("Run {REPLACE}?"));
    let mut event = AgentEvent::input("no, wait");
    event.created_at = event.created_at.after(Duration::from_secs(1));
    assert_eq!(instance.run(event).await.unwrap().text(), "done");
    assert!(read(&instance).await[0].contains("E_TOOL_REJECTED: the user said something else"));
    instance.close().await.unwrap();
}

/// The model can read the rules, and take back what was approved for good.
#[both_linkages]
#[covers("ASK-01")]
async fn what_was_approved_for_good_is_taken_back() {
    let script = [
        ScriptItem::call(REPLACE, json!({ "text": "a", "search": "a", "replacement": "A" })),
        ScriptItem::call("approval__rules", json!({ "forget": 1 })),
        ScriptItem::call("approval__rules", json!({})),
        ScriptItem::say("done"),
    ];
    let config = json!({ "always": "tool", "allow": [{ "tool": "approval__rules" }] });
    let agent = Agent::builder("clerk").model(ScriptedModel::new(script)).plugin("approval", "approval", config);
    let instance = opened(agent.one_of("basics", "text-transform", json!({}))).await;
    let wait = waits(&instance).await.remove(0);
    let always = Decision::new(wait.call, json!({ "always": true }));
    assert_eq!(instance.decide([always]).await.unwrap().text(), "done");
    let listed = read(&instance).await;
    assert!(listed[2].contains(r#""always":[]"#) && listed[2].contains("otherwise ask"), "{listed:?}");
    instance.close().await.unwrap();
}

#[both_linkages]
#[covers("ASK-01", "FAIL-01")]
async fn mistakes_in_the_config_open_nothing() {
    for (config, problem) in [
        (json!({ "expires": "soon" }), "`expires: soon` is no duration"),
        (json!({ "deny": [{}] }), "`deny[0]` says nothing"),
        (json!({ "allow": [{ "args": { "path": "*" } }] }), "`path` in `allow[0].args` is no JSON pointer"),
    ] {
        let error = agent(1, config).build().unwrap().instance("test").await.unwrap_err();
        assert!(error.report().to_string().contains(problem), "{}", error.report());
    }
    let error = agent(1, json!({})).on_error("approval", OnError::Skip).build().unwrap_err();
    assert_eq!(error.code().as_str(), "E_EXT_GUARD");
}

/// What other extensions do beside a call that waits.
#[both_linkages]
#[covers("ASK-01", "PAIR-01")]
async fn other_extensions_around_a_call_that_waits() {
    let beside: [(&'static str, Value); 6] = [
        ("message-window", json!({ "maxMessages": 2 })),
        ("message-compaction", json!({ "maxMessages": 3, "maxCharacters": 100_000, "retainLastMessages": 1 })),
        ("tool-search", json!({})),
        ("tool-output", json!({ "maxCharacters": 1000 })),
        ("retry", json!({})),
        ("plan", json!({})),
    ];
    for (name, config) in beside {
        let call = ScriptItem::call(REPLACE, json!({ "text": "a", "search": "a", "replacement": "A" }));
        let script =
            [ScriptItem::say("one"), ScriptItem::say("two"), call, ScriptItem::say("done"), ScriptItem::say("on")];
        let agent = Agent::builder("clerk").model(ScriptedModel::new(script)).plugin("approval", "approval", json!({}));
        let agent = agent.one_of("basics", "text-transform", json!({})).plugin(name, name, config);
        let instance = opened(agent).await;
        for _ in 0..2 {
            instance.run("hello").await.unwrap();
        }
        let wait = waits(&instance).await.remove(0);
        assert_eq!(instance.decide([Decision::approve(wait.call)]).await.unwrap().text(), "done", "{name}");
        let read = read(&instance).await;
        assert!(read.len() == 1 && read[0].contains(r#""result":"A""#), "{name}: {read:?}");
        assert_eq!(instance.run("and now?").await.unwrap().text(), "on", "{name}");
        instance.close().await.unwrap();
    }
}

/// A person reads the difference that an edit would make. If the file is changed meanwhile, the edit is asked about again.
#[both_linkages]
#[covers("ASK-03")]
async fn the_difference_of_a_file_is_approved() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("a.txt");
    let difference = |result: &TurnResult| result.waits()[0].shown[0].to_string();
    let edit = json!({ "path": "a.txt", "oldText": "two", "newText": "2" });
    let write = json!({ "path": "a.txt", "content": "three\n", "append": true });
    for (tool, args, expected) in [
        ("file-system__edit", edit, "@@ -1,2 +1,2 @@\n one\n-two\n+2\n"),
        ("file-system__write", write, "@@ -1,2 +1,3 @@\n one\n two\n+three\n"),
    ] {
        fs::write(&file, "one\ntwo\n").unwrap();
        let model = ScriptedModel::new([ScriptItem::call(tool, args), ScriptItem::say("done")]);
        let agent = Agent::builder("clerk").model(model).plugin("approval", "approval", json!({}));
        let config = json!({ "roots": [directory.path()] });
        let instance = opened(agent.plugin("file-system", "file-system", config)).await;
        let result = instance.run("go").await.unwrap();
        assert!(difference(&result).ends_with(expected), "{}", difference(&result));
        fs::write(&file, "zero\none\ntwo\n").unwrap();
        let call = || Decision::approve(result.waits()[0].call.clone());
        let again = instance.decide([call()]).await.unwrap();
        assert!(again.waits()[0].again && difference(&again).contains(" zero\n"), "{}", difference(&again));
        assert_eq!(fs::read_to_string(&file).unwrap(), "zero\none\ntwo\n");
        assert_eq!(instance.decide([call()]).await.unwrap().text(), "done");
        assert!(fs::read_to_string(&file).unwrap().starts_with("zero\none\n"));
        instance.close().await.unwrap();
    }
}
