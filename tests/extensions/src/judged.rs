//! An extension that judges the results of steps.

use std::time::Duration;

use goondan::middleware::ModelFinish;
use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Has a step run again whose answer was cut off.
pub struct Judging {
    log: Log,
}

#[goondan::extension(name = "judging")]
impl Judging {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(step)]
    async fn judge(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let result = next.run(ctx).await?;
        let calls: Vec<_> = result.tool_results().iter().map(ToolCallResult::tool_name).collect();
        self.log.write(format!("{:?} {calls:?}", result.finish_reason()));
        match result.finish_reason() {
            Some(ModelFinish::Length) => Err(Error::retry_after(Duration::ZERO, "the answer was cut off")),
            _ => Ok(result),
        }
    }
}
