//! Extensions that run `next` rightly and wrongly.

use std::sync::Mutex;
use std::time::Duration;

use goondan::middleware::{StepDraft, StepStatus, ToolCallDraft, ToolCallStatus, TurnDraft};
use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Stops every turn before the core.
pub struct Stopping;

#[goondan::extension(name = "stopping")]
impl Stopping {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn stop(&self, _: &mut TurnContext<'_>, _: Next<'_, Turn>) -> Result<TurnResult> {
        Err(Error::new("E_CLOSED", "closed for today"))
    }
}

/// Logs which kinds of layers are reached.
pub struct Reached {
    log: Log,
}

#[goondan::extension(name = "reached")]
impl Reached {
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
}

/// Returns the result of an earlier run instead of the one of this run.
#[derive(Default)]
pub struct Stashing {
    stash: Mutex<Option<StepResult>>,
}

#[goondan::extension(name = "stashing")]
impl Stashing {
    #[init]
    fn new() -> Self {
        Self::default()
    }

    #[middleware(step)]
    async fn stash(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if let Some(old) = self.stash.lock().unwrap().take() {
            return Ok(old);
        }
        let result = next.run(ctx).await?;
        *self.stash.lock().unwrap() = Some(result);
        Err(Error::retry_after(Duration::ZERO, "once more"))
    }
}

/// Keeps the result of a turn and returns it in the next one.
#[derive(Default)]
pub struct Hoarding {
    kept: Mutex<Option<TurnResult>>,
}

#[goondan::extension(name = "hoarding")]
impl Hoarding {
    #[init]
    fn new() -> Self {
        Self::default()
    }

    #[middleware(turn)]
    async fn keep(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        if let Some(old) = self.kept.lock().unwrap().take() {
            return Ok(old);
        }
        *self.kept.lock().unwrap() = Some(next.run(ctx).await?);
        Err(Error::msg("kept"))
    }
}

/// Drops a running `next` and fails with an error.
pub struct Impatient;

#[goondan::extension(name = "impatient")]
impl Impatient {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn hurry(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        tokio::select! {
            biased;
            () = std::future::ready(()) => {}
            result = next.run(ctx) => return result,
        }
        // The source of this message must be the extension that runs now.
        ctx.emit(MessageEvent::append(Message::system("too slow")));
        assert_eq!(ctx.extension_name().unwrap(), "impatient");
        Err(Error::msg("too slow"))
    }
}

/// Changes the results of the layers inside.
pub struct Changing;

#[goondan::extension(name = "changing")]
impl Changing {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let mut result = next.run(ctx).await?;
        let changed = format!("{}!", result.text());
        result.set_text(changed);
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn tool(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let mut result = next.run(ctx).await?;
        assert_eq!(result.status(), ToolCallStatus::Error);
        result.set_output("replaced");
        Ok(result)
    }
}

/// Recovers from failures with an answer.
pub struct Recovering;

#[goondan::extension(name = "recovering")]
impl Recovering {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        match next.catch(ctx).await {
            Ok(result) => Ok(result),
            Err(failure) => {
                let text = format!("sorry: {}", failure.error().message());
                Ok(failure.recover(ctx, TurnDraft::text(text)))
            }
        }
    }
}

/// Recovers from failed steps and calls.
pub struct Persistent {
    log: Log,
}

#[goondan::extension(name = "persistent")]
impl Persistent {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        match next.catch(ctx).await {
            Ok(result) => Ok(result),
            Err(failure) => {
                let result = failure.recover(ctx, StepDraft::run_another());
                assert_eq!(result.status(), StepStatus::Failed);
                self.log.write(result.metadata()["error"].to_string());
                Ok(result)
            }
        }
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        match next.catch(ctx).await {
            Ok(result) => Ok(result),
            Err(failure) => Ok(failure.recover(ctx, ToolCallDraft::output("recovered"))),
        }
    }
}

/// Refuses every tool call.
pub struct Refusing;

#[goondan::extension(name = "refusing")]
impl Refusing {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall)]
    async fn refuse(&self, _: &mut ToolCallContext<'_>, _: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        Err(Error::new("E_POLICY", "not allowed").suggest("ask a person"))
    }
}

/// Panics in the function that its config names.
pub struct Panicking {
    place: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct PanicConfig {
    place: String,
}

#[goondan::extension(name = "panicking")]
impl Panicking {
    #[init]
    fn new(config: PanicConfig) -> Self {
        assert_ne!(config.place, "init", "boom in init");
        Self { place: config.place }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let result = next.run(ctx).await?;
        assert_ne!(self.place, "turn", "boom");
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        assert_ne!(self.place, "step", "boom");
        next.run(ctx).await
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        assert_ne!(self.place, "toolCall", "boom");
        next.run(ctx).await
    }
}

/// Logs the number of messages before and after the core.
pub struct Timeline {
    log: Log,
}

#[goondan::extension(name = "timeline")]
impl Timeline {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let before = ctx.conversation().len();
        let result = next.run(ctx).await?;
        self.log.write(format!("{before} before, {} after", ctx.conversation().len()));
        Ok(result)
    }
}
