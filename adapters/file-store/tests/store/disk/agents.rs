//! The agent of the scenarios: tools of each effect, and a middleware that changes the conversation.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use goondan_core::{
    BoxFuture, Effect, Error, Extension, ExtensionApi, ExtensionDescriptor, Message, MessageEvent, Middleware,
    MiddlewareOptions, Next, Part, Result, ToolContext, ToolHandler, ToolItem, ToolReply, Turn, TurnContext,
    TurnResult,
};
use goondan_file_store::FileStore;
use goondan_runtime::{Agent, DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use serde_json::{Value, json};

use super::recorder::{Op, Recorder};

/// The recorders by name: an extension is created from its JSON config, which cannot hold a recorder.
static RECORDERS: LazyLock<Mutex<HashMap<String, Recorder>>> = LazyLock::new(Mutex::default);

/// Returns the turns of the scenario: the input of each, and the model's responses.
pub(crate) fn scenario() -> Vec<(&'static str, Vec<ScriptItem>)> {
    let call = |tool: &str| ScriptItem::call(tool, json!({}));
    let say = ScriptItem::say;
    vec![
        ("hello é漢", vec![say("hello")]),
        ("count", vec![say("counted")]),
        ("look twice", vec![ScriptItem::calls([("world__look", json!({})), ("world__look", json!({}))]), say("seen")]),
        ("set", vec![call("world__set"), say("set")]),
        ("pay count", vec![call("world__pay"), call("world__pay"), say("paid")]),
        ("replace", vec![say("replaced")]),
        ("pay and look", vec![ScriptItem::calls([("world__pay", json!({})), ("world__look", json!({}))]), say("done")]),
        ("remove", vec![call("world__break"), say("broken")]),
        ("fail count", vec![ScriptItem::fail("the model is away", false)]),
        ("truncate count", vec![call("world__pay"), say("all is forgotten")]),
        ("afterwards", vec![say("yes")]),
    ]
}

pub(crate) async fn agent(store: FileStore, recorder: &Recorder, model: impl Model) -> Agent {
    let name = recorder.root.display().to_string();
    RECORDERS.lock().unwrap().insert(name.clone(), recorder.clone());
    let model = CheckedModel { model, recorder: recorder.clone() };
    let agent = Agent::builder("bot").store(store).model(model).extension::<World>(json!({ "record": name }));
    agent.build().unwrap()
}

pub(crate) fn scripted(turns: &[(&str, Vec<ScriptItem>)]) -> ScriptedModel {
    ScriptedModel::new(turns.iter().flat_map(|(_, items)| items.clone()))
}

/// Wraps a model: records each request, and asserts that each call has its result and each result its call (PAIR-01).
struct CheckedModel<M> {
    model: M,
    recorder: Recorder,
}

impl<M: Model> Model for CheckedModel<M> {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        let (mut open, mut newest) = (Vec::new(), String::new());
        for message in request.messages() {
            newest = serde_json::to_string(&message.content).unwrap();
            for part in message.content.parts() {
                match part {
                    Part::ToolCall(call) => open.push(call.tool_call_id.clone()),
                    Part::ToolResult(result) => {
                        let at = open.iter().position(|call| *call == result.tool_call_id);
                        open.remove(at.expect("a result without its call reached the model"));
                    }
                    _ => {}
                }
            }
        }
        assert!(open.is_empty(), "calls without their results reached the model: {open:?}");
        self.recorder.note(Op::ModelCalled(newest));
        self.model.generate(request, deltas)
    }
}

pub(crate) struct World;

impl Extension for World {
    const DESCRIPTOR: &'static ExtensionDescriptor =
        &ExtensionDescriptor::new("world", &|| json!({}), &|api, config| {
            Box::pin(async move { register(&api, &config) })
        });
}

fn register(api: &ExtensionApi, config: &Value) -> Result<()> {
    let recorder = RECORDERS.lock().unwrap()[config["record"].as_str().unwrap()].clone();
    let tools = [("look", Effect::Read), ("set", Effect::Idempotent), ("pay", Effect::Once), ("break", Effect::Once)];
    for (name, effect) in tools {
        let item = ToolItem::new(&format!("world__{name}"))?.effect(effect);
        api.tools().register(item, RecordedTool { effect, fails: name == "break", recorder: recorder.clone() })?;
    }
    api.pipeline().register(Turn, FollowInput(api.clone()), MiddlewareOptions::default())
}

struct RecordedTool {
    effect: Effect,
    fails: bool,
    recorder: Recorder,
}

impl ToolHandler for RecordedTool {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        self.recorder.note(Op::ToolStarted { call: ctx.call_id().to_string(), effect: self.effect });
        let answer = if self.fails { Err(Error::msg("it broke")) } else { Ok(json!({ "done": true }).into()) };
        Box::pin(std::future::ready(answer))
    }
}

/// Changes the conversation and the state as the words of the input say.
struct FollowInput(ExtensionApi);

impl Middleware<Turn> for FollowInput {
    fn handle<'a>(&'a self, ctx: &'a mut TurnContext<'_>, next: Next<'a, Turn>) -> BoxFuture<'a, Result<TurnResult>> {
        Box::pin(async move {
            let input = ctx.input().input.clone().unwrap_or_default();
            let oldest: Vec<_> = ctx.conversation().iter().take(2).map(|message| message.to_id()).collect();
            if input.contains("count") {
                self.0.state().update(|count: &mut u32| *count += 1)?;
            }
            if input.contains("replace") {
                ctx.emit(MessageEvent::replace(oldest[0].clone(), Message::user("another past")));
            }
            if input.contains("remove") {
                oldest.into_iter().for_each(|id| ctx.emit(MessageEvent::remove(id)));
            }
            if input.contains("truncate") {
                ctx.emit(MessageEvent::truncate());
                ctx.emit(MessageEvent::append(Message::user("a new start")));
            }
            next.run(ctx).await
        })
    }
}
