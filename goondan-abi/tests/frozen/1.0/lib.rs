//! An extension that uses the whole authoring API of ABI 1.0, and records what it reads in its state.

use std::time::Duration;

use goondan::agent::AgentRequest;
use goondan::conversation::FilePart;
use goondan::event::{AgentDelegate, AgentReload};
use goondan::middleware::StepDraft;
use goondan::prelude::*;
use goondan::tool::{Effect, ToolHandler, ToolItem};
use goondan::{BoxFuture, Secret, Value, json};

/// What the extension does besides recording.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Config {
    /// Rewrites each message before the first step.
    #[serde(default)]
    rewrite: bool,
}

/// Uses the whole authoring API.
pub struct Members {
    config: Config,
    api: ExtensionApi,
    token: Secret,
}

/// A tool that is registered by hand.
struct ByHand(ExtensionApi);

impl ToolHandler for ByHand {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move {
            self.0.logger().with("input", &input).info("the tool by hand ran");
            ToolReply::json(json!({ "tool": ctx.tool_name(), "input": input }))
        })
    }
}

/// A subscription that is made by hand.
struct Heard(ExtensionApi);

impl goondan::event::EventHandler for Heard {
    fn handle<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { note(&self.0, format!("heard {}", event.name())) })
    }
}

fn note(api: &ExtensionApi, line: impl Into<String>) -> Result<()> {
    let line = line.into();
    api.state().update(|notes: &mut Vec<String>| notes.push(line))
}

/// Uses the whole authoring API.
#[goondan::extension(name = "members", requires = ["events"], guard)]
impl Members {
    #[init]
    async fn new(api: ExtensionApi, ctx: InitContext, config: Config) -> Result<Self> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        std::fs::write(ctx.state_dir()?.join("opened"), ctx.instance().as_str())?;
        ctx.shared_state::<Vec<String>>()?.update(|instances| instances.push(ctx.instance().to_string()))?;
        let place = (ctx.workspace(), ctx.bundle_root().is_some(), ctx.inspect(), ctx.extensions()?.len());
        note(&api, format!("{} {} {} {place:?}", ctx.extension(), ctx.agent(), ctx.instance()))?;
        let item = ToolItem::new("members__by_hand")?.describe("By hand.").effect(Effect::Read);
        api.tools().register(item.parameters(json!({ "type": "object" })).lenient(), ByHand(api.clone()))?;
        api.events().once("members.said", Heard(api.clone()))?.detach();
        Ok(Self { config, api, token: Secret::new("a token of the session") })
    }

    fn note(&self, line: impl Into<String>) -> Result<()> {
        note(&self.api, line)
    }

    #[middleware(turn, priority = 5)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.note(format!("turn of {} in {}: {:?}", ctx.agent_name(), ctx.instance_key(), ctx.input().input))?;
        let messages = ctx.conversation();
        let lines: Vec<_> =
            messages.iter().map(|m| format!("{:?} {:?} {:?}", m.role(), m.source(), m.text())).collect();
        self.note(format!("messages {lines:?}"))?;
        let contents: Vec<_> = messages.iter().rev().map(|m| format!("{:?}", m.content())).collect();
        self.note(format!("contents {contents:?}"))?;
        let all: Vec<Message> = messages.iter().map(|message| message.to_message()).collect();
        if self.config.rewrite {
            for message in all {
                ctx.emit(MessageEvent::replace(message.id().to_owned(), message.with_metadata("seen", true)));
            }
        }
        let id = format!("kind-{}", ctx.turn_id());
        ctx.emit(MessageEvent::append(Message::system("be kind").with_id(id.clone()).with_metadata("a", 1)));
        let kind = ctx.conversation().iter().last().map(|message| message.metadata("a").is_some());
        self.note(format!("emitted {kind:?} of {}", ctx.conversation().events().len()))?;
        ctx.emit(MessageEvent::remove(id));
        ctx.metadata_mut().insert("outer".to_owned(), true.into());
        let title = ctx.agents().request(AgentRequest::model(None).system("Be brief.").input("a title?")).await?;
        let missing = ctx.agents().request(AgentRequest::new("nobody").input("hi")).await;
        self.note(format!("{} {} {:?}", title.target, title.response, missing.map_err(|error| error.code().clone())))?;
        let mut result = next.run(ctx).await?;
        let inner = ctx.metadata().get("inner").cloned();
        self.note(format!("turn {:?} {:?} {inner:?}", result.text(), result.finish_reason()))?;
        let statuses: Vec<_> = result.tool_calls().iter().map(|call| call.status).collect();
        self.note(format!("turn calls {statuses:?} {} {}", result.steps(), result.usage().is_some()))?;
        result.set_text(format!("{} and more", result.text()));
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let index = ctx.step_index();
        let tools: Vec<_> =
            ctx.tool_catalog().iter().map(|t| format!("{} {:?} {:?}", t.name, t.effect, t.source)).collect();
        self.note(format!("step {index} with {tools:?}"))?;
        self.note(format!("model {:?} {:?} {:?}", ctx.model_name(), ctx.model_options(), ctx.model_info()))?;
        self.note(format!("estimate {} after {:?}", ctx.token_estimate() > 0, ctx.metadata().get("outer")))?;
        ctx.metadata_mut().insert("inner".to_owned(), index.into());
        ctx.hold_stream();
        ctx.project(MessageEvent::append(Message::user(format!("projected {index}"))));
        if ctx.input().input.as_deref() == Some("canned") {
            ctx.answer_with("a prepared answer");
        }
        ctx.model_options_mut().temperature = Some(0.5);
        if let Some(tool) = ctx.tool_catalog_mut().get_mut("members__draw") {
            tool.description = Some("changed".to_owned());
        }
        let mut result = match next.catch(ctx).await {
            Ok(result) => result,
            Err(failure) => {
                self.note(format!("recovered from {}", failure.error().code()))?;
                return Ok(failure.recover(ctx, StepDraft::stop()));
            }
        };
        self.note(format!("step {:?} {:?} {:?}", result.status(), result.finish_reason(), result.prepared_by()))?;
        let results: Vec<_> = result.tool_results().iter().map(|result| (result.status(), result.output())).collect();
        self.note(format!("step results {results:?} of {}", result.tool_calls().len()))?;
        result.metadata_mut().insert("from".to_owned(), "members".into());
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let effect = ctx.tool().map(|tool| tool.effect);
        self.note(format!("call {} {effect:?} {}", ctx.tool_name(), ctx.workdir()?.is_dir()))?;
        if let Some(word) = ctx.args_mut().get_mut("word") {
            *word = "rewritten".into();
        }
        if ctx.tool_name() == "members__dry" {
            ctx.answer_with(ToolReply::text("a prepared reply").failed());
        }
        let mut result = next.run(ctx).await?;
        let error = result.error().and_then(|error| error.code.clone());
        self.note(format!("call {:?} {error:?} {:?}", result.status(), result.prepared_by()))?;
        if let Some(reply) = result.to_reply() {
            result.set_output(reply);
        }
        Ok(result)
    }

    /// Says how far it is, and answers with a file.
    #[tool(effect = idempotent, timeout = "5s")]
    async fn draw(&self, ctx: &ToolContext<'_>, input: Word) -> Result<ToolReply> {
        ctx.progress(1.0, Some(2.0), "half");
        tokio::spawn(async { tokio::time::sleep(Duration::from_millis(1)).await }).await?;
        self.api.events().emit("members.said", (input.word.clone(), 1));
        let asked = ctx.message().content().parts().len();
        let messages = ctx.conversation().iter().count();
        self.note(format!("draw {} {asked} {messages} {}", input.word, ctx.agents().list().len()))?;
        Ok(ToolReply::text("a dot:").file(FilePart::from_bytes("image/png", &[7]).named("dot.png")))
    }

    /// Is never called.
    #[tool(effect = read)]
    async fn dry(&self) -> Result<String> {
        Err(Error::msg("its reply is prepared"))
    }

    /// Fails.
    #[tool]
    async fn fail(&self) -> Result<Value> {
        self.api.logger().warn(format!("the token is {}", self.token.expose()));
        Err(Error::new("E_MEMBERS", "the tool failed").suggest("do not call it").caused_by("its cause"))
    }

    /// Answers from another thread.
    #[tool(blocking, effect = read)]
    fn slow(&self) -> Result<&'static str> {
        Ok("here")
    }

    /// Starts another turn, and requests a reload.
    #[tool(effect = read)]
    async fn wake(&self, ctx: &ToolContext<'_>) -> Result<()> {
        let mut delegate = AgentDelegate::new(ctx.agent_name().clone(), "canned");
        delegate.id = "later".to_owned();
        self.api.events().delegate(delegate);
        let answer = self.api.events().reload(AgentReload::new("again")).await;
        self.note(format!("reload {} {:?} {:?}", answer.id, answer.effect, answer.reason))
    }

    #[on("members.*")]
    async fn said(&self, event: &Event) -> Result<()> {
        self.note(format!("{} {:?}", event.name(), event.args()))
    }

    #[on("agent.delegationResult")]
    async fn woken(&self, event: &Event) -> Result<()> {
        self.note(format!("woken {}", event.args()[0]["result"]))
    }

    #[cleanup]
    async fn close(&self) {
        tracing::info!(rewrite = self.config.rewrite, "closing");
    }
}

/// What to say.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Word {
    word: String,
}
