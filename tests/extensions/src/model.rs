//! Extensions that choose a model, and extensions that hang.

use goondan::json;
use goondan::middleware::{MODEL_KEY, MODEL_OPTIONS_KEY};
use goondan::prelude::*;

/// Chooses the model of its config, and its options.
pub struct Choosing {
    config: ChoosingConfig,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ChoosingConfig {
    model: String,
}

#[goondan::extension(name = "choosing")]
impl Choosing {
    #[init]
    fn new(config: ChoosingConfig) -> Self {
        Self { config }
    }

    #[middleware(step)]
    async fn choose(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if ctx.metadata().get("deployment") == Some(&json!("test")) {
            ctx.metadata_mut().insert(MODEL_KEY.into(), self.config.model.clone().into());
            ctx.metadata_mut().insert(MODEL_OPTIONS_KEY.into(), json!({ "temperature": 0 }));
        }
        next.run(ctx).await
    }
}

/// Has a layer that never returns.
pub struct Stuck;

#[goondan::extension(name = "stuck")]
impl Stuck {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn hang(&self, _: &mut TurnContext<'_>, _: Next<'_, Turn>) -> Result<TurnResult> {
        std::future::pending().await
    }
}

/// Has a tool that never returns.
pub struct Sleeping;

#[goondan::extension(name = "sleeping")]
impl Sleeping {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Never returns.
    #[tool(timeout = "5s")]
    async fn sleep(&self) -> Result<()> {
        std::future::pending().await
    }
}
