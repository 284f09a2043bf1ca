//! An extension that uses all of the authoring API of goondan 0.1.0, and records what it sees in its state.
//!
//! `libsdk.so` beside this file is this code, built from the SDK as it was before the first change of structure. It
//! is never built again: see `README.md`.

use std::time::Duration;

use goondan::prelude::*;
use goondan::{
    AgentRequest, BoxFuture, Effect, EventHandler, MODEL_KEY, MODEL_OPTIONS_KEY, Map, Part, StepDraft, ToolHandler,
    ToolItem, Value, json,
};

/// What the extension does besides recording.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// Written in front of each record.
    tag: String,
    /// The model that each step asks for.
    #[serde(default)]
    model: Option<String>,
    /// The options that each step gives the model.
    #[serde(default)]
    model_options: Option<Value>,
    /// Replaces the text of each message that it can read before the first step.
    #[serde(default)]
    rewrite: bool,
    /// What the step middleware does instead of passing on.
    #[serde(default)]
    mode: Mode,
}

/// What the step middleware does.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Mode {
    /// Runs `next`.
    #[default]
    Pass,
    /// Fails, with all that an error can have.
    Fail,
    /// Panics.
    Panic,
    /// Asks for the step to be run again, once.
    Retry,
    /// Turns a failure into an answer.
    Recover,
}

/// Uses all of the authoring API.
pub struct Everything {
    config: Config,
    api: ExtensionApi,
}

/// A tool that is registered by hand.
struct Dynamic(ExtensionApi);

impl ToolHandler for Dynamic {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<Value>> {
        Box::pin(async move {
            self.0.state().update(|state: &mut Vec<String>| state.push(format!("dynamic {input}")))?;
            ctx.logger().with("input", input).info("the dynamic tool ran");
            Ok(json!({ "tool": ctx.tool_name(), "turn": ctx.turn_id().as_str().len() }))
        })
    }
}

/// A subscription that is made by hand.
struct Heard(ExtensionApi);

impl EventHandler for Heard {
    fn handle<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.0.state().update(|state: &mut Vec<String>| state.push(format!("heard {}", event.name())))
        })
    }
}

/// Uses everything that 0.1.0 offers.
#[goondan::extension(name = "sdk", requires = ["events"])]
impl Everything {
    #[init]
    async fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let item = ToolItem::new("sdk__dynamic")?.describe("By hand.").effect(Effect::Read);
        api.tools().register(item, Dynamic(api.clone()))?;
        api.events().once("sdk.said", Heard(api.clone()))?.detach();
        Ok(Self { config, api })
    }

    fn note(&self, line: impl Into<String>) -> Result<()> {
        let line = format!("{} {}", self.config.tag, line.into());
        self.api.state().update(|state: &mut Vec<String>| state.push(line))
    }

    #[middleware(turn, priority = 5)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let texts: Vec<_> = ctx.conversation().iter().map(|message| message.text().into_owned()).collect();
        let reversed: Vec<_> = ctx.conversation().iter().rev().map(|message| message.role().as_str()).collect();
        self.note(format!("turn of {} in {}: {texts:?} {reversed:?}", ctx.agent_name(), ctx.instance_key()))?;
        self.note(format!("input {:?} by {:?}", ctx.input().input, ctx.extension_name()))?;
        let contents: Result<Vec<_>> =
            ctx.conversation().iter().map(|message| Ok(serde_json::to_string(&*message.content())?)).collect();
        self.note(format!("contents {:?}", contents?))?;
        if self.config.rewrite {
            let all: Vec<Message> = ctx.conversation().iter().map(|message| message.to_message()).collect();
            for message in all {
                ctx.emit(MessageEvent::replace(message.id().to_owned(), message.with_metadata("seen", true)));
            }
        }
        ctx.metadata_mut().insert("outer".to_owned(), self.config.tag.clone().into());
        let id = format!("kind-{}-{}", self.config.tag, ctx.turn_id());
        ctx.emit(MessageEvent::append(Message::system("be kind").with_id(id).with_metadata("a", 1)));
        let agents = ctx.agents().list().len();
        let answer = ctx.agents().request(AgentRequest::new("nobody").input("hi")).await;
        self.note(format!("{agents} agents; {:?}", answer.map_err(|error| error.code().clone())))?;
        let mut result = next.run(ctx).await?;
        let metadata = ctx.metadata().get("inner").cloned();
        self.note(format!("{:?} {:?} {metadata:?}", result.text(), result.finish_reason()))?;
        result.set_text(format!("{} and more", result.text()));
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let tools: Vec<_> = ctx.tool_catalog().iter().map(|tool| tool.name.to_string()).collect();
        self.note(format!("step {} with {tools:?}", ctx.step_index()))?;
        let index = ctx.step_index();
        ctx.metadata_mut().insert("inner".to_owned(), index.into());
        if let Some(model) = &self.config.model {
            ctx.metadata_mut().insert(MODEL_KEY.to_owned(), model.clone().into());
        }
        if let Some(options) = &self.config.model_options {
            ctx.metadata_mut().insert(MODEL_OPTIONS_KEY.to_owned(), options.clone());
        }
        if let Some(tool) = ctx.tool_catalog_mut().get_mut("sdk__declared") {
            tool.description = Some("changed".to_owned());
        }
        let mut result = match self.config.mode {
            Mode::Pass => next.run(ctx).await?,
            Mode::Fail => return Err(Error::new("E_SDK", "it went wrong").suggest("try tea").caused_by("its cause")),
            Mode::Panic => panic!("at step {index}"),
            Mode::Retry => match ctx.metadata().get("attempt").and_then(Value::as_u64) {
                Some(1) => next.run(ctx).await?,
                _ => return Err(Error::retry_after(Duration::from_millis(1), "again")),
            },
            Mode::Recover => match next.catch(ctx).await {
                Ok(result) => result,
                Err(failure) => {
                    self.note(format!("recovered from {}", failure.error().code()))?;
                    failure.recover(ctx, StepDraft::stop())
                }
            },
        };
        let answers: Vec<_> = result.tool_results().iter().map(|result| result.output().cloned()).collect();
        self.note(format!("{:?} {} {answers:?}", result.status(), result.tool_calls().len()))?;
        result.metadata_mut().insert("from".to_owned(), self.config.tag.clone().into());
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        self.note(format!("call {} of step {} {:?}", ctx.tool_name(), ctx.step_index(), ctx.args()))?;
        if let Some(word) = ctx.args_mut().get_mut("word") {
            *word = "rewritten".into();
        }
        let result = next.run(ctx).await?;
        self.note(format!("{:?} {:?}", result.status(), result.error().map(|error| error.code.clone())))?;
        Ok(result)
    }

    /// Says a word.
    #[tool(effect = idempotent, timeout = "5s")]
    async fn declared(&self, ctx: &ToolContext<'_>, input: Word) -> Result<Map<String, Value>> {
        tokio::spawn(async { tokio::time::sleep(Duration::from_millis(1)).await }).await?;
        self.api.events().emit("sdk.said", (input.word.clone(), 1));
        let calls = ctx.message().content().parts().iter().filter(|part| matches!(part, Part::ToolCall(_))).count();
        Ok(Map::from_iter([
            ("word".to_owned(), input.word.into()),
            ("parts".to_owned(), ctx.message().content().parts().len().into()),
            ("calls".to_owned(), calls.into()),
            ("workdir".to_owned(), ctx.workdir()?.is_dir().into()),
            ("agents".to_owned(), ctx.runtime().list().len().into()),
        ]))
    }

    /// Answers with an object that looks like contents.
    #[tool(effect = read)]
    async fn content(&self) -> Result<Value> {
        Ok(json!({ "content": [{ "type": "text", "text": "plain JSON" }], "isError": true }))
    }

    /// Fails.
    #[tool]
    async fn fail(&self) -> Result<Value> {
        Err(Error::new("E_SDK_TOOL", "the tool failed").suggest("do not call it"))
    }

    /// Answers from another thread.
    #[tool(blocking, effect = read)]
    fn slow(&self) -> Result<&'static str> {
        Ok("here")
    }

    #[on("sdk.*")]
    async fn said(&self, event: &Event) -> Result<()> {
        self.note(format!("{} {:?}", event.name(), event.args()))
    }

    #[cleanup]
    async fn close(&self) {
        tracing::info!(tag = self.config.tag, "closing");
        self.api.logger().with("tag", &self.config.tag).warn("closed");
    }
}

/// What to say.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Word {
    word: String,
}
