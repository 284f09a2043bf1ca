//! An extension that uses what version 1.1 of the tables added to the authoring API, and records what it sees in its
//! state.
//!
//! `libsdk.so` beside this file is this code, built from the SDK of the commit that froze version 1.1. It is never built
//! again: see `README.md`.

use goondan::agent::AgentRequest;
use goondan::conversation::FilePart;
use goondan::event::AgentDelegate;
use goondan::prelude::*;
use goondan::tool::{Effect, ToolHandler, ToolItem};
use goondan::{BoxFuture, Secret, Value, json};

/// Uses all that version 1.1 added.
pub struct Later {
    api: ExtensionApi,
    token: Secret,
}

/// A tool that is registered while the extension runs.
struct Learnt;

impl ToolHandler for Learnt {
    fn call<'a>(&'a self, _: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move { ToolReply::json(json!({ "learnt": input })) })
    }
}

#[goondan::extension(name = "sdk11", guard)]
impl Later {
    #[init]
    fn new(api: ExtensionApi, ctx: InitContext) -> Result<Self> {
        let directory = ctx.state_dir()?;
        std::fs::write(directory.join("opened"), ctx.instance().as_str())?;
        let new = Self { api, token: Secret::new("a token of the session") };
        new.note(format!("{} {} {} {:?}", ctx.extension(), ctx.agent(), ctx.instance(), ctx.workspace()))?;
        new.note(format!("{:?} {}", ctx.bundle_root(), ctx.inspect()))?;
        Ok(new)
    }

    fn note(&self, line: impl Into<String>) -> Result<()> {
        let line = line.into();
        self.api.state().update(|notes: &mut Vec<String>| notes.push(line))
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let request = AgentRequest::model(None).system("Be brief.").input("a title?");
        let title = ctx.agents().request(request).await?;
        let result = next.run(ctx).await?;
        let usage = result.usage().is_some();
        self.note(format!("{} {} {usage} {:?}", title.target, title.response, result.text()))?;
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let index = ctx.step_index();
        self.note(format!("{:?} {}", ctx.model_name(), ctx.token_estimate() > 0))?;
        self.note(format!("{:?}", ctx.model_info().context_window))?;
        ctx.hold_stream();
        ctx.project(MessageEvent::append(Message::user(format!("projected {index}"))));
        if ctx.input().input.as_deref() == Some("canned") {
            ctx.answer_with("a prepared answer");
        }
        ctx.model_options_mut().temperature = Some(0.5);
        let result = next.run(ctx).await?;
        self.note(format!("{:?} {:?} {:?}", result.model(), result.finish_reason(), result.prepared_by()))?;
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let known = ctx.tool().is_some_and(|tool| tool.effect == Effect::Read);
        self.note(format!("{} {known} {}", ctx.tool_name(), ctx.workdir()?.is_dir()))?;
        if ctx.tool_name() == "sdk11__dry" {
            ctx.answer_with(ToolReply::text("a prepared reply").failed());
        }
        let result = next.run(ctx).await?;
        self.note(format!("{:?} {:?}", result.status(), result.prepared_by()))?;
        Ok(result)
    }

    /// Says how far it is, and answers with a file.
    #[tool(effect = read)]
    async fn draw(&self, ctx: &ToolContext<'_>) -> Result<ToolReply> {
        ctx.progress(1.0, Some(2.0), "half");
        let seen = ctx.conversation().iter().count();
        self.note(format!("{seen} messages, {} agents", ctx.agents().list().len()))?;
        let file = FilePart::from_bytes("image/png", &[7]).named("dot.png");
        Ok(ToolReply::text("a dot:").file(file))
    }

    /// Is never called.
    #[tool(effect = read)]
    async fn dry(&self) -> Result<String> {
        Err(Error::msg("its reply is prepared"))
    }

    /// Registers another tool.
    #[tool(effect = read)]
    async fn learn(&self) -> Result<()> {
        let item = ToolItem::new("sdk11__learnt")?.describe("Learnt.").effect(Effect::Read);
        self.api.tools().register(item.parameters(json!({ "type": "strange" })).lenient(), Learnt)?;
        self.api.logger().warn(format!("the token is {}", self.token.expose()));
        Ok(())
    }

    /// Starts another turn.
    #[tool(effect = read)]
    async fn wake(&self, ctx: &ToolContext<'_>) -> Result<()> {
        let mut delegate = AgentDelegate::new(ctx.agent_name().clone(), "canned");
        delegate.id = "later".to_owned();
        self.api.events().emit(AgentDelegate::NAME, (delegate,));
        Ok(())
    }

    #[on("agent.delegationResult")]
    async fn woken(&self, event: &Event) -> Result<()> {
        self.note(format!("woken {}", event.args()[0]["result"]))
    }
}
