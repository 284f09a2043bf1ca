//! Extensions whose layers fail in every way, and one that counts what runs inside of them.

use std::future::pending;

use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Fails as its config says, after it has changed what it could reach.
pub struct Failing {
    config: Config,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Config {
    kind: String,
    when: When,
    how: How,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "camelCase")]
enum When {
    Init,
    Before,
    After,
    /// When `next` has failed.
    Failed,
    /// When `next` has started, and is dropped.
    Dropped,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum How {
    Error,
    Panic,
    Hang,
    Retry,
}

impl Failing {
    fn at(&self, kind: &str, when: When) -> bool {
        self.config.kind == kind && self.config.when == when
    }

    async fn fail(&self) -> Result<()> {
        match self.config.how {
            How::Error => Err(Error::new("E_BROKEN", "broken")),
            How::Panic => panic!("broken"),
            How::Hang => pending().await,
            How::Retry => Err(Error::retry_after(std::time::Duration::ZERO, "again")),
        }
    }
}

#[goondan::extension(name = "brittle")]
impl Failing {
    #[init]
    async fn new(config: Config) -> Result<Self> {
        let new = Self { config };
        if new.config.when == When::Init {
            new.fail().await?;
        }
        Ok(new)
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        if self.at("turn", When::Before) {
            ctx.emit(MessageEvent::append(Message::system("emitted")));
            self.fail().await?;
        }
        let outcome = tokio::select! {
            biased;
            outcome = next.catch(ctx) => Some(outcome),
            () = std::future::ready(()), if self.at("turn", When::Dropped) => None,
        };
        let mut result = match outcome {
            Some(Ok(result)) => result,
            Some(Err(failure)) if !self.at("turn", When::Failed) => return Err(failure.into()),
            _ => return self.fail().await.and(Err(Error::msg("not broken"))),
        };
        if self.at("turn", When::After) {
            result.set_text("spoilt");
            self.fail().await?;
        }
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let first_attempt = !ctx.metadata().contains_key("attempt");
        if self.at("step", When::Before) && first_attempt {
            self.fail().await?;
        }
        let mut result = next.run(ctx).await?;
        if self.at("step", When::After) {
            let spoilt = !result.continues();
            result.set_continues(spoilt);
            result.metadata_mut().insert("spoilt".to_owned(), true.into());
            self.fail().await?;
        }
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if self.at("toolCall", When::Before) {
            self.fail().await?;
        }
        let mut result = next.run(ctx).await?;
        if self.at("toolCall", When::After) {
            result.set_output("spoilt");
            self.fail().await?;
        }
        Ok(result)
    }

    #[tool(name = "brittle__fail", effect = read)]
    /// Fails.
    async fn tool(&self) -> Result<()> {
        self.fail().await
    }
}

/// Logs what is reached.
pub struct Within {
    log: Log,
}

#[goondan::extension(name = "innermost")]
impl Within {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.log.write("turn");
        next.run(ctx).await
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        self.log.write("step");
        next.run(ctx).await
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        self.log.write("toolCall");
        next.run(ctx).await
    }

    /// Logs that it was called.
    #[tool]
    async fn note(&self) -> Result<&'static str> {
        self.log.write("handler");
        Ok("noted")
    }
}

/// Lets nothing pass that it cannot judge.
pub struct Warden;

#[goondan::extension(name = "warden", guard)]
impl Warden {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall)]
    async fn judge(&self, _: &mut ToolCallContext<'_>, _: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        Err(Error::new("E_BROKEN", "the judge does not answer"))
    }
}
