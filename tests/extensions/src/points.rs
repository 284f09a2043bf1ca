//! An extension that works at the old points `turn.pre`, `turn.post`, `step.pre` and `step.post`.

use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Works before and after `next`, and logs what it sees there.
pub struct Points {
    log: Log,
}

#[goondan::extension(name = "points")]
impl Points {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.log.write(format!("turn.pre {}", ctx.input().input.as_deref().unwrap_or_default()));
        ctx.emit(MessageEvent::append(Message::system("turn.pre")));
        let mut result = next.run(ctx).await?;
        let text = result.text().into_owned();
        self.log.write(format!("turn.post {text}"));
        ctx.emit(MessageEvent::append(Message::system("turn.post")));
        result.set_text(format!("{text}, by turn.post"));
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let step = ctx.step_index();
        self.log.write(format!("step.pre {step}"));
        ctx.emit(MessageEvent::append(Message::system(format!("step.pre {step}"))));
        ctx.tool_catalog_mut().retain(|tool| step == 0 || tool.name != "points__run");
        let mut result = next.run(ctx).await?;
        let (status, calls) = (result.status(), result.tool_calls().len());
        self.log.write(format!("step.post {step} {status:?} calls={calls}"));
        if step == 1 {
            result.set_continues(true);
        }
        Ok(result)
    }

    /// Does nothing.
    #[tool]
    async fn run(&self) -> Result<()> {
        Ok(())
    }
}
