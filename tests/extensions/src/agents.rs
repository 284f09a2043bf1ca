//! Extensions that ask other agents, and that log their requests.

use std::time::Duration;

use goondan::agent::AgentRequest;
use goondan::conversation::FilePart;
use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Sends a request or a notice to the agent of its config, from the kind of middleware of its config.
pub struct Asking {
    config: AskingConfig,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct AskingConfig {
    log: Log,
    target: String,
    from: String,
}

impl Asking {
    async fn ask(&self, agents: goondan::agent::AgentsApi<'_>) {
        let request = AgentRequest::new(&self.config.target).input("question").metadata("from", "asking");
        let line = match agents.request(request).await {
            Ok(response) => format!("{}: {}", response.target, response.response),
            Err(error) => format!("{} {}", error.code(), error.message()),
        };
        self.config.log.write(line);
    }
}

#[goondan::extension(name = "asking")]
impl Asking {
    #[init]
    fn new(config: AskingConfig) -> Self {
        Self { config }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        match self.config.from.as_str() {
            "turn" => self.ask(ctx.agents()).await,
            "send" => {
                for target in [self.config.target.as_str(), "nobody"] {
                    let accepted = ctx.agents().send(AgentRequest::new(target).input("notice")).await?;
                    self.config.log.write(format!("{target} accepted: {accepted}"));
                }
            }
            "later" => {
                let ticket = ctx.agents().request_later(AgentRequest::new(&self.config.target).input("question"))?;
                ctx.metadata_mut().insert("ticket".into(), ticket.correlation_id.into());
            }
            _ => {}
        }
        next.run(ctx).await
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if self.config.from == "step" && ctx.step_index() == 0 {
            self.ask(ctx.agents()).await;
        }
        next.run(ctx).await
    }

    /// Asks the other agent.
    #[tool]
    async fn ask_tool(&self, ctx: &ToolContext<'_>) -> Result<String> {
        let response = ctx.agents().request(AgentRequest::new(&self.config.target).input("question")).await?;
        Ok(response.response)
    }
}

/// Logs the input of every turn.
pub struct Receiving {
    log: Log,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ReceivingConfig {
    log: Log,
}

#[goondan::extension(name = "receiving")]
impl Receiving {
    #[init]
    fn new(config: ReceivingConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let input = ctx.input();
        let principal = input.auth.as_ref().and_then(|auth| auth.principal.as_ref());
        let principal = principal.map(|principal| principal.id.as_str());
        self.log.write(format!(
            "{} {} {:?} from {} {}, callers {:?}, for {principal:?}, metadata {:?}, reply {}",
            ctx.agent_name(),
            ctx.instance_key(),
            input.input.as_deref().unwrap_or_default(),
            input.source.kind,
            input.source.name,
            input.callers,
            input.metadata.get("from"),
            input.reply_to.is_some(),
        ));
        self.log.write(ctx.trace_id().as_str());
        let result = next.run(ctx).await;
        self.log.write("received");
        result
    }
}

/// Sends requests that differ from those of [`Asking`] in one way each, and logs what comes of them.
pub struct AskingOddly {
    log: Log,
}

#[goondan::extension(name = "asking-oddly")]
impl AskingOddly {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let agents = ctx.agents();
        self.log.write(format!("others: {:?}", agents.list()));
        let answer = agents.request(AgentRequest::new("b").input("question").timeout(Duration::ZERO)).await;
        self.log.write(answer.map_or_else(|error| error.to_string(), |answer| answer.response));
        let blank = || AgentRequest::new("b").input(" \n");
        let refused = [
            agents.request(blank()).await.unwrap_err(),
            agents.request_later(blank()).unwrap_err(),
            agents.send(blank()).await.unwrap_err(),
        ];
        for error in refused {
            self.log.write(format!("{} {}", error.code(), error.message()));
        }
        let own = || AgentRequest::new("b").input("question").ephemeral();
        let with_instance = own().instance(ctx.instance_key().clone());
        let refused = [
            agents.request(with_instance).await.unwrap_err(),
            agents.request_later(own()).unwrap_err(),
            agents.send(own()).await.unwrap_err(),
        ];
        self.log.write(format!("of its own: {}", refused.map(|error| error.code().to_string()).join(" ")));
        let silent = agents.request(AgentRequest::new("b").metadata("why", "a timer")).await;
        self.log.write(silent.map_or_else(|error| error.to_string(), |answer| answer.response));
        next.run(ctx).await
    }
}

/// Asks `b` with a file, now and later, and logs the files of the answer.
pub struct AskingWithFiles {
    log: Log,
}

#[goondan::extension(name = "asking-with-files")]
impl AskingWithFiles {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let agents = ctx.agents();
        let file = || FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n").named("in.png");
        for request in [AgentRequest::new("b").input("look"), AgentRequest::new("b")] {
            let answer = agents.request(request.file(file())).await?;
            let files: Vec<_> = answer.files.iter().map(FilePart::label).collect();
            self.log.write(format!("{}: {files:?}", answer.response));
        }
        let refused = agents.request(AgentRequest::model(None).input("look").file(file())).await.unwrap_err();
        self.log.write(refused.code().to_string());
        agents.request_later(AgentRequest::new("b").input("later").file(file()))?;
        next.run(ctx).await
    }
}

/// Asks its own agent, in a conversation of its own each time, and logs how that fails.
pub struct AskingItself {
    log: Log,
}

#[goondan::extension(name = "asking-itself")]
impl AskingItself {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let (agents, depth) = (ctx.agents(), ctx.input().callers.len());
        let request = || AgentRequest::new(ctx.agent_name().as_str()).input("question");
        let circle = agents.request(request()).await.unwrap_err();
        if let Err(error) = agents.request(request().ephemeral()).await {
            self.log.write(format!("{depth} {} {}", circle.code(), error.code()));
        }
        next.run(ctx).await
    }
}
