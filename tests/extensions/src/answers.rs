//! An extension that reacts to how a model call ended.

use std::time::Duration;

use goondan::ErrorCode;
use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Logs how each model call ended. When the conversation is too long for the model, it removes the messages of earlier
/// turns and has the step run again.
pub struct Compacting {
    log: Log,
}

#[goondan::extension(name = "compacting")]
impl Compacting {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(step)]
    async fn compact(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let error = match next.run(ctx).await {
            Ok(result) => {
                let another = if result.continues() { "another step" } else { "the end" };
                self.log.write(format!("{:?}, {another}", result.finish_reason()));
                return Ok(result);
            }
            Err(error) => error,
        };
        self.log.write(format!("{}, retryable: {}", error.code(), error.is_retryable()));
        if *error.code() != ErrorCode::MODEL_CONTEXT_OVERFLOW {
            return Err(error);
        }
        let earlier: Vec<_> = ctx.conversation().base().map(|message| message.to_id()).collect();
        earlier.into_iter().for_each(|id| ctx.emit(MessageEvent::remove(id)));
        Err(Error::retry_after(Duration::ZERO, "the conversation was shortened"))
    }
}
