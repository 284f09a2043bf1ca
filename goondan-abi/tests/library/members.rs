//! A library that uses the whole authoring API of version 1.0 runs a conversation: the frozen one, and one that was
//! built today. Both read as `Other` what they do not know (LINK-03, D-34).

use std::path::Path;

use goondan::decision::{Decision, Question};
use goondan::middleware::FinishReason;
use goondan::prelude::*;
use goondan::store::FileStore;
use goondan_abi::Library;
use goondan_core::{ExtensionDescriptor, Part, ToolOutput};
use goondan_runtime::{Agent, ScriptItem, ScriptedModel, TurnUpdate};
use serde_json::{Value, json};

use crate::newer::{self, WRITTEN};
use crate::support::library;

/// Returns the libraries: the frozen one on the machine that it was built for.
fn libraries() -> Vec<&'static Path> {
    let frozen = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/frozen/1.0/libmembers.so"));
    let runs = cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"));
    runs.then_some(frozen).into_iter().chain([library()]).collect()
}

fn call(tool: &str, args: Value) -> ScriptItem {
    ScriptItem::call(format!("members__{tool}"), args)
}

/// What a turn of the extension left.
struct Ran {
    messages: Vec<Message>,
    notes: Vec<String>,
    progress: Vec<(f64, Option<f64>, String)>,
    pieces: Vec<String>,
    /// What the model was sent.
    requests: String,
}

impl Ran {
    fn noted(&self, expected: &str) {
        assert!(self.notes.iter().any(|note| note.contains(expected)), "{expected:?} is not in {:#?}", self.notes);
    }
}

/// Runs a turn, and those that it delegates.
async fn run(extension: &'static ExtensionDescriptor, config: Value, script: Vec<ScriptItem>) -> Ran {
    let title = || ScriptItem::say("a title").when("^a title").unwrap();
    let script = [title()].into_iter().chain(script).chain([ScriptItem::say("done"), title()]);
    let dir = tempfile::tempdir().unwrap();
    let requests = dir.path().join("requests.jsonl");
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script).record(&requests));
    let agent = agent.described_extension("members", extension, config);
    let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().unwrap();
    let mut background = agent.subscribe_turns();
    let instance = agent.instance("user:1").await.unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join("extensions/members/opened")).unwrap(), "user:1");
    let (mut progress, mut pieces) = (Vec::new(), Vec::new());
    let mut turn = instance.run_stream("hello");
    while let Some(update) = turn.next().await {
        match update {
            TurnUpdate::Progress { done, total, text, .. } => progress.push((done, total, text)),
            TurnUpdate::Text { text, .. } => pieces.push(text),
            _ => {}
        }
    }
    assert_eq!(turn.finish().await.unwrap().text(), "done and more");
    while background.next_pending().await.is_some() {}
    let messages = instance.messages().await.unwrap().iter().map(|message| (**message).clone()).collect();
    let states = instance.states().await.unwrap();
    let notes = serde_json::from_value(states.into_values().next().unwrap()).unwrap();
    instance.close().await.unwrap();
    Ran { messages, notes, progress, pieces, requests: std::fs::read_to_string(requests).unwrap() }
}

#[tokio::test]
async fn a_library_of_version_1_0_runs_a_conversation() {
    for library in libraries() {
        let library = Library::inspect(library).unwrap();
        assert_eq!(library.abi_version(), "1.0");
        let library = library.load().unwrap();
        let script = vec![
            call("draw", json!({ "word": "one" })),
            call("dry", json!({})),
            call("fail", json!({})),
            call("slow", json!({})),
            call("by_hand", json!({ "word": "two" })),
            call("wake", json!({})),
        ];
        let ran = run(library.extension(Some("members")).unwrap(), json!({ "rewrite": true }), script).await;
        assert_eq!(ran.progress, [(1.0, Some(2.0), "half".to_owned())]);
        assert_eq!(ran.pieces, ["done"], "the stream was held");
        assert!(ran.requests.contains("projected 0") && ran.requests.contains("projected 6"), "{}", ran.requests);

        assert!(ran.messages.iter().all(|message| !message.text().contains("projected")));
        assert_eq!(ran.messages[0].metadata()["seen"], true);
        assert_eq!(ran.messages.last().unwrap().text(), "a prepared answer");
        let results = ran.messages.iter().filter(|message| message.role() == Role::Tool);
        let results = results.flat_map(|message| message.content().parts().to_vec()).filter_map(|part| match part {
            Part::ToolResult(result) => Some((result.is_error, result.output)),
            _ => None,
        });
        let results: Vec<_> = results.collect();
        let ToolOutput::Content(parts) = &results[0].1 else { panic!("{results:?}") };
        assert_eq!((results[0].0, parts.len()), (false, 2));
        assert_eq!((results[1].0, &*results[1].1.to_text()), (true, "a prepared reply"));
        assert!(results[2].1.to_text().contains("do not call it"), "{results:?}");
        assert_eq!(&*results[3].1.to_text(), "here");
        let by_hand = json!({ "tool": "members__by_hand", "input": { "word": "rewritten" } });
        assert_eq!(results[4].1, ToolOutput::Json(by_hand));

        for expected in [
            "members assistant user:1 (",
            r#"turn of assistant in user:1: Some("hello")"#,
            r#"messages ["User User \"hello\""]"#,
            "emitted Some(true) of ",
            "the agent's model a title Err(",
            "step 0 with [\"",
            "estimate true after Some(Bool(true))",
            "call members__draw Some(Idempotent) true",
            "draw rewritten 1 2 0",
            "heard members.said",
            r#"members.said [String("rewritten"), Number(1)]"#,
            r#"call Error Some("E_TOOL_FAILED") Some("#,
            r#"call Error Some("E_MEMBERS") None"#,
            "step results [(Error, None)] of 1",
            r#"turn "done" TextResponse Some(Number(6))"#,
            r#"woken "a prepared answer and more""#,
            r#"reload again None Some("the program does not reload its agents")"#,
        ] {
            ran.noted(expected);
        }
    }
}

#[tokio::test]
async fn a_library_of_version_1_0_reads_what_it_does_not_know_as_other() {
    for library in libraries() {
        WRITTEN.lock().unwrap().clear();
        let library = Library::inspect(library).unwrap().load_with(newer::host()).unwrap();
        let script = vec![call("draw", json!({ "word": "one" })), call("slow", json!({}))];
        let ran = run(library.extension(Some("members")).unwrap(), json!({ "rewrite": true }), script).await;
        for expected in [
            // Roles, sources and parts; also of the message that a tool answers.
            r#"messages ["Other Other({\"type\": String(\"oracle\"), \"at\": String(\"delphi\")}) \"hello\""]"#,
            "hologram",
            "draw rewritten 2 2 ",
            // Message events of another kind are left out.
            "emitted Some(true) of 3",
            // Effects, origins of tools, options and prices.
            "members__draw Other ",
            "members__slow Read Some(Other(",
            "call members__draw Some(Other) true",
            "mood",
            "prices: None",
            // Statuses and reasons.
            "step Other Some(Other) None",
            "step results [(Other, None)] of 1",
            "call Other None None",
            r#"turn "done" Other "#,
            "turn calls [Other] ",
        ] {
            ran.noted(expected);
        }

        let written = WRITTEN.lock().unwrap().clone();
        let all =
            |field: &str| written.iter().filter(|(name, _)| name == field).map(|(_, json)| json).collect::<Vec<_>>();
        let tool = |name: &str| {
            let catalog = all("toolCatalog")[0].as_array().unwrap();
            catalog.iter().find(|tool| tool["name"] == format!("members__{name}")).unwrap()
        };
        let draw = tool("draw");
        assert_eq!((&draw["effect"], &draw["parallel"]), (&json!("twice"), &json!(true)));
        assert_eq!(draw["description"], "changed");
        assert_eq!(tool("slow")["source"], json!({ "type": "planet", "name": "mars" }));
        let options = json!({ "mood": "good", "reasoning": { "effort": "ultra" }, "temperature": 0.5 });
        assert_eq!(*all("modelOptions")[0], options);
        let replaced = all("event").into_iter().find(|event| event["type"] == "replace").unwrap();
        let message = &replaced["message"];
        assert_eq!(message["data"]["role"], "developer");
        // The context of a newer library sets the source to the extension. That of 1.0 leaves it to the host.
        let source = &message["source"];
        assert!(source["at"] == "delphi" || source["extensionName"] == "members", "{source}");
        assert_eq!(message["data"]["content"][1], json!({ "type": "hologram", "of": 1 }));
        let reply = all("reply").into_iter().find(|reply| !reply.is_null()).unwrap();
        assert_eq!(reply["output"]["value"][2], json!({ "type": "hologram", "of": 1 }));
    }
}

/// Asks about one of the tools of the library.
struct Asker;

#[goondan::extension(name = "asker")]
impl Asker {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall, priority = -10)]
    async fn ask(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if ctx.tool_name() == "members__draw" && ctx.decision::<bool>()?.is_none() {
            ctx.ask(Question::new("Draw?").expecting::<bool>());
        }
        next.run(ctx).await
    }
}

/// ASK-01: the layers of the library are around a call that waits, and read a status that they do not know.
#[tokio::test]
async fn a_library_of_version_1_0_is_around_a_call_that_waits() {
    for path in libraries() {
        let library = Library::inspect(path).unwrap().load().unwrap();
        let is_frozen = path.ends_with("1.0/libmembers.so");
        let title = ScriptItem::say("a title").when("^a title").unwrap().repeat();
        let script = [title, call("draw", json!({ "word": "one" })), ScriptItem::say("done")];
        let dir = tempfile::tempdir().unwrap();
        let agent = Agent::builder("assistant").model(ScriptedModel::new(script)).extension::<Asker>(json!({}));
        let agent = agent.described_extension("members", library.extension(Some("members")).unwrap(), json!({}));
        let agent = agent.store(FileStore::open(dir.path()).unwrap()).build().unwrap();
        let instance = agent.instance("user:1").await.unwrap();
        let result = instance.run("hello").await.unwrap();
        assert_eq!((result.finish_reason(), result.text().as_ref()), (FinishReason::Suspended, ""));
        let wait = result.waits()[0].clone();
        assert_eq!(wait.args["word"], "rewritten", "what would run is what is asked about");
        let states = instance.states().await.unwrap();
        let notes: Vec<String> = serde_json::from_value(states.into_values().next().unwrap()).unwrap();
        let status = if is_frozen { "Other" } else { "Suspended" };
        for expected in [
            r#"call Error Some("E_TOOL_WAITING")"#.to_owned(),
            format!("step {status} "),
            format!("turn \"\" {status} "),
        ] {
            assert!(notes.iter().any(|note| note.contains(&expected)), "{expected:?} is not in {notes:#?}");
        }
        let result = instance.decide([Decision::approve(wait.call)]).await.unwrap();
        assert_eq!(result.text(), "done and more");
        instance.close().await.unwrap();
    }
}
