//! An extension that reads how turns end.

use goondan::prelude::*;

use crate::{Log, LogConfig};

/// Logs how each turn ended: why and with which text, or with which error.
pub struct Cut {
    log: Log,
}

#[goondan::extension(name = "cut")]
impl Cut {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[middleware(turn)]
    async fn read(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let outcome = next.run(ctx).await;
        match &outcome {
            Ok(turn) => self.log.write(format!("{:?}: {}", turn.finish_reason(), turn.text())),
            Err(error) => self.log.write(error.code().to_string()),
        }
        outcome
    }
}
