//! PROJ-01: edits of what the model is sent in one step, of which nothing remains.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use conformance_extensions::projected::Projecting;
use goondan::agent::{AgentBuilder, Policy, TurnUpdate};
use goondan::event::RuntimeEvent;
use goondan::middleware::TurnResult;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::{Agent, Instance, Result, Value, json};
use goondan_covers::{both_linkages, covers, interruptible};
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::{Log, SilentModel};

/// A conversation on a disk, whose model plays a script and whose requests are recorded.
struct Case {
    dir: tempfile::TempDir,
    log: Log,
}

impl Case {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), log: Log::new() }
    }

    fn store(&self) -> FileStore {
        FileStore::open(self.dir.path().join("store")).unwrap()
    }

    fn agent(&self, script: impl IntoIterator<Item = ScriptItem>) -> AgentBuilder {
        let model = ScriptedModel::new(script).record(self.dir.path().join("requests.jsonl"));
        Agent::builder("assistant").model(model).store(self.store())
    }

    /// Adds the extension, with `config` beside its log.
    fn with(&self, agent: AgentBuilder, config: Value) -> AgentBuilder {
        let mut config = config;
        config["log"] = json!(self.log);
        agent.with::<Projecting>(config)
    }

    /// Runs a turn of an agent with `config`.
    #[interruptible]
    async fn turn(
        &self,
        script: impl IntoIterator<Item = ScriptItem>,
        config: Value,
    ) -> (Instance, Result<TurnResult>) {
        let agent = self.with(self.agent(script), config).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        let turn = instance.run("hello").await;
        (instance, turn)
    }

    /// Returns the texts of each request to the model.
    fn requests(&self) -> Vec<Vec<String>> {
        let requests = fs::read_to_string(self.dir.path().join("requests.jsonl")).unwrap_or_default();
        let texts = |line| {
            let request: Value = serde_json::from_str(line).unwrap();
            let messages = request["messages"].as_array().unwrap().iter();
            messages.map(|message| said(&message["content"])).collect()
        };
        requests.lines().map(texts).collect()
    }

    /// Returns whether a file of the store holds `text`.
    fn on_disk(&self, text: &str) -> bool {
        holds(&self.dir.path().join("store"), text)
    }
}

fn said(content: &Value) -> String {
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => content[0]["type"].as_str().unwrap().to_owned(),
    }
}

fn holds(path: &Path, text: &str) -> bool {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().any(|entry| holds(&entry.unwrap().path(), text));
    }
    String::from_utf8_lossy(&fs::read(path).unwrap()).contains(text)
}

fn look() -> ScriptItem {
    ScriptItem::call("projecting__look", json!({}))
}

fn done() -> ScriptItem {
    ScriptItem::say("done")
}

#[both_linkages]
#[covers("PROJ-01")]
async fn an_edit_is_in_the_request_of_its_step_and_nowhere_else() {
    let case = Case::new();
    let edits = json!([{ "append": ["x", "found: tea"] }]);
    let (instance, turn) = case.turn([look(), done()], json!({ "edits": edits, "step": 0 })).await;
    assert_eq!(turn.unwrap().text(), "done");
    assert_eq!(case.requests(), [vec!["hello", "found: tea"], vec!["hello", "tool-call", "tool-result"]]);
    let log = case.log.take();
    assert_eq!(log[0], "before: [\"hello\"], 1 events, 21 tokens");
    assert_eq!(log[1], "edited: [\"hello\"], 1 events, 24 tokens", "the estimate counts it");
    assert_eq!(instance.messages().await.unwrap().len(), 4);
    assert!(case.on_disk("hello") && !case.on_disk("found"));
    instance.close().await.unwrap();
    assert!(!case.on_disk("found"));
}

#[both_linkages]
#[covers("PROJ-01")]
async fn edits_apply_in_the_order_of_the_calls_to_the_conversation_that_next_reaches() {
    for (edits, sent) in [
        (json!([{ "append": ["x", "1"] }, { "append": ["y", "2"] }, { "emit": "3" }]), vec!["hello", "3", "1", "2"]),
        (
            json!([{ "append": ["x", "1"] }, { "replace": ["x", "2"] }, { "append": ["y", "3"] }]),
            vec!["hello", "2", "3"],
        ),
        (json!([{ "append": ["x", "1"] }, { "remove": "x" }, { "append": ["x", "2"] }]), vec!["hello", "2"]),
        (json!([{ "replace": ["#0", "hullo"] }, { "remove": "#0" }]), vec![]),
        (json!([{ "remove": "#0" }, { "replace": ["#0", "hullo"] }]), vec![]),
        (json!([{ "replace": ["#0", "hullo"] }]), vec!["hullo"]),
        (json!([{ "append": ["x", "1"] }, "truncate", { "append": ["x", "2"] }]), vec!["2"]),
        (json!([{ "remove": "nobody" }]), vec!["hello"]),
    ] {
        let case = Case::new();
        let (instance, turn) = case.turn([done()], json!({ "edits": edits })).await;
        turn.unwrap();
        assert_eq!(case.requests(), [sent], "{edits}");
        let first = instance.messages().await.unwrap()[0].text().into_owned();
        assert_eq!(first, "hello", "{edits}");
    }
}

#[both_linkages]
#[covers("PROJ-01")]
async fn the_edits_of_all_layers_apply_from_the_outermost_one_on() {
    let case = Case::new();
    let config = |edits| json!({ "log": case.log, "edits": edits });
    let agent = case
        .agent([done()])
        .with_named("outer", "projecting", config(json!([{ "append": ["x", "outer"] }])))
        .with_named("inner", "projecting", config(json!([{ "replace": ["x", "inner"] }, { "append": ["y", "more"] }])));
    agent.build().unwrap().instance("test").await.unwrap().run("hello").await.unwrap();
    assert_eq!(case.requests(), [vec!["hello", "inner", "more"]]);
}

#[both_linkages]
#[covers("PROJ-01")]
async fn an_attempt_starts_without_the_edits_of_the_one_before() {
    let case = Case::new();
    let config = json!({ "edits": [{ "append": ["x", "found"] }], "when": "thenRetry" });
    let (_, turn) = case.turn([ScriptItem::say("one"), ScriptItem::say("two")], config).await;
    assert_eq!(turn.unwrap().text(), "two");
    assert_eq!(case.requests(), [vec!["hello", "found"], vec!["hello", "one"]]);
}

#[both_linkages]
#[covers("PROJ-01", "PAIR-01")]
async fn the_edited_request_has_whole_pairs() {
    // In the second step the conversation is: hello, a call, its result.
    for (edit, sent) in [
        (json!({ "remove": "#1" }), vec!["hello"]),
        (json!({ "remove": "#2" }), vec!["hello"]),
        (json!({ "replace": ["#2", "gone"] }), vec!["hello", "gone"]),
        (
            json!({ "append": ["x", [{ "type": "tool-call", "toolCallId": "9", "toolName": "a__b", "input": {} }]] }),
            vec!["hello", "tool-call", "tool-result"],
        ),
    ] {
        let case = Case::new();
        let (instance, turn) = case.turn([look(), done()], json!({ "edits": [edit], "step": 1 })).await;
        turn.unwrap();
        assert_eq!(case.requests()[1], sent, "{edit}");
        assert_eq!(instance.messages().await.unwrap().len(), 4);
    }
}

#[both_linkages]
#[covers("PROJ-01")]
async fn an_edit_that_cannot_be_applied_fails_the_step() {
    let thought = json!([{ "type": "reasoning", "text": "hm" }]);
    for (edits, code) in [
        (json!([{ "append": ["x", "1"] }, { "append": ["x", "2"] }]), "E_MESSAGE_DUPLICATE_ID"),
        (json!([{ "append": ["x", thought] }]), "E_MESSAGE_PART"),
        (json!([{ "replace": ["#0", thought] }]), "E_MESSAGE_PART"),
        (json!(["deep"]), "E_VALUE_DEPTH"),
    ] {
        let case = Case::new();
        let (_, turn) = case.turn([done()], json!({ "edits": edits })).await;
        let error = turn.unwrap_err();
        assert_eq!(error.code().as_str(), code, "{}", error.report());
        assert_eq!(error.extension().unwrap().as_str(), "projecting", "{}", error.report());
        assert_eq!(case.requests().len(), 0);
    }
}

#[both_linkages]
#[covers("PROJ-01")]
async fn after_next_nothing_can_be_edited() {
    let case = Case::new();
    let config = json!({ "edits": [{ "append": ["x", "found"] }], "when": "after" });
    let (_, turn) = case.turn([look(), done()], config).await;
    turn.unwrap();
    assert_eq!(case.requests(), [vec!["hello"], vec!["hello", "tool-call", "tool-result"]]);
}

#[both_linkages]
#[covers("PROJ-01")]
async fn the_event_of_the_step_shows_the_edited_request() {
    let case = Case::new();
    let mut policy = Policy::default();
    policy.report_model_input = true;
    let agent = case.with(case.agent([done()]).policy(policy), json!({ "edits": [{ "append": ["x", "found"] }] }));
    let mut turn = agent.build().unwrap().instance("test").await.unwrap().run_stream("hello");
    let mut sent = Vec::new();
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Event(event) = update
            && let RuntimeEvent::StepStarted { llm_input_messages: Some(messages), .. } = Arc::unwrap_or_clone(event)
        {
            sent.extend(messages.into_iter().map(|message| message.content.text().into_owned()));
        }
    }
    assert_eq!(sent, ["hello", "found"]);
}

#[both_linkages]
#[covers("PROJ-01")]
async fn a_cancelled_step_leaves_nothing_of_its_edits() {
    let case = Case::new();
    let asked = Arc::new(Notify::new());
    let edits = json!([{ "append": ["x", "found"] }, { "replace": ["#0", "hullo"] }]);
    let silent = Agent::builder("assistant").model(SilentModel(Arc::clone(&asked))).store(case.store());
    let silent = case.with(silent, json!({ "edits": edits })).build().unwrap();
    let instance = silent.instance("test").await.unwrap();
    // Dropping the turn cancels it.
    tokio::select! {
        biased;
        _ = instance.run("hello") => panic!("the model is silent"),
        () = asked.notified() => {}
    }
    assert!(case.on_disk("hello") && !case.on_disk("found") && !case.on_disk("hullo"));
    silent.close().await.unwrap();
    let (instance, turn) = case.turn([done()], json!({ "edits": [] })).await;
    turn.unwrap();
    assert_eq!(case.requests(), [["hello", "hello"]]);
    instance.close().await.unwrap();
    assert!(!case.on_disk("found") && !case.on_disk("hullo"));
}
