//! Extensions that ask models by requests, and that read the conversation in a tool.

use goondan::agent::{AgentRequest, AgentsApi};
use goondan::middleware::{ModelFinish, ModelOptions};
use goondan::prelude::*;
use goondan::{Value, json};

use crate::Log;

/// Asks a model in the place and the way of its config, and logs what comes of it.
pub struct ModelAsking {
    config: ModelAskingConfig,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ModelAskingConfig {
    log: Log,
    /// `turn`, `after`, `step` or `tool`.
    place: String,
    model: Option<String>,
    /// Gives up when the model was asked, as a program does that has waited long enough.
    #[serde(default)]
    give_up: bool,
}

impl ModelAsking {
    async fn ask(&self, agents: AgentsApi<'_>) {
        let mut options = ModelOptions::default();
        options.temperature = Some(0.0);
        let request = AgentRequest::model(self.config.model.as_deref());
        let request = request.system("Answer with a title.").options(options).input("summarize this");
        let mut answer = std::pin::pin!(agents.request(request));
        if self.config.give_up {
            // The first poll asks the model.
            let asked = std::future::poll_fn(|cx| std::task::Poll::Ready(answer.as_mut().poll(cx).is_pending())).await;
            return self.config.log.write(format!("gave up {asked}"));
        }
        self.config.log.write(match answer.await {
            Ok(answer) => {
                let tokens = answer.usage.map(|usage| usage.total_tokens);
                let is_cut = answer.finish_reason == Some(ModelFinish::Length);
                let cut = if is_cut { ", cut off" } else { "" };
                format!("{} said {:?} for {tokens:?}{cut}", answer.target, answer.response)
            }
            Err(error) => format!("{} {}", error.code(), error.message()),
        });
    }
}

#[goondan::extension(name = "model-asking")]
impl ModelAsking {
    #[init]
    fn new(config: ModelAskingConfig) -> Self {
        Self { config }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        if self.config.place == "turn" {
            self.ask(ctx.agents()).await;
        }
        let result = next.run(ctx).await?;
        if self.config.place == "after" {
            self.ask(ctx.agents()).await;
        }
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if self.config.place == "step" {
            self.ask(ctx.agents()).await;
        }
        next.run(ctx).await
    }

    /// Asks a model.
    #[tool]
    async fn ask_model(&self, ctx: &ToolContext<'_>) -> Result<()> {
        self.ask(ctx.agents()).await;
        Ok(())
    }
}

/// Makes requests that are refused before a model or an agent is asked, and logs why.
pub struct AskingWrongly {
    log: Log,
}

#[goondan::extension(name = "asking-wrongly")]
impl AskingWrongly {
    #[init]
    fn new(config: crate::LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let agents = ctx.agents();
        let model = || AgentRequest::model(Some("small")).input("question");
        let agent = |name: &str| AgentRequest::new(name).input("question");
        let mut options = ModelOptions::default();
        options.seed = Some(1);
        let refused = [
            agents.request(agent("Model/small")).await.unwrap_err(),
            agents.request(agent("small")).await.unwrap_err(),
            agents.request_later(model()).unwrap_err(),
            agents.send(model()).await.unwrap_err(),
            agents.request(AgentRequest::model(None)).await.unwrap_err(),
            agents.request(AgentRequest::model(None).input(" \n")).await.unwrap_err(),
            agents.request(model().metadata("why", "no reader")).await.unwrap_err(),
            agents.request(model().instance(ctx.instance_key().clone())).await.unwrap_err(),
            agents.request(agent("b").system("Be brief.")).await.unwrap_err(),
            agents.request(agent("b").options(options)).await.unwrap_err(),
            agents.request(AgentRequest::model(Some("missing")).input("question")).await.unwrap_err(),
        ];
        for error in refused {
            self.log.write(format!("{} {}", error.code(), error.message()));
        }
        next.run(ctx).await
    }
}

/// Sends notices and requests to the agents of its config, and logs what comes of them.
pub struct Reaching {
    config: ReachingConfig,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ReachingConfig {
    log: Log,
    targets: Vec<String>,
}

#[goondan::extension(name = "reaching")]
impl Reaching {
    #[init]
    fn new(config: ReachingConfig) -> Self {
        Self { config }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        for target in &self.config.targets {
            let request = || AgentRequest::new(target).input("hello");
            let accepted = ctx.agents().send(request()).await?;
            let error = ctx.agents().request(request()).await.map_or_else(|error| error.to_string(), |_| String::new());
            self.config.log.write(format!("{accepted} {error}"));
        }
        next.run(ctx).await
    }
}

/// Has tools that read the conversation, and a middleware that removes its first message.
pub struct ReadingTools;

#[goondan::extension(name = "reading")]
impl ReadingTools {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step)]
    async fn forget(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let first = ctx
            .conversation()
            .iter()
            .next()
            .filter(|message| message.text() == "forget" && ctx.conversation().len() > 1);
        if let Some(id) = first.map(|message| message.id().to_owned()) {
            ctx.emit(MessageEvent::remove(id));
        }
        next.run(ctx).await
    }

    /// Returns what the conversation holds.
    #[tool(effect = read)]
    async fn look(&self, ctx: &ToolContext<'_>) -> Result<Value> {
        Ok(look(ctx))
    }

    /// Returns what the conversation holds, and changes the world.
    #[tool]
    async fn act(&self, ctx: &ToolContext<'_>) -> Result<Value> {
        Ok(look(ctx))
    }
}

fn look(ctx: &ToolContext<'_>) -> Value {
    let conversation = ctx.conversation();
    let texts = conversation.iter().map(|message| message.text().into_owned()).collect::<Vec<_>>();
    let backwards = conversation.iter().rev().map(|message| message.text().into_owned()).collect::<Vec<_>>();
    assert!(texts.iter().rev().eq(&backwards), "{texts:?} {backwards:?}");
    let newest = conversation.iter().last().map(|message| message.to_message());
    json!({
        "texts": texts,
        "len": conversation.len(),
        "base": conversation.base().map(|message| message.text().into_owned()).collect::<Vec<_>>(),
        "events": conversation.events().len(),
        "newestAsked": newest.as_ref() == Some(ctx.message()),
    })
}
