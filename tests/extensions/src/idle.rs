//! An extension whose event handler outlives the turn that emitted the event.

use goondan::prelude::*;
use tokio::sync::Semaphore;

use crate::{Log, LogConfig};

/// Runs an event handler from the input `think` to the input `enough`.
pub struct Thinking {
    api: ExtensionApi,
    log: Log,
    enough: Semaphore,
}

#[goondan::extension(name = "thinking")]
impl Thinking {
    #[init]
    fn new(api: ExtensionApi, config: LogConfig) -> Self {
        Self { api, log: config.log, enough: Semaphore::new(0) }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        match ctx.input().input.as_deref() {
            Some("think") => self.api.events().emit("think", ()),
            Some("enough") => self.enough.add_permits(1),
            _ => {}
        }
        next.run(ctx).await
    }

    #[on("think")]
    async fn think(&self) -> Result<()> {
        self.enough.acquire().await.map_err(|error| Error::msg(error.to_string()))?.forget();
        self.log.write("thought");
        Ok(())
    }

    #[cleanup]
    async fn close(&self) {
        self.log.write("closes");
    }
}
