//! CACHE-01: how much of a request begins as the one before, and who changed the rest.

use std::sync::{Arc, Mutex};

use conformance_extensions::prefix::Breaking;
use goondan::agent::TurnUpdate;
use goondan::event::{KeptPrefix, PrefixBreak, RuntimeEvent};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::{Agent, BoxFuture, Instance, Result, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::Log;

/// The characters of the instructions, and of the tools with their schemas.
const SYSTEM: &str = "Answer with one word.";

fn agent(model: impl Model, log: &Log) -> Agent {
    Agent::builder("assistant").model(model).system(SYSTEM).with::<Breaking>(log.config()).build().unwrap()
}

fn script() -> ScriptedModel {
    ScriptedModel::new([ScriptItem::say("yes").repeat()])
}

/// Returns what the request of a turn has kept, and whether it was reported as broken.
async fn kept(instance: &Instance, input: &str) -> (Option<KeptPrefix>, bool) {
    let mut turn = instance.run_stream(input);
    let (mut kept, mut broken) = (None, None);
    while let Some(update) = turn.next().await {
        let TurnUpdate::Event(event) = update else { continue };
        match Arc::unwrap_or_clone(event) {
            RuntimeEvent::StepCompleted { kept_prefix, .. } => kept = kept_prefix,
            RuntimeEvent::ModelPrefixBroken { prefix, .. } => broken = Some(prefix),
            _ => {}
        }
    }
    turn.finish().await.unwrap();
    assert!(broken.is_none() || broken == kept, "{broken:?}");
    (kept, broken.is_some())
}

async fn broken(instance: &Instance, input: &str) -> String {
    let (kept, is_reported) = kept(instance, input).await;
    let kept = kept.unwrap();
    assert_eq!(is_reported, kept.kept * 5 < kept.of * 4, "less than four fifths are little: {kept:?}");
    let Some(PrefixBreak { part, index, tool_name, change, extension_name, .. }) = kept.broken else {
        assert_eq!(kept.kept, kept.of);
        return "all".to_owned();
    };
    let what = tool_name.map(|name| format!(" {name}")).unwrap_or_default();
    let by = extension_name.map(|name| format!(" by {name}")).unwrap_or_default();
    format!("{} {index}{what} {}{by}", part.as_str(), change.as_str())
}

#[both_linkages]
#[covers("CACHE-01")]
async fn a_step_says_what_its_request_keeps_and_who_changed_the_rest() {
    let log = Log::new();
    let agent = agent(script(), &log);
    let instance = agent.instance("test").await.unwrap();
    assert_eq!(kept(&instance, "hello").await, (None, false), "there is none before the first");
    for (input, expected) in [
        ("more", "all"),
        ("replace", "messages 0 replaced by breaking"),
        ("more", "all"),
        ("same", "all"),
        ("remove", "messages 0 removed by breaking"),
        ("edit", "messages 0 replaced by breaking"),
        ("more", "messages 0 replaced by breaking"),
        ("hint", "all"),
        // What one step alone has is gone in the next, at its end.
        ("more", "messages 16 removed by breaking"),
        ("look", "all"),
        ("grow", "messages 0 added"),
        ("hide", "tools 1 breaking__second removed by breaking"),
        ("more", "tools 1 breaking__second added by breaking"),
        ("truncate", "messages 0 removed by breaking"),
        ("more", "all"),
    ] {
        if input == "grow" {
            // A tool at the end keeps all tools.
            let (prefix, _) = kept(&instance, input).await;
            let prefix = prefix.unwrap();
            let at = prefix.broken.unwrap();
            assert_eq!((at.index, at.tool_name.as_deref()), (2, Some("breaking__third")));
            assert!(prefix.kept > SYSTEM.len() as u64 && prefix.kept < prefix.of);
            continue;
        }
        assert_eq!(broken(&instance, input).await, expected, "{input}");
    }
    let told = log.take();
    assert!(told.len() > 1 && told.iter().all(|line| line.starts_with("kept ")), "{told:?}");
}

/// A model that reads the tools first.
struct ToolsFirst(ScriptedModel);

impl Model for ToolsFirst {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        self.0.generate(request, deltas)
    }

    fn reads_tools_first(&self) -> bool {
        true
    }
}

#[both_linkages]
#[covers("CACHE-01")]
async fn the_order_is_that_of_the_wire() {
    let log = Log::new();
    let (system_first, tools_first) = (agent(script(), &log), agent(ToolsFirst(script()), &log));
    let mut lost = Vec::new();
    for agent in [system_first, tools_first] {
        let instance = agent.instance("test").await.unwrap();
        kept(&instance, "hello").await;
        let prefix = kept(&instance, "hide").await.0.unwrap();
        lost.push(prefix.of - prefix.kept);
    }
    assert_eq!(lost[1] - lost[0], SYSTEM.len() as u64);
}

/// A model that is sent tools which it may not call.
struct ClosesTools(ScriptedModel, Sent);

/// The tools of a request, and those that the model may call.
type Sent = Arc<Mutex<Vec<(Vec<String>, Vec<String>)>>>;

impl Model for ClosesTools {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        let all = request.all_tools().map(|tool| tool.name.to_string()).collect();
        let open = request.tools().map(|tool| tool.name.to_string()).collect::<Vec<_>>();
        assert!(open.iter().all(|name| !request.is_closed(name)));
        self.1.lock().unwrap().push((all, open));
        self.0.generate(request, deltas)
    }

    fn sends_closed_tools(&self, _: &ModelRequest<'_>) -> bool {
        true
    }
}

#[both_linkages]
#[covers("CACHE-01")]
async fn a_tool_that_a_layer_closes_breaks_nothing_where_it_is_sent_and_cannot_be_called() {
    let log = Log::new();
    let script = ScriptedModel::new([
        ScriptItem::say("yes"),
        ScriptItem::say("yes"),
        ScriptItem::say("yes"),
        ScriptItem::call("breaking__second", json!({})),
        ScriptItem::say("yes").repeat(),
    ]);
    let sent = Sent::default();
    let agent = agent(ClosesTools(script, Arc::clone(&sent)), &log);
    let instance = agent.instance("test").await.unwrap();
    kept(&instance, "hello").await;
    for input in ["more", "hide"] {
        assert_eq!(broken(&instance, input).await, "all", "{input}");
    }
    // The layer sees the newest message, and closes the tool in the first step of the turn only.
    assert_eq!(broken(&instance, "hide").await, "all", "while it is closed, and when it is opened again");
    let messages = json!(instance.messages().await.unwrap()).to_string();
    assert!(messages.contains("E_TOOL_NOT_IN_CATALOG"), "a closed tool is none of the step: {messages}");
    let all = ["breaking__first", "breaking__second"];
    let sent = sent.lock().unwrap();
    assert!(sent.iter().all(|(sent, _)| *sent == all), "{sent:?}");
    let open: Vec<_> = sent.iter().map(|(_, open)| open.len()).collect();
    assert_eq!(open, [2, 2, 1, 1, 2]);
}

#[both_linkages]
#[covers("CACHE-01")]
async fn each_model_and_each_conversation_has_its_own() {
    let log = Log::new();
    let agent = agent(script(), &log);
    for key in ["one", "two"] {
        let instance = agent.instance(key).await.unwrap();
        assert_eq!(kept(&instance, "hello").await.0, None);
        let prefix = kept(&instance, "more").await.0.unwrap();
        assert_eq!((prefix.share(), prefix.broken), (1.0, None));
    }
}
